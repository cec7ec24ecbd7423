"""What a window read whole is replaced, and nothing else."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tidegate.config import PipelineConfig
from tidegate.errors import ModeChanged, PartitionsUnlikeSource
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.pipeline.load.replacing import check_keys, replaced_partitions
from tidegate.source.slicing import Units

FOLDERS = ({"dt": pa.scalar(date(2026, 1, 2))}, {"dt": pa.scalar(None, pa.date32())})


def config(partition_by: dict[str, str] | None) -> PipelineConfig:
    target: dict[str, Any] = {"path": "/published"}
    if partition_by:
        target["partition_by"] = partition_by
    return PipelineConfig.model_validate(
        {
            "name": "trips",
            "source": {
                "kind": "hudi",
                "path": "/trips",
                "read": {"mode": "rebuild_partitions"},
            },
            "target": target,
            "commit": {"trigger": "process-time"},
        }
    )


def window(kind: WindowKind) -> Any:
    return SimpleNamespace(sequence=3, kind=kind)


def replaced(
    partition_by: dict[str, str] | None, folders: Any, kind: WindowKind = WindowKind.REPLACE
) -> tuple[Partition, ...]:
    return replaced_partitions(config(partition_by), window(kind), Units((), replaced=folders))


@pytest.mark.parametrize("partition_by", [{"day": "dt"}, {"shop": "shop", "day": "dt"}])
def test_partitions_are_spelled_as_in_the_target(partition_by: dict[str, str]) -> None:
    assert replaced(partition_by, FOLDERS) == (
        Partition((("day", "2026-01-02"),)),
        Partition((("day", None),)),
    )


@pytest.mark.parametrize("partition_by", [None, {"day": "dt"}])
def test_table_without_partitions_replaces_everything(partition_by: dict[str, str] | None) -> None:
    assert replaced(partition_by, ({},)) == (Partition(()),)


@pytest.mark.parametrize("partition_by", [None, {"shop": "shop"}, {"day": "day(dt)"}])
def test_target_without_the_sources_partition_column_is_refused(
    partition_by: dict[str, str] | None,
) -> None:
    with pytest.raises(PartitionsUnlikeSource, match="'dt'"):
        check_keys(config(partition_by), ["dt"])


@pytest.mark.parametrize("partition_by", [{"day": "dt"}, {"shop": "shop", "day": "dt"}])
def test_target_with_more_keys_than_the_source_has_is_not(partition_by: dict[str, str]) -> None:
    check_keys(config(partition_by), ["dt"])
    check_keys(config(partition_by), [])


def test_window_that_changed_no_partition_replaces_none() -> None:
    assert replaced({"shop": "shop"}, ()) == ()


@pytest.mark.parametrize(
    ("kind", "folders", "is_refused"),
    [
        (WindowKind.LOAD, None, False),
        (WindowKind.LOAD, FOLDERS, True),
        (WindowKind.HISTORY, FOLDERS, True),
        (WindowKind.REPLACE, None, True),
        (WindowKind.RESTART, FOLDERS, False),
        (WindowKind.REBUILD, None, False),
        (WindowKind.RELOAD, None, False),
    ],
)
def test_window_is_read_as_the_kind_that_it_was_taken_as(
    kind: WindowKind, folders: Any, *, is_refused: bool
) -> None:
    if is_refused:
        with pytest.raises(ModeChanged, match=kind.value):
            replaced({"day": "dt"}, folders, kind)
    else:
        assert replaced({"day": "dt"}, folders, kind) == ()
