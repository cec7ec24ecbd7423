"""A manifest that deletes are said not to touch holds no file that one applies to (ICE-3.10)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import LongType, StringType

from iceberg_states import entry_of
from tidegate.source.iceberg.changes.reach import Reach
from tidegate.source.iceberg.deletes.entries import found_delete
from tidegate.source.iceberg.deletes.index import DeleteIndex
from tidegate.source.iceberg.deletes.rules import DeleteRules, KeyField
from tidegate.source.iceberg.manifests.entries import Content, Entry

KEY, GLOBAL, BY_REGION, OF_UNKNOWN_TYPE = 1, 0, 1, 2
RULES = DeleteRules(
    source="lake.orders",
    global_specs=frozenset({GLOBAL}),
    key_fields={KEY: KeyField(LongType(), required=False)},
    partition_types={
        GLOBAL: (),
        BY_REGION: (StringType(), LongType()),
        OF_UNKNOWN_TYPE: (None, LongType()),
    },
    exact_paths=False,
)
SPECS = st.sampled_from([GLOBAL, BY_REGION, OF_UNKNOWN_TYPE])
VALUES = st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.integers(-2, 2))


@dataclass(frozen=True)
class Summary:
    """What a manifest list says of one partition field."""

    contains_null: bool
    lower_bound: bytes | None
    upper_bound: bytes | None


@dataclass(frozen=True)
class Listed:
    """What a manifest list says of a manifest."""

    partition_spec_id: int
    min_sequence_number: int | None
    partitions: list[Summary] | None


def _partition(spec: int, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if spec == GLOBAL else values


@st.composite
def data_files(draw: st.DrawFn) -> list[Entry]:
    """Draw the files of one manifest."""
    spec = draw(SPECS)
    return [
        entry_of(spec_id=spec, partition=_partition(spec, values), sequence_number=sequence)
        for values, sequence in draw(
            st.lists(st.tuples(VALUES, st.integers(1, 4)), min_size=1, max_size=3)
        )
    ]


@st.composite
def deletes(draw: st.DrawFn) -> Entry:
    """Draw an equality or position delete file of one partition, or of all."""
    spec = draw(SPECS)
    kind: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"content": Content.EQUALITY_DELETES, "equality_ids": (KEY,)},
                {"content": Content.POSITION_DELETES},
            ]
        )
    )
    place = {"spec_id": spec, "partition": _partition(spec, draw(VALUES))}
    return entry_of(**kind, **place, sequence_number=draw(st.integers(1, 4)))


def _listed(files: list[Entry]) -> Listed:
    columns = list(zip(*(file.partition for file in files), strict=True))
    kinds = (StringType(), LongType())
    return Listed(
        files[0].spec_id,
        min(file.sequence_number for file in files),
        [_summary(kind, list(column)) for kind, column in zip(kinds, columns, strict=False)],
    )


def _summary(kind: Any, column: list[Any]) -> Summary:
    known = [value for value in column if value is not None]
    bounds = [to_bytes(kind, each(known)) if known else None for each in (min, max)]
    return Summary(len(known) < len(column), *bounds)


@pytest.mark.parametrize("spec", [GLOBAL, BY_REGION, OF_UNKNOWN_TYPE])
def test_delete_reaches_the_manifest_of_every_file_that_it_applies_to(spec: int) -> None:
    places = list(product([None, "a", "b"], [None, 0, 1]))
    kinds: list[dict[str, Any]] = [
        {"content": Content.EQUALITY_DELETES, "equality_ids": (KEY,)},
        {"content": Content.POSITION_DELETES},
    ]

    for place, other, age, kind in product(places, places, (1, 2, 3), kinds):
        file = entry_of(spec_id=spec, partition=_partition(spec, place), sequence_number=2)
        told = entry_of(
            spec_id=spec, partition=_partition(spec, other), sequence_number=age, **kind
        )
        delete = found_delete(told, RULES)
        applies = DeleteIndex(RULES, [delete]).touches(file)
        assert Reach(RULES, [delete]).touches(_listed([file])) >= applies


@given(files=data_files(), found=st.lists(deletes(), max_size=4))
def test_manifest_out_of_reach_has_no_file_that_a_delete_applies_to(
    files: list[Entry], found: list[Entry]
) -> None:
    told = [found_delete(entry, RULES) for entry in found]

    is_reached = Reach(RULES, told).touches(_listed(files))

    index = DeleteIndex(RULES, told)
    assert is_reached or not any(index.touches(file) for file in files)


@given(files=data_files(), found=st.lists(deletes(), max_size=4))
def test_manifest_that_says_nothing_of_its_partitions_is_reached_in_its_spec(
    files: list[Entry], found: list[Entry]
) -> None:
    silent = Listed(files[0].spec_id, None, None)

    is_reached = Reach(RULES, [found_delete(entry, RULES) for entry in found]).touches(silent)

    everywhere = [it for it in found if it.equality_ids and it.spec_id == GLOBAL]
    assert is_reached == bool(
        everywhere or any(it.spec_id == silent.partition_spec_id for it in found)
    )


def test_manifest_of_another_partition_or_of_younger_files_is_out_of_reach() -> None:
    keys = {"content": Content.EQUALITY_DELETES, "equality_ids": (KEY,), "sequence_number": 3}
    delete = found_delete(entry_of(**keys, spec_id=BY_REGION, partition=("b", 1)), RULES)
    reach = Reach(RULES, [delete])

    def touches(region: str, number: int, sequence: int) -> bool:
        place = {"spec_id": BY_REGION, "partition": (region, number)}
        return reach.touches(_listed([entry_of(**place, sequence_number=sequence)]))

    assert touches("b", 1, 3)
    assert not touches("b", 1, 4)
    assert not touches("a", 1, 1)
    assert not touches("b", 2, 1)


def test_bound_that_cannot_be_read_puts_nothing_out_of_reach() -> None:
    place = {"spec_id": BY_REGION, "partition": ("b", 1)}
    delete = found_delete(entry_of(content=Content.POSITION_DELETES, **place), RULES)
    odd = Summary(False, b"\x01\x02\x03", b"\x01")
    right = _summary(StringType(), ["b"])

    assert Reach(RULES, [delete]).touches(Listed(BY_REGION, 1, [right, odd]))
