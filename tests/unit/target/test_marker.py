"""What a marker says, and how a file that is none of ours is told (PC-A07)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given

from strategies import values_of
from tidegate.errors import MarkerInvalid
from tidegate.model.partition import Partition
from tidegate.model.publication import (
    Approval,
    CheckResult,
    Outcome,
    Override,
    Publication,
    PublishedFile,
    StagedFile,
    Verdict,
)
from tidegate.target.marker import MarkerFacts, pipeline_of_marker, read_marker, write_marker

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FILES = tuple(
    PublishedFile(f"part-{number}", 10 * number, "ab" * 32, number, 1, "p", f"staged/{number}")
    for number in (1, 2, 3)
)
PUBLICATION = Publication(
    partition=Partition((("dt", "2026-02-01"), ("region", None))),
    base_revision=3,
    adds=FILES[1:],
    removes=(),
    content=FILES,
    contributions={"1": "p", "2": "q"},
)
FACTS = MarkerFacts(
    pipeline="orders",
    watermark=NOW,
    partition_end=NOW - timedelta(hours=6),
    trigger="partition-time",
    source_range={"1": {"after": None, "to": "77"}},
    verdict=Verdict(
        Outcome.WARN, (CheckResult("rows", "warning", False, "6", "10"),), 6, "pandas", NOW
    ),
    approval=Approval(True, "ada", NOW, "known"),
    owner="cli:host:1:2",
    prepared_at=NOW,
)


def test_marker_lists_every_file_and_adds_up() -> None:
    marker = read_marker("m", write_marker(PUBLICATION, FACTS).encode())

    assert [(item["name"], item["length"], item["rows"]) for item in marker["files"]] == [
        ("part-1", 10, 1),
        ("part-2", 20, 2),
        ("part-3", 30, 3),
    ]
    assert (marker["rows"], marker["bytes"], marker["revision"]) == (6, 60, 4)
    assert marker["partition"] == {"dt": "2026-02-01", "region": None}
    assert marker["windows"] == {"1": "p", "2": "q"}
    assert marker["approval"] == {"by": "ada", "comment": "known"}
    assert marker["override"] is None


def test_marker_says_what_was_joined() -> None:
    one, two, three = FILES
    parts = tuple(StagedFile(name, 1, "", 1, 1, "p", "staged") for name in "ab")
    content = (one, replace(two, made_of=parts, joins=("c",)), replace(three, joins=("d", "e")))

    said = read_marker("m", write_marker(replace(PUBLICATION, content=content), FACTS).encode())

    assert [file.get("made_of") for file in said["files"]] == [None, ["a", "b"], ["d", "e"]]


def test_marker_of_an_overruled_trigger_says_who_what_and_why() -> None:
    said = Override("ada", NOW, "the shop closed", "WATERMARK_BEHIND: 1 h missing")

    marker = read_marker("m", write_marker(PUBLICATION, replace(FACTS, override=said)).encode())

    assert marker["override"] == {
        "by": "ada",
        "comment": "the shop closed",
        "overruled": "WATERMARK_BEHIND: 1 h missing",
    }


def test_marker_says_everything_that_readers_rely_on() -> None:
    """The whole text, as programs read it that know nothing else of the pipeline."""
    marker = json.loads(write_marker(PUBLICATION, FACTS))

    assert marker == {
        "format": 1,
        "pipeline": "orders",
        "partition": {"dt": "2026-02-01", "region": None},
        "revision": 4,
        "rows": 6,
        "bytes": 60,
        "files": [
            {"name": f"part-{number}", "length": 10 * number, "rows": number, "sha256": "ab" * 32}
            for number in (1, 2, 3)
        ],
        "windows": {"1": "p", "2": "q"},
        "source": {"1": {"after": None, "to": "77"}},
        "watermark": "2026-03-01T00:00:00.000000Z",
        "partition_end": "2026-02-28T18:00:00.000000Z",
        "trigger": "partition-time",
        "gate": {
            "outcome": "warn",
            "checks": [{"name": "rows", "success": False, "observed": "6"}],
        },
        "approval": {"by": "ada", "comment": "known"},
        "override": None,
        "provenance": {
            "owner": "cli:host:1:2",
            "prepared_at": "2026-03-01T00:00:00.000000Z",
            "approved_at": "2026-03-01T00:00:00.000000Z",
            "overridden_at": None,
            "checked_at": "2026-03-01T00:00:00.000000Z",
        },
    }


def test_marker_without_approval_and_times_has_their_keys() -> None:
    facts = replace(FACTS, watermark=None, partition_end=None, approval=None)

    marker = json.loads(write_marker(PUBLICATION, facts))

    absent = ("watermark", "partition_end", "approval")
    assert [marker[key] for key in absent] == [None, None, None]
    assert marker["provenance"]["approved_at"] is None


def test_marker_of_another_attempt_differs_in_provenance_only() -> None:
    later = NOW + timedelta(hours=1)
    again = replace(
        FACTS,
        owner="cli:other:3:4",
        prepared_at=later,
        verdict=replace(FACTS.verdict, checked_at=later),
        approval=Approval(True, "ada", later, "known"),
    )

    one, other = (json.loads(write_marker(PUBLICATION, facts)) for facts in (FACTS, again))

    assert one.pop("provenance") != other.pop("provenance")
    assert one == other


@given(values_of(Publication))
def test_marker_of_any_publication_is_read_back(publication: Publication) -> None:
    marker = read_marker("m", write_marker(publication, FACTS).encode())

    assert [item["name"] for item in marker["files"]] == [item.name for item in publication.content]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param(b"", "an empty file", id="as Spark writes it"),
        pytest.param(b'{"format": 1', "no JSON", id="cut"),
        pytest.param(b"\xff\xfe", "no JSON", id="no text"),
        pytest.param(b"[]", "another format", id="no object"),
        pytest.param(b'{"format": 2}', "another format", id="of another version"),
    ],
)
def test_marker_that_is_none_of_ours_is_named(content: bytes, found: str) -> None:
    with pytest.raises(MarkerInvalid, match=found) as refused:
        read_marker("/t/dt=1/_SUCCESS", content)

    assert refused.value.path == "/t/dt=1/_SUCCESS"


@pytest.mark.parametrize(
    ("content", "pipeline"),
    [
        (b'{"pipeline": "orders", "revision": 1, "files": []}', "orders"),
        (b'{"pipeline": "orders", "ledger": "x"}', None),
        (b"[]", None),
        (b"\xff\xfe", None),
        (b"", None),
    ],
)
def test_pipeline_of_a_marker_of_any_format_is_known(content: bytes, pipeline: str | None) -> None:
    assert pipeline_of_marker(content) == pipeline
