"""Values, paths and keys of a target are one to one, whatever the name of NULL (PC-P07)."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PartitionPathInvalid, PartitionValueReserved
from tidegate.model.partition import DEFAULT_NAME, Partition, PartitionField, Transform
from tidegate.stage.partition_split import PartitionComputer
from tidegate.target.partitioning import Partitioning

texts = st.text(min_size=1, max_size=8)
default_names = st.just(DEFAULT_NAME) | texts
key_names = texts.filter(lambda text: not text.startswith(("_", ".")))


@st.composite
def targets(draw: st.DrawFn) -> tuple[Partitioning, list[tuple[str | None, ...]]]:
    """Make a target and rows of its values; many are spelled like a name of NULL."""
    names = draw(st.lists(key_names, min_size=1, max_size=3, unique=True))
    partitioning = Partitioning(tuple(names), draw(default_names))
    value = st.none() | texts | st.sampled_from([DEFAULT_NAME, partitioning.default_name])
    rows = draw(st.lists(st.tuples(*[value] * len(names)), min_size=1, max_size=12))
    return partitioning, rows


def partitions_of(
    partitioning: Partitioning, rows: list[tuple[str | None, ...]]
) -> list[Partition]:
    """Give the partition of each row, as staging computes it."""
    columns = [f"c{number}" for number in range(len(partitioning.names))]
    arrays = [
        pa.array([row[number] for row in rows], pa.string()) for number in range(len(columns))
    ]
    batch = pa.RecordBatch.from_arrays(arrays, columns)
    fields = [
        PartitionField(name, column, Transform.IDENTITY)
        for name, column in zip(partitioning.names, columns, strict=True)
    ]
    computer = PartitionComputer(batch.schema, fields, default_name=partitioning.default_name)
    split = computer.split(batch)
    return [split.partitions[code] for code in split.codes]


@given(targets())
def test_any_values_are_read_back_from_their_path_and_key_or_refused(
    made: tuple[Partitioning, list[tuple[str | None, ...]]],
) -> None:
    """PC-V35."""
    partitioning, rows = made
    if any(partitioning.default_name in row for row in rows):
        with pytest.raises(PartitionValueReserved):
            partitions_of(partitioning, rows)
        return

    partitions = partitions_of(partitioning, rows)

    for row, partition in zip(rows, partitions, strict=True):
        assert tuple(value for _, value in partition.values) == row
        assert partitioning.parse(partition.path) == partition
        assert partitioning.read(partition.path) == partition
        assert Partition.from_text(partition.to_text()) == partition


@given(targets())
def test_different_values_never_share_a_path_or_a_key(
    made: tuple[Partitioning, list[tuple[str | None, ...]]],
) -> None:
    partitioning, rows = made
    good = [row for row in rows if partitioning.default_name not in row]
    partitions = set(partitions_of(partitioning, good)) if good else set()

    assert len({partition.path for partition in partitions}) == len(partitions) == len(set(good))
    assert len({partition.key for partition in partitions}) == len(partitions)
    assert {partitioning.read(partition.key) for partition in partitions} == partitions


def test_name_of_null_is_no_part_of_a_partition_that_has_every_value() -> None:
    assert Partition((("k", "eu"),), "none") == Partition((("k", "eu"),))
    assert Partition((("k", None),), "none") != Partition((("k", None),))
    assert Partition((("k", None),), DEFAULT_NAME) == Partition((("k", None),))


def test_keys_in_another_order_are_no_path_of_the_target() -> None:
    partitioning = Partitioning(("dt", "currency"), DEFAULT_NAME)

    with pytest.raises(PartitionPathInvalid, match=r"expected dt=…/currency=…"):
        partitioning.read("currency=EUR/dt=2026-02-01")


def test_key_with_too_few_values_is_refused() -> None:
    with pytest.raises(PartitionPathInvalid):
        Partitioning(("dt", "currency"), DEFAULT_NAME).read("2026-02-01")


@pytest.mark.parametrize(
    "key",
    ["none_given", "a_2", "a_2d", "_FF", "_41", "%41", "a b", "a..b", "_", "_null_x", "~a", ""],
)
def test_key_with_an_escape_that_is_none_is_refused(key: str) -> None:
    names = ("k",) if "~" not in key else ("k", "l")

    with pytest.raises(PartitionPathInvalid):
        Partitioning(names, DEFAULT_NAME).read(key)


@pytest.mark.parametrize("text", ["publish", "", "2026-02-01", "a~b~c", "dt=2026-02-01", "dt="])
def test_name_that_can_be_no_partition_is_answered_with_one_that_can(text: str) -> None:
    partitioning = Partitioning(("dt", "currency"), DEFAULT_NAME, ("2026-11-01", "value"))

    with pytest.raises(PartitionPathInvalid) as refused:
        partitioning.read(text)

    shown = re.search(r"such as (\S+), or its key such as (\S+)$", refused.value.expected)
    assert shown is not None
    assert partitioning.read(shown[1]) == partitioning.read(shown[2]) == partitioning.example


def test_target_without_keys_has_one_partition() -> None:
    whole = Partitioning((), DEFAULT_NAME)

    assert whole.read("all") == whole.parse("") == Partition(())
    with pytest.raises(PartitionPathInvalid, match="no partitions"):
        whole.read("dt=2026-02-01")
