"""What the writes of a window overwrote or dropped is told for machines (HUDI-R10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_timelines import TIMES, clustered, order, timeline, wrote
from tidegate.model.plan_record import PartitionEvent
from tidegate.source.hudi.slices.events import partition_events

if TYPE_CHECKING:
    from pathlib import Path


def test_overwrites_and_dropped_partitions_are_events_in_their_order(tmp_path: Path) -> None:
    overwrite = wrote(
        "c", operation="INSERT_OVERWRITE", partitionToReplaceFileIds={"p": ["b", "a"]}
    )
    dropped = {
        "operationType": "DELETE_PARTITION",
        "partitionToWriteStats": {},
        "partitionToReplaceFileIds": {"q": [], "p": ["c"]},
    }
    found = timeline(tmp_path, [wrote("a", "b"), overwrite, dropped])

    assert partition_events(found, [order(0), order(1), order(2)]) == (
        PartitionEvent(TIMES[1], "insert_overwrite", "p", ("a", "b")),
        PartitionEvent(TIMES[2], "delete_partition", "p", ("c",)),
        PartitionEvent(TIMES[2], "delete_partition", "q", ()),
    )


def test_window_that_replaced_nothing_has_no_events(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("a"), clustered("a", "b")])

    assert partition_events(found, [order(0)]) is None
