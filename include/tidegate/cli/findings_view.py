"""What `tidegate fsck` found, for people and for machines. Pure: values → text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.model.finding import Finding


def told(finding: Finding) -> str:
    """Return what was found and what to do, and in a second line why it matters."""
    return f"{finding.text}\n    {_name(finding)}: {finding.kind.value}."


def raw(finding: Finding) -> dict[str, Any]:
    """Return a finding for machines."""
    return {
        "kind": _name(finding),
        "where": finding.where,
        "why": finding.kind.value,
        "text": finding.text,
        "commands": list(finding.commands),
        "error": finding.error,
    }


def _name(finding: Finding) -> str:
    return finding.kind.name.lower().replace("_", "-")
