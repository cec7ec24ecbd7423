"""What was passed over is told in sentences; what never happened is not."""

from __future__ import annotations

from tidegate.source.iceberg.manifests.tally import (
    DELETES_DANGLING,
    FILES_BY_METRICS,
    skipped_notes,
    tally_notes,
)


def test_notes_have_the_counts_that_are_not_zero() -> None:
    assert tally_notes({FILES_BY_METRICS: 3, DELETES_DANGLING: 0}) == (
        "the filter ruled out 3 files by metrics",
    )


def test_notes_of_skipped_snapshots_say_how_many_of_each_class() -> None:
    """ICE-3.5."""
    assert skipped_notes({"overwrite": 2, "delete": 1}) == (
        "skipped 1 delete snapshot",
        "skipped 2 overwrite snapshots",
    )
