"""Both engines see every column of every file as the type that all files share."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.gate.content import Footers
from tidegate.gate.frame import in_spark, seen, to_pandas, with_constants
from tidegate.gate.suite import Sees

BROAD = Context(prec=50)
WHOLE = [*range(-(2**63), -(2**63) + 3), *range(2**53, 2**53 + 3)]


@given(values=st.lists(st.none() | st.sampled_from(WHOLE)))
def test_whole_numbers_keep_every_digit_beside_nulls(values: list[int | None]) -> None:
    frame = to_pandas(pa.table({"n": pa.array(values, pa.int64())}))

    assert frame["n"].isna().tolist() == [value is None for value in values]
    assert [int(value) for value in frame["n"].dropna()] == [it for it in values if it is not None]


@given(
    digits=st.integers(1, 38),
    places=st.integers(0, 38),
    values=st.lists(st.none() | st.integers(), min_size=1, max_size=5),
)
@example(digits=38, places=18, values=[11 * 10**17])
def test_decimals_are_floats_unless_digits_would_be_lost(
    digits: int, places: int, values: list[int | None]
) -> None:
    places = min(places, digits)
    most = 10**digits
    exact = [None if it is None else Decimal(it % most).scaleb(-places, BROAD) for it in values]
    rows = pa.table({"d": pa.array(exact, pa.decimal128(digits, places))})
    known = [it for it in exact if it is not None]

    shown = seen(rows, Sees.ROWS)["d"].dropna().tolist()
    numbers = seen(rows, Sees.NUMBERS)["d"].dropna().tolist()
    stored = seen(rows, Sees.TYPES)["d"].dropna().tolist()

    assert stored == known
    assert all(isinstance(it, float) for it in numbers)
    assert numbers == pytest.approx([float(it) for it in known])
    if all(Decimal(repr(float(it))) == it for it in known):
        assert shown == [float(it) for it in known]
        assert all(isinstance(it, float) for it in shown)
    else:
        assert shown == known
        assert all(isinstance(it, Decimal) for it in shown)


def test_frame_without_columns_has_the_rows() -> None:
    empty = pa.table({"n": [1, 2, 3]}).select([])

    assert len(to_pandas(empty)) == 3


@dataclass
class Frame:
    """A Spark frame as far as it is asked: which files, which columns, what was done."""

    files: list[str]
    columns: list[str]
    done: list[Any] = field(default_factory=list)

    def unionByName(self, other: Frame, *, allowMissingColumns: bool) -> Frame:  # noqa: N802, N803
        assert allowMissingColumns
        columns = [*self.columns, *(it for it in other.columns if it not in self.columns)]
        return Frame([*self.files, *other.files], columns, [*self.done, "union"])

    def select(self, *columns: str) -> Frame:
        return Frame(self.files, list(columns), self.done)

    def selectExpr(self, *texts: str) -> Frame:  # noqa: N802
        return Frame(self.files, self.columns, [*self.done, *texts])


def _footers(**files: pa.Schema) -> Footers:
    schema = pa.unify_schemas(list(files.values()), promote_options="permissive")
    return Footers(1, schema, {}, files)


def _read(footers: Footers, columns: list[str]) -> tuple[list[list[str]], Frame]:
    read: list[list[str]] = []

    def spark_frame(files: list[str], columns: list[str]) -> Frame:
        read.append(files)
        return Frame(files, columns)

    return read, in_spark(spark_frame, footers, columns)


LONG, INT = pa.schema([("a", pa.int64())]), pa.schema([("a", pa.int32())])
OTHER = pa.schema([("b", pa.string())])


def test_files_that_agree_are_read_together() -> None:
    read, frame = _read(_footers(x=LONG, y=LONG), ["a"])

    assert read == [["x", "y"]]
    assert (frame.columns, frame.done) == (["a"], [])


def test_files_of_unlike_types_are_read_apart_and_joined() -> None:
    """Spark reads files together only if they agree on the types of their columns."""
    read, frame = _read(_footers(x=LONG, y=INT, z=LONG), ["a"])

    assert read == [["x", "z"], ["y"]]
    assert frame.done == ["union"]
    assert frame.columns == ["`a`"]


def test_files_that_agree_on_one_column_only_are_read_apart() -> None:
    one = pa.schema([("a", pa.int64()), ("b", pa.int32())])
    other = pa.schema([("a", pa.int64()), ("b", pa.int64())])

    read, _ = _read(_footers(x=one, y=other), ["a", "b"])

    assert read == [["x"], ["y"]]


def test_file_that_lacks_a_column_is_read_with_any_other() -> None:
    read, frame = _read(_footers(x=LONG, y=OTHER), ["a", "b"])

    assert read == [["x", "y"]]
    assert frame.columns == ["a", "b"]


def test_types_inside_of_structs_are_compared_field_by_field() -> None:
    def struct(**kinds: pa.DataType) -> pa.Schema:
        return pa.schema([("s", pa.struct(list(kinds.items())))])

    alike, _ = _read(_footers(x=struct(f=pa.int64()), y=struct(g=pa.int64())), ["s"])
    unlike, _ = _read(_footers(x=struct(f=pa.int64()), y=struct(f=pa.int32())), ["s"])

    assert alike == [["x", "y"]]
    assert unlike == [["x"], ["y"]]


def test_types_of_columns_that_are_not_read_do_not_matter() -> None:
    one = pa.schema([("a", pa.int64()), ("b", pa.int32())])
    other = pa.schema([("a", pa.int64()), ("b", pa.int64())])

    read, _ = _read(_footers(x=one, y=other), ["a"])

    assert read == [["x", "y"]]


def test_frame_without_files_has_the_columns_and_their_types() -> None:
    schema = pa.schema(
        [
            ("a", pa.uint32()),
            ("odd `name`", pa.struct([("t", pa.timestamp("us", "UTC"))])),
            ("d", pa.list_(pa.decimal128(9, 2))),
        ]
    )

    _, frame = _read(Footers(0, schema, {}, {}), schema.names)

    assert frame.done == [
        "CAST(NULL AS BIGINT) AS `a`",
        "CAST(NULL AS STRUCT<`t`: TIMESTAMP>) AS `odd ``name```",
        "CAST(NULL AS ARRAY<DECIMAL(9, 2)>) AS `d`",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("it's", r"'it\'s' AS `p`"),
        ("back\\slash", r"'back\\slash' AS `p`"),
        (None, "CAST(NULL AS STRING) AS `p`"),
    ],
)
def test_partition_value_is_added_as_text_whatever_stands_in_it(
    value: str | None, expected: str
) -> None:
    found = with_constants(Frame([], []), {"p": value})

    assert found.done == ["*", expected]
