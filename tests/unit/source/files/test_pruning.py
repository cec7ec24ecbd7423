"""Files are left out exactly where their partition values fail the filter (PC-R04)."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import read_source
from tidegate.errors import PartitionValueInvalid, PredicateInvalid
from tidegate.model.partition import Partition
from tidegate.source.files.metadata import FileFacts
from tidegate.source.files.pruning import PartitionPruning

KEYS = {"dt": "date", "n": "int", "s": "string"}
SCHEMA = pa.schema([("id", pa.int64())])
VALUES = {
    "dt": st.sampled_from(["2026-01-01", "2026-01-02", "__HIVE__"]),
    "n": st.sampled_from(["-1", "0", "10", "9", "__HIVE__"]),
    "s": st.sampled_from(["a", "B", "10", "__HIVE__"]),
}
PARTITIONS = st.fixed_dictionaries(VALUES).map(lambda it: Partition(tuple(it.items())))
FILTERS = [
    "dt = date '2026-01-01'",
    "n > 9",
    "n is null or s < 'a'",
    "not (n = 10)",
    "s in ('a', '10') and dt > date '2026-01-01'",
]


def _pruning(text: str | None, keys: dict[str, str] | None = None) -> PartitionPruning:
    config = read_source(
        {
            "kind": "files",
            "path": "/lake",
            "partition_by": KEYS if keys is None else keys,
            "default_partition_name": "__HIVE__",
            "read": {"filter": text},
        }
    )
    return PartitionPruning(config, SCHEMA)


def _passes(partition: Partition, text: str) -> bool:
    """Ask another engine."""
    kinds = {"dt": "date", "n": "integer", "s": "varchar"}
    columns = ", ".join(
        f"cast({'null' if value == '__HIVE__' else repr(value)} as {kinds[name]}) as {name}"
        for name, value in partition.values
    )
    return bool(duckdb.sql(f"select 1 from (select {columns}) where {text}").fetchall())


@pytest.mark.parametrize("text", FILTERS)
@given(candidates=st.lists(PARTITIONS, max_size=4))
def test_partitions_that_are_kept_are_those_that_pass(
    text: str, candidates: list[Partition]
) -> None:
    found = _pruning(text).keep(candidates)

    assert found == {partition for partition in candidates if _passes(partition, text)}


@pytest.mark.parametrize("text", [None, "id > 5", "n = 1 or id = 5", "n = 1 and id = 5"])
@given(candidates=st.lists(PARTITIONS, max_size=3))
def test_filter_that_names_other_columns_leaves_nothing_out(
    text: str | None, candidates: list[Partition]
) -> None:
    assert _pruning(text).keep(candidates) == set(candidates)


def test_folder_without_partitions_is_kept() -> None:
    assert _pruning("id = 1", {}).keep([Partition(())]) == {Partition(())}


def test_filter_that_does_not_fit_the_columns_is_refused() -> None:
    with pytest.raises(PredicateInvalid, match="nothing"):
        _pruning("nothing = 1")


def test_value_that_is_none_of_its_type_is_refused_and_not_left_out() -> None:
    broken: Any = Partition((("dt", "2026-01-01"), ("n", "ten"), ("s", "a")))

    with pytest.raises(PartitionValueInvalid, match="ten"):
        _pruning("n > 1").keep([broken])


def test_files_are_judged_by_what_a_listing_knows_of_them() -> None:
    config = read_source(
        {
            "kind": "files",
            "path": "/lake",
            "partition_by": {"n": "int"},
            "metadata_columns": ["file.size"],
            "read": {"filter": "_file_size > 5 or n = 1"},
        }
    )
    pruning = PartitionPruning(config, SCHEMA)
    files = [(str(n), size) for n in (1, 2) for size in (5, 6)]

    found = pruning.passing(
        [(Partition((("n", n),)), FileFacts("/lake/a", size, 0)) for n, size in files]
    )

    assert pruning.asks_files
    assert found == [n == "1" or size > 5 for n, size in files]
