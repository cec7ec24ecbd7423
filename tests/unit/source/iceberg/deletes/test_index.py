"""The index finds exactly the deletes that the rules say, and refuses what contradicts itself."""

from __future__ import annotations

import struct
from dataclasses import replace
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DoubleType, LongType, StringType

from iceberg_states import entry_of, metrics_of
from tidegate.errors import AmbiguousPath, CorruptDeletes, UnsupportedFeature
from tidegate.source.iceberg.deletes.entries import found_delete
from tidegate.source.iceberg.deletes.index import DeleteIndex
from tidegate.source.iceberg.deletes.rules import DeleteRules, KeyField
from tidegate.source.iceberg.manifests.entries import Content, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.source.iceberg.manifests.metrics import Metrics

KEY, NAME, RATIO, FILE_PATH = 1, 2, 3, 2147483546
GLOBAL, BY_REGION, BY_RATIO = 0, 1, 2
RULES = DeleteRules(
    source="lake.orders",
    global_specs=frozenset({GLOBAL}),
    key_fields={
        KEY: KeyField(LongType(), False),
        NAME: KeyField(StringType(), False),
        RATIO: KeyField(DoubleType(), False),
    },
    partition_types={},
    exact_paths=False,
)


def _vector(target: str | None, **values: Any) -> Entry:
    parts = {"content_offset": 4, "content_size": 40, "sequence_number": 2}
    return entry_of(
        content=Content.POSITION_DELETES,
        file_format="puffin",
        referenced=target,
        **(parts | values),
    )


def _keys(**values: Any) -> Entry:
    return entry_of(
        **(
            {"content": Content.EQUALITY_DELETES, "equality_ids": (KEY,), "sequence_number": 2}
            | values
        )
    )


def _long(value: int) -> bytes:
    return struct.pack("<q", value)


def _index(rules: DeleteRules, deletes: Iterable[Entry]) -> DeleteIndex:
    return DeleteIndex(rules, [found_delete(entry, rules) for entry in deletes])


def _paths(index: DeleteIndex, entry: Entry, rivals: tuple[str, ...] = ()) -> set[str]:
    return {file.path for file in index.applying(entry, rivals)}


# An obvious oracle: every delete is compared with every data file, rule by rule.


def _same_partition(one: Entry, other: Entry) -> bool:
    return (
        one.spec_id == other.spec_id
        and len(one.partition) == len(other.partition)
        and all(
            repr(mine) == repr(its)
            for mine, its in zip(one.partition, other.partition, strict=True)
        )
    )


def _addresses(delete: Entry) -> str | None:
    if delete.referenced:
        return delete.referenced
    found = delete.metrics
    if found and FILE_PATH in found.lower_bounds:
        low, high = found.lower_bounds[FILE_PATH], found.upper_bounds[FILE_PATH]
        return low.decode() if low == high else None
    return None


def _no_overlap(delete: Metrics, rows: Metrics, field: int) -> bool:
    if field not in delete.lower_bounds or field not in rows.lower_bounds:
        return False
    values = [
        struct.unpack("<q", it)[0]
        for it in (
            delete.lower_bounds[field],
            delete.upper_bounds[field],
            rows.lower_bounds[field],
            rows.upper_bounds[field],
        )
    ]
    return values[1] < values[2] or values[3] < values[0]


def _is_pruned(delete: Entry, rows: Entry) -> bool:
    one, other = delete.metrics, rows.metrics
    if one is None or other is None:
        return False
    for field in delete.equality_ids:
        nulls = (one.null_value_counts.get(field), other.null_value_counts.get(field))
        empty = [number == 0 for number in nulls]
        full = [number == 10 for number in nulls]
        if (full[1] and empty[0]) or (full[0] and empty[1]):
            return True
        if _no_overlap(one, other, field) and any(empty):
            return True
    return False


def _applies(delete: Entry, rows: Entry) -> bool:
    if delete.content == Content.EQUALITY_DELETES:
        in_scope = delete.spec_id == GLOBAL or _same_partition(delete, rows)
        younger = rows.sequence_number < delete.sequence_number
        return in_scope and younger and not _is_pruned(delete, rows)
    if rows.sequence_number > delete.sequence_number:
        return False
    target = _addresses(delete)
    if target is not None:
        return target == rows.path
    found = delete.metrics
    if found and FILE_PATH in found.lower_bounds:
        low, high = found.lower_bounds[FILE_PATH], found.upper_bounds[FILE_PATH]
        if not low <= rows.path.encode() <= high:
            return False
    return _same_partition(delete, rows)


def _oracle(deletes: list[Entry], rows: Entry) -> set[str]:
    found = [delete for delete in deletes if _applies(delete, rows)]
    if any(delete.file_format == "puffin" for delete in found):
        found = [
            delete
            for delete in found
            if delete.file_format == "puffin" or delete.content == Content.EQUALITY_DELETES
        ]
    return {delete.path for delete in found}


ROWS = [f"s3://lake/data/rows-{number}.parquet" for number in range(6)]
partitions = st.sampled_from(
    [
        (GLOBAL, ()),
        (BY_REGION, ("eu",)),
        (BY_REGION, (None,)),
        (BY_RATIO, (0.0,)),
        (BY_RATIO, (-0.0,)),
        (BY_RATIO, (nan,)),
        (BY_RATIO, (inf,)),
    ]
)
sequences = st.integers(1, 5)
ranges = st.tuples(st.integers(0, 20), st.integers(0, 6)).map(
    lambda it: (_long(it[0]), _long(it[0] + it[1]))
)
key_metrics = st.none() | st.builds(
    metrics_of,
    st.dictionaries(st.sampled_from([KEY, 4]), ranges, max_size=2),
    st.dictionaries(st.sampled_from([KEY, 4]), st.sampled_from([0, 3, 10]), max_size=2),
)
path_metrics = st.none() | st.tuples(st.sampled_from(ROWS), st.sampled_from(ROWS)).map(
    lambda it: metrics_of({FILE_PATH: (min(it).encode(), max(it).encode())}, {})
)
WIDE_RULES = replace(
    RULES, key_fields={**RULES.key_fields, 4: KeyField(LongType(), required=False)}
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """Data files and deletes that do not contradict each other."""
    rows = [
        entry_of(
            path=path,
            sequence_number=draw(sequences),
            spec_id=spec,
            partition=values,
            metrics=draw(key_metrics),
        )
        for path, (spec, values) in ((path, draw(partitions)) for path in ROWS)
    ]
    by_path = {entry.path: entry for entry in rows}
    deletes = []
    for _ in range(draw(st.integers(0, 8))):
        spec, values = draw(partitions)
        deletes.append(
            _keys(
                sequence_number=draw(sequences),
                spec_id=spec,
                partition=values,
                metrics=draw(key_metrics),
                equality_ids=draw(st.sampled_from([(KEY,), (4,), (KEY, 4)])),
            )
        )
    for _ in range(draw(st.integers(0, 8))):
        spec, values = draw(partitions)
        found = entry_of(
            content=Content.POSITION_DELETES,
            sequence_number=draw(sequences),
            spec_id=spec,
            partition=values,
            metrics=draw(path_metrics),
        )
        target = by_path.get(_addresses(found) or "")
        if target:
            found = found._replace(spec_id=target.spec_id, partition=target.partition)
        deletes.append(found)
    for target in draw(st.lists(st.sampled_from(rows), unique_by=lambda it: it.path, max_size=3)):
        deletes.append(
            _vector(
                target.path,
                sequence_number=target.sequence_number + draw(st.integers(0, 2)),
                spec_id=target.spec_id,
                partition=target.partition,
            )
        )
    return rows, deletes


@given(tables())
def test_index_gives_what_comparing_each_pair_gives(
    table: tuple[list[Entry], list[Entry]],
) -> None:
    rows, deletes = table

    index = _index(WIDE_RULES, deletes)

    for entry in rows:
        assert _paths(index, entry) == _oracle(deletes, entry)


@given(tables())
def test_scheme_of_the_delete_s_paths_does_not_matter(
    table: tuple[list[Entry], list[Entry]],
) -> None:
    rows, deletes = table
    index = _index(WIDE_RULES, deletes)
    moved = [
        entry._replace(path=entry.path.replace("s3://lake", "hdfs://node:9000")) for entry in rows
    ]

    assert [_paths(index, entry) for entry in moved] == [_paths(index, entry) for entry in rows]


def test_exact_paths_tell_schemes_apart() -> None:
    rows = entry_of(path="s3a://lake/data/a.parquet")
    index = _index(replace(RULES, exact_paths=True), [_vector("s3://lake/data/a.parquet")])

    assert _paths(index, rows) == set()


def test_position_deletes_of_the_same_commit_apply_and_equality_deletes_do_not() -> None:
    rows = entry_of(sequence_number=3)
    positions = entry_of(content=Content.POSITION_DELETES, sequence_number=3)
    keys = _keys(sequence_number=3)

    assert _paths(_index(RULES, [positions, keys]), rows) == {positions.path}


def test_metrics_rule_out_and_count_equality_deletes() -> None:
    rows = entry_of(metrics=metrics_of({KEY: (_long(1), _long(9))}, {KEY: 0}))
    apart = _keys(metrics=metrics_of({KEY: (_long(10), _long(12))}, {KEY: 1}))
    touching = _keys(metrics=metrics_of({KEY: (_long(9), _long(12))}, {KEY: 1}))
    index = _index(RULES, [apart, touching])

    assert _paths(index, rows) == {touching.path}
    assert index.ruled_out == 1


def test_bound_of_a_promoted_column_is_read_by_its_length() -> None:
    rows = entry_of(
        metrics=metrics_of({KEY: (struct.pack("<i", 1), struct.pack("<i", 9))}, {KEY: 0})
    )
    apart = _keys(metrics=metrics_of({KEY: (_long(10), _long(12))}, {KEY: 0}))

    assert _paths(_index(RULES, [apart]), rows) == set()


@pytest.mark.parametrize("bound", [b"", b"\x01\x02\x03"], ids=["empty", "odd-length"])
def test_bound_that_cannot_be_read_rules_nothing_out(bound: bytes) -> None:
    rows = entry_of(metrics=metrics_of({KEY: (bound, bound)}, {KEY: 0}))
    apart = _keys(metrics=metrics_of({KEY: (_long(10), _long(12))}, {KEY: 0}))

    assert _paths(_index(RULES, [apart]), rows) == {apart.path}


def test_bounds_of_several_schemes_rule_nothing_out() -> None:
    rows = entry_of(path="s3://lake/m.parquet")
    bounds = {FILE_PATH: (b"hdfs://node/z.parquet", b"s3://lake/a.parquet")}
    delete = entry_of(
        content=Content.POSITION_DELETES, sequence_number=2, metrics=metrics_of(bounds, {})
    )

    assert _paths(_index(RULES, [delete]), rows) == {delete.path}


def test_deletes_of_files_that_are_gone_dangle() -> None:
    rows = entry_of()
    index = _index(RULES, [_vector("s3://lake/gone.parquet"), _vector(rows.path)])

    index.applying(rows)

    assert index.dangling == 1


ROW = entry_of(path="s3://lake/data/a.parquet", sequence_number=3)


@pytest.mark.parametrize(
    ("deletes", "problem"),
    [
        ([_vector(ROW.path, sequence_number=3), _vector(ROW.path, sequence_number=4)], "one"),
        (
            [
                _vector(ROW.path, sequence_number=3),
                _vector("s3a://lake/data/a.parquet", sequence_number=4),
            ],
            "another one in",
        ),
        ([_vector(ROW.path, sequence_number=2)], "sequence number 3"),
        ([_vector(ROW.path, sequence_number=3, spec_id=1, partition=("eu",))], "partition"),
        (
            [
                entry_of(
                    content=Content.POSITION_DELETES,
                    sequence_number=3,
                    referenced=ROW.path,
                    spec_id=1,
                )
            ],
            "partition",
        ),
        ([_vector(None)], "no referenced_data_file"),
        ([_vector(ROW.path, content_offset=None)], "no content_offset"),
        ([_vector(ROW.path, content_size=None)], "no content_size_in_bytes"),
        ([_keys(equality_ids=())], "found none"),
        ([_keys(equality_ids=(99,))], "found 99"),
        ([entry_of(content=Content.ROWS)], "content 0"),
    ],
    ids=[
        "two-vectors",
        "two-vectors-by-scheme",
        "vector-older-than-file",
        "vector-of-another-partition",
        "positions-of-another-partition",
        "vector-without-reference",
        "vector-without-offset",
        "vector-without-size",
        "keys-without-ids",
        "keys-with-unknown-ids",
        "data-file-among-deletes",
    ],
)
def test_deletes_that_contradict_themselves_are_corrupt(deletes: list[Entry], problem: str) -> None:
    with pytest.raises(CorruptDeletes, match=problem) as refused:
        _index(RULES, deletes).applying(ROW)

    assert refused.value.path in {delete.path for delete in deletes}


def test_equality_delete_by_a_floating_point_number_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="double"):
        _index(RULES, [_keys(equality_ids=(RATIO,))])


def test_encrypted_delete_file_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="encrypted"):
        _index(RULES, [_keys(encrypted=True)])


def test_rivals_are_told_apart_by_exact_path() -> None:
    rows = [entry_of(path=f"s3://{bucket}/a.parquet") for bucket in ("one", "two")]
    vectors = [_vector(entry.path) for entry in rows]
    index = _index(RULES, vectors)

    assert _paths(index, rows[0], (rows[1].path,)) == {vectors[0].path}
    assert _paths(index, rows[1], (rows[0].path,)) == {vectors[1].path}


def test_delete_of_neither_rival_is_ambiguous() -> None:
    rows = [entry_of(path=f"s3://{bucket}/a.parquet") for bucket in ("one", "two")]
    index = _index(RULES, [_vector("s3a://one/a.parquet")])

    with pytest.raises(AmbiguousPath, match="s3a://one"):
        index.applying(rows[0], (rows[1].path,))
