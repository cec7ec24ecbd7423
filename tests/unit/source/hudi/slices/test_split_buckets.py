"""Logs that a write wrote again for the groups of a split are told from those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hudi_timelines import TIMES, timeline, wrote
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.slices.split_buckets import written_once
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SPLIT = {**wrote("new", operation="CLUSTER"), "partitionToReplaceFileIds": {"p": ["a"]}}


def logged(**named_by: str) -> dict[str, Any]:
    """A write of a log in each group, named by an instant."""
    stats = [{"fileId": it, "path": f"p/.{it}_{by}.log.1_0-1-2"} for it, by in named_by.items()]
    return {"operationType": "UPSERT", "partitionToWriteStats": {"p": stats}}


@pytest.mark.parametrize(
    ("split", "write", "again"),
    [
        pytest.param(SPLIT, {"a": TIMES[1], "new": TIMES[0]}, ["new"], id="done later"),
        pytest.param(SPLIT, {"new": TIMES[0]}, [], id="done before"),
        pytest.param(SPLIT, {"b": TIMES[1], "new": TIMES[0]}, [], id="other group"),
        pytest.param(
            wrote("a", operation="COMPACT"), {"a": TIMES[0], "b": TIMES[0]}, [], id="compaction"
        ),
    ],
)
def test_log_is_written_again_if_its_split_replaced_a_group_of_the_write(
    tmp_path: Path, split: dict[str, Any], write: Mapping[str, str], again: list[str]
) -> None:
    found = written_once(timeline(tmp_path, [split, logged(**write)]), TIMES[1])["p"]

    assert [it.file_id for it in found.again] == again
    assert {it.file_id for it in found.files} == write.keys() - set(again)
    assert found.split == (frozenset("a") if again else frozenset())


@pytest.mark.parametrize(
    ("service", "again"), [("clustering", ["new"]), ("compaction", [])], ids=str
)
def test_log_that_a_pending_service_names_is_written_again_if_that_splits(
    tmp_path: Path, service: str, again: list[str]
) -> None:
    made = timeline(tmp_path, [wrote("a"), logged(a=TIMES[1], new=TIMES[2])])
    (tmp_path / made.table.timeline_folder / f"{TIMES[2]}.{service}.requested").touch()
    found = LoadedTimeline(TableFiles(str(tmp_path)), made.table)

    assert [it.file_id for it in written_once(found, TIMES[1])["p"].again] == again
