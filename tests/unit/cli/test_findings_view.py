"""What fsck found, for people and for machines."""

from __future__ import annotations

from tidegate.cli import findings_view
from tidegate.model.finding import Finding, FindingKind

FOUND = Finding(FindingKind.FILE_LOST, "/t/dt=1/p", "/t/dt=1/p: missing; run `tidegate x`", "Gone")


def test_finding_is_told_with_why_it_matters() -> None:
    said, why = findings_view.told(FOUND).splitlines()

    assert said == FOUND.text
    assert why.strip() == "file-lost: readers miss its rows, or fail."


def test_machines_get_kind_place_reason_and_commands() -> None:
    assert findings_view.raw(FOUND) == {
        "kind": "file-lost",
        "where": "/t/dt=1/p",
        "why": "readers miss its rows, or fail",
        "text": FOUND.text,
        "commands": ["tidegate x"],
        "error": "Gone",
    }
