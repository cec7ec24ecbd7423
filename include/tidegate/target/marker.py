"""The marker of a partition: what it lists, byte for byte, and how it is read (PC-A07)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.errors import MarkerInvalid
from tidegate.model.wire import instant_text, pretty

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidegate.model.publication import Approval, Publication, Verdict

MARKER_FORMAT = 1


@dataclass(frozen=True)
class MarkerFacts:
    """What a marker says besides the files."""

    pipeline: str
    watermark: datetime | None
    partition_end: datetime | None
    trigger: str
    source_range: Mapping[str, Any]
    verdict: Verdict
    approval: Approval | None
    owner: str
    prepared_at: datetime


def write_marker(publication: Publication, facts: MarkerFacts) -> str:
    """Write the marker's text.

    What depends on the attempt stands in `provenance` alone (design §5).
    """
    return pretty(
        {
            "format": MARKER_FORMAT,
            "pipeline": facts.pipeline,
            "partition": dict(publication.partition.values),
            "revision": publication.revision,
            "rows": publication.rows,
            "bytes": sum(file.length for file in publication.content),
            "files": [
                {"name": file.name, "length": file.length, "rows": file.rows, "sha256": file.sha256}
                for file in publication.content
            ],
            "windows": dict(publication.contributions),
            "source": dict(facts.source_range),
            "watermark": _text(facts.watermark),
            "partition_end": _text(facts.partition_end),
            "trigger": facts.trigger,
            "gate": {
                "outcome": facts.verdict.outcome.value,
                "checks": [
                    {"name": check.name, "success": check.success, "observed": check.observed}
                    for check in facts.verdict.checks
                ],
            },
            "approval": None
            if facts.approval is None
            else {"by": facts.approval.by, "comment": facts.approval.comment},
            "provenance": {
                "owner": facts.owner,
                "prepared_at": instant_text(facts.prepared_at),
                "approved_at": _text(facts.approval.at) if facts.approval else None,
                "checked_at": instant_text(facts.verdict.checked_at),
            },
        }
    ).decode()


def read_marker(path: str, content: bytes) -> dict[str, Any]:
    """Read a marker for its file list.

    Raises:
        MarkerInvalid: it is empty or not one of ours.
    """
    try:
        raw = json.loads(content)
    except ValueError as broken:
        raise MarkerInvalid(path=path, found="no JSON" if content else "an empty file") from broken
    if not isinstance(raw, dict) or raw.get("format") != MARKER_FORMAT:
        raise MarkerInvalid(path=path, found="another format")
    return raw


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else instant_text(moment)
