"""Whatever a filter or an equality delete is, a read has the rows that Python finds one by one.

Random rows with the ends of their types in all file formats, with the metrics that the engine's
writers give them, and partition values as Java counts them.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from iceberg_writer import Spec
from small_iceberg import Row, SmallIceberg
from tidegate import read_changes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

INNER = StructType(NestedField(9, "m", StringType(), required=True))
STRUCT = StructType(
    NestedField(7, "k", IntegerType()),
    NestedField(8, "inner", INNER),
    NestedField(10, "r", IntegerType(), required=True),
)
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "n", IntegerType()),
    NestedField(3, "l", LongType()),
    NestedField(4, "d", DateType()),
    NestedField(5, "t", TimestampType()),
    NestedField(11, "z", TimestamptzType()),
    NestedField(6, "st", STRUCT),
)
INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1
INTS = [INT_MIN, INT_MIN + 7, INT_MIN + 9, -10, -1, 0, 1, 9, INT_MAX - 9, INT_MAX]
LONGS = [LONG_MIN, LONG_MIN + 7, INT_MIN, -1, 0, 1, INT_MAX, LONG_MAX]
DATES = [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2026, 2, 1), date(9999, 12, 31)]
TIMES = [
    datetime(1, 1, 1),  # noqa: DTZ001
    datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    datetime(1970, 1, 1),  # noqa: DTZ001
    datetime(2026, 2, 1, 7, 30),  # noqa: DTZ001
    datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
]
# What pyarrow can read of ORC (ICE-6.18).
FAR_YEARS = (1, 9999)
TEXTS = ["", "a", "b'c", "ü"]
SMALL = [0, 1, 2]
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
Truth = Callable[[Row], bool | None]
Filter = tuple[str, Truth]


# How Java counts, said in plain words.


def _wrapped(number: int, bits: int) -> int:
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _truncated(width: int, bits: int) -> Callable[[int], int]:
    return lambda value: _wrapped(value - value % width, bits)


def _days(value: date) -> int:
    return (date(value.year, value.month, value.day) - EPOCH.date()).days


def _hours(value: datetime) -> int:
    return (value.replace(tzinfo=None) - EPOCH) // timedelta(hours=1)


def _old_hours(value: datetime) -> int:
    """As engines did that rounded towards 1970."""
    return -((EPOCH - value) // timedelta(hours=1)) if value < EPOCH else _hours(value)


def _old_days(value: datetime) -> int:
    return int(_old_hours(value.replace(tzinfo=None)) / 24)


SPECS: dict[str, tuple[str, int, str, str, Callable[[Any], Any]]] = {
    "truncated int": ("n", 2, "truncate[10]", "int", _truncated(10, 32)),
    "truncated to a power of two": ("n", 2, "truncate[16]", "int", _truncated(16, 32)),
    "truncated long": ("l", 3, "truncate[10]", "long", _truncated(10, 64)),
    "identity": ("n", 2, "identity", "int", lambda value: value),
    "years of dates": ("d", 4, "year", "int", lambda value: value.year - 1970),
    "months of dates": ("d", 4, "month", "int", lambda it: it.year * 12 + it.month - 1970 * 12 - 1),
    "days of dates": ("d", 4, "day", "date", _days),
    "years of times": ("t", 5, "year", "int", lambda value: value.year - 1970),
    "hours": ("t", 5, "hour", "int", _hours),
    "hours, rounded": ("t", 5, "hour", "int", _old_hours),
    "days of moments": ("z", 11, "day", "date", _days),
    "days of moments, rounded": ("z", 11, "day", "date", _old_days),
    "months of moments": ("z", 11, "month", "int", lambda it: it.year * 12 + it.month - 23641),
}
FORMATS = ["parquet", "orc", "avro"]


# Rows


def _rows(*, far: bool) -> st.SearchStrategy[list[Row]]:
    dates = [it for it in DATES if far or it.year not in FAR_YEARS]
    times = [it for it in TIMES if far or it.year not in FAR_YEARS]
    inner = st.none() | st.fixed_dictionaries({"m": st.sampled_from(TEXTS)})
    struct = st.fixed_dictionaries(
        {"k": st.none() | st.sampled_from(SMALL), "inner": inner, "r": st.sampled_from(SMALL)}
    )
    row = st.fixed_dictionaries(
        {
            "n": st.none() | st.sampled_from(INTS),
            "l": st.none() | st.sampled_from(LONGS),
            "d": st.none() | st.sampled_from(dates),
            "t": st.none() | st.sampled_from(times),
            "z": st.none() | st.sampled_from(times).map(lambda it: it.replace(tzinfo=UTC)),
            "st": st.none() | struct,
        }
    )
    return st.lists(row, min_size=1, max_size=5)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str | None, list[tuple[str, list[Row]]]]:
    """A partition spec, and commits: file format and rows."""
    commits = []
    for _ in range(draw(st.integers(1, 3))):
        file_format = draw(st.sampled_from(FORMATS))
        rows = draw(_rows(far=file_format != "orc"))
        commits.append((file_format, rows))
    for number, row in enumerate(row for _, rows in commits for row in rows):
        row["id"] = number
    return draw(st.none() | st.sampled_from(sorted(SPECS))), commits


def _written(root: Path, spec: str | None, commits: list[tuple[str, list[Row]]]) -> SmallIceberg:
    table = SmallIceberg(root, SCHEMA)
    if spec is not None:
        column, source, transform, kind, value_of = SPECS[spec]
        table.spec = Spec(1, ((1000, str(source), transform, kind),))
    for file_format, rows in commits:
        files: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in rows:
            found = () if spec is None else row[column]
            partition = (None if found is None else value_of(found),) if spec is not None else ()
            files[partition].append(row)
        for partition, held in files.items():
            table.append(held, file_format, partition)
    return table


# Filters


def _at(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = None if row is None else row[name]
    return row


OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COLUMNS: dict[str, list[Any]] = {
    "n": INTS,
    "l": LONGS,
    "d": DATES,
    "t": TIMES,
    "z": [value.replace(tzinfo=UTC) for value in TIMES],
    "st.k": SMALL,
    "st.r": SMALL,
    "st.inner.m": TEXTS,
}
EAST = timedelta(hours=2)


def _literal(draw: st.DrawFn, value: Any) -> str:
    """Write a value in one of the forms that name it."""
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None).isoformat(sep=draw(st.sampled_from(" T")))
        forms = [f"timestamp '{plain}'", f"'{plain}'", f"cast('{plain}' as timestamp)"]
        if value.tzinfo is not None:
            forms += [f"timestamptz '{plain}+00:00'", f"'{plain}Z'"]
            if value.year not in FAR_YEARS:
                east = (value + EAST).replace(tzinfo=None).isoformat(sep=" ")
                forms += [f"timestamp '{east}+02:00'", f"'{east}+02:00'"]
        return draw(st.sampled_from(forms))
    if isinstance(value, date):
        return draw(st.sampled_from([f"date '{value.isoformat()}'", f"'{value.isoformat()}'"]))
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else str(value)


@st.composite
def leaves(draw: st.DrawFn) -> Filter:
    """One comparison, and what it is for a row: True, False, or None for unknown."""
    path = draw(st.sampled_from(sorted(COLUMNS)))
    kind = draw(st.sampled_from(["null", "not null", "in", "not in", *OPERATORS]))
    if kind in ("null", "not null"):
        return f"{path} is {kind}", lambda row: (_at(row, path) is None) == (kind == "null")
    if kind in OPERATORS:
        value, compare = draw(st.sampled_from(COLUMNS[path])), OPERATORS[kind]
        return (
            f"{path} {kind} {_literal(draw, value)}",
            lambda row: None if _at(row, path) is None else compare(_at(row, path), value),
        )
    values = draw(st.lists(st.sampled_from(COLUMNS[path]), min_size=1, max_size=3))
    return (
        f"{path} {kind} ({', '.join(_literal(draw, value) for value in values)})",
        lambda row: (
            None if _at(row, path) is None else (_at(row, path) in values) == (kind == "in")
        ),
    )


def _not(one: Filter) -> Filter:
    def negated(row: Row) -> bool | None:
        found = one[1](row)
        return None if found is None else not found

    return f"not ({one[0]})", negated


def _both(one: Filter, other: Filter, word: str) -> Filter:
    decisive = word == "or"

    def joined(row: Row) -> bool | None:
        found = one[1](row), other[1](row)
        return decisive if decisive in found else None if None in found else not decisive

    return f"({one[0]}) {word} ({other[0]})", joined


filters = st.recursive(
    leaves(),
    lambda inner: inner.map(_not) | st.builds(_both, inner, inner, st.sampled_from(["and", "or"])),
    max_leaves=3,
)


@given(table=tables(), asked=st.lists(filters, min_size=3, max_size=3))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_filtered_read_has_the_rows_that_pass(
    table: tuple[str | None, list[tuple[str, list[Row]]]],
    asked: list[Filter],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    spec, commits = table
    written = _written(tmp_path_factory.mktemp("table"), spec, commits)

    for text, passes in asked:
        read = read_changes(written.config(read={"filter": text}), mode="snapshot").read_all()

        expected = [row["id"] for _, rows in commits for row in rows if passes(row) is True]
        assert sorted(read.column("id").to_pylist()) == expected, text


KEYS = {"n": 2, "d": 4, "z": 11, "st.k": 7, "st.r": 10, "st.inner.m": 9}


def _key(row: Row, paths: list[str]) -> tuple[Any, ...]:
    return tuple(_at(row, path) for path in paths)


@given(
    table=tables(),
    paths=st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2, unique=True),
    data=st.data(),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_read_lacks_the_rows_with_a_deleted_key(
    table: tuple[str | None, list[tuple[str, list[Row]]]],
    paths: list[str],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    spec, commits = table
    written = _written(tmp_path_factory.mktemp("table"), spec, commits)
    rows = [row for _, held in commits for row in held]
    far = any(
        each.year in FAR_YEARS for row in rows for each in (row["d"], row["t"], row["z"]) if each
    )
    keys = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=3))
    written.delete(
        keys,
        tuple(KEYS[path] for path in paths),
        data.draw(st.sampled_from(["parquet", "avro"] if far else FORMATS)),
    )

    read = read_changes(written.config(), mode="snapshot").read_all()

    deleted = {_key(row, paths) for row in keys}
    expected = [row["id"] for row in rows if _key(row, paths) not in deleted]
    assert sorted(read.column("id").to_pylist()) == expected
