"""CSV rows are what Python's module and DuckDB read, and no value is lost in silence."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical import csv as module
from tidegate.physical.csv import CsvDialect, CsvFile, CsvRows, header_of
from tidegate.physical.streamed import ALL_ROWS, InvalidRow
from tidegate.physical.text_stream import BLOCK_BYTES, MOST_BYTES

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {"id": pa.int64(), "text": pa.string()}
INSTANT = pa.timestamp("us", "UTC")
WALL_CLOCK = pa.timestamp("us")


def read(
    content: bytes,
    types: dict[str, pa.DataType] | None = None,
    columns: list[str] | None = None,
    **dialect: Any,
) -> list[dict[str, Any]]:
    """Read all rows."""
    source = CsvFile(pa.BufferReader(content), CsvDialect(**dialect))
    with CsvRows(source, TYPES if types is None else types) as rows:
        names = rows.schema.names if columns is None else columns
        return [row for _, batch in rows.batches(names, 0, ALL_ROWS) for row in batch.to_pylist()]


def refused(content: bytes, types: dict[str, pa.DataType] | None = None, **keys: Any) -> InvalidRow:
    """Return the error of a file that cannot be read."""
    with pytest.raises(InvalidRow) as failed:
        read(content, types, **keys)
    return failed.value


VALUES = st.text(st.sampled_from('ab",;\n\r \\é#'), max_size=6)
DIALECTS = st.sampled_from([{}, {"delimiter": ";"}, {"delimiter": "\t"}, {"quote": "'"}])


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), max_size=5)
    ),
    DIALECTS,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_texts_are_read_as_python_writes_them(
    rows: list[list[str]], dialect: dict[str, str], ending: str, is_ended: bool
) -> None:
    names = [f"c{index}" for index in range(len(rows[0]) if rows else 2)]
    file = io.StringIO(newline="")
    writer = csv.writer(
        file,
        delimiter=dialect.get("delimiter", ","),
        quotechar=dialect.get("quote", '"'),
        lineterminator=ending,
        quoting=csv.QUOTE_ALL,
    )
    writer.writerows([names, *rows])
    text = file.getvalue()

    content = (text if is_ended else text.removesuffix(ending)).encode()
    found = read(content, quoted_null=False, **dialect)

    assert [list(row.values()) for row in found] == rows


SAME_AS_DUCKDB = {
    "plain": "id,text\n1,x\n2,y\n",
    "no line break at the end": "id,text\n1,x",
    "carriage returns": 'id,text\r\n1,x\r\n2,"y\r\nz"\r\n',
    "quoted line breaks": 'id,text\n1,"x\ny"\n2,z\n',
    "doubled quotes": 'id,text\n1,"x ""y"" z"\n',
    "byte order mark": "\ufeffid,text\n1,x\n",
    "only a header": "id,text\n",
    "missing values": "id,text\n1,\n,x\n",
    "empty text": 'id,text\n1,""\n',
    "other order": "text,id\nx,1\n",
    "empty lines": "id,text\n1,x\n\n2,y\n",
    "delimiter in quotes": 'id,text\n1,"x,y"\n',
    "not ascii": "id,text\n1,é東\n",
}


@pytest.mark.parametrize("text", SAME_AS_DUCKDB.values(), ids=SAME_AS_DUCKDB)
def test_rows_are_those_of_duckdb(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(text.encode())
    types = "{'id': 'BIGINT', 'text': 'VARCHAR'}"
    asked = f"SELECT id, text FROM read_csv('{file}', header=true, delim=',', types={types})"

    found = [(row["id"], row["text"]) for row in read(text.encode())]

    assert found == duckdb.sql(asked).fetchall()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.bool_(), "TRUE", True),
        (pa.float64(), "1e3", 1000.0),
        (pa.date32(), "2026-02-01", "2026-02-01"),
        (INSTANT, "2026-02-01T10:00:00+02:00", "2026-02-01 08:00:00+00:00"),
        (WALL_CLOCK, "2026-02-01 10:00:00.5", "2026-02-01 10:00:00.500000"),
        (pa.decimal128(10, 2), "1.5", "1.50"),
    ],
)
def test_value_has_the_type_of_its_column(kind: pa.DataType, text: str, value: Any) -> None:
    (row,) = read(f"v,w\n{text},x\n".encode(), {"v": kind})

    assert row["v"] == value or str(row["v"]) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int64(), "1.0"),
        (pa.int64(), "eight"),
        (pa.int64(), "9223372036854775808"),
        (pa.int32(), "3000000000"),
        (pa.bool_(), "1"),
        (pa.float64(), "1,5"),
        (pa.date32(), "01.02.2026"),
        (INSTANT, "2026-02-01T10:00:00"),
        (WALL_CLOCK, "2026-02-01T10:00:00Z"),
        (WALL_CLOCK, "2026-02-01T10:00:00.1234567"),
        (pa.decimal128(10, 2), "1.555"),
    ],
)
def test_value_of_another_type_is_refused_with_its_row_and_column(
    kind: pa.DataType, text: str
) -> None:
    found = refused(f'v,w\n,x\n"{text}",x\n'.encode(), {"v": kind})

    assert (found.row, found.column) == (3, "v")
    assert str(kind) in found.problem


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (INSTANT, "2026-02-01 10:00:00", "which has no zone; `timestamp_ntz` in `source.columns`"),
        (WALL_CLOCK, "2026-02-01T10:00:00Z", "which has a zone; `timestamp` in `source.columns`"),
    ],
    ids=["none", "one"],
)
def test_mistake_of_the_zone_names_the_other_type(kind: pa.DataType, text: str, said: str) -> None:
    problem = refused(f"v,w\n,x\n{text},x\n".encode(), {"v": kind}).problem

    assert problem.startswith(f"expected a value of type {kind}, found '{text}', {said}")
    assert "assume_timezone" not in problem


@pytest.mark.parametrize(("row", "count"), [("2", 1), ("2,y,z", 3)], ids=["short", "long"])
def test_row_with_another_number_of_values_is_refused(row: str, count: int) -> None:
    found = refused(f"id,text\n1,x\n{row}\n3,z\n".encode())

    assert found.row == 3
    assert f"expected 2 values, found {count}" in found.problem


@pytest.mark.parametrize(
    "text", ['id,text\n1,"x\n2,y\n', 'id\n1\n"2\n', 'id,text\n1,"x'], ids=["two", "one", "last"]
)
def test_quote_that_is_never_closed_is_refused(text: str) -> None:
    found = refused(text.encode(), {})

    assert "end of a value in quotes" in found.problem


def test_text_that_is_not_utf8_is_refused_with_its_row() -> None:
    found = refused(b"id,text\n1,x\n2,\xff\n")

    assert (found.row, found.column) == (3, "text")


def test_column_that_is_not_wanted_is_not_judged() -> None:
    assert read(b"id,text\nx,y\n", columns=["text"]) == [{"text": "y"}]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("before", [1, BLOCK_BYTES // 20], ids=["first block", "behind it"])
def test_whole_number_of_which_an_inferred_double_loses_digits_is_refused(
    header: bool, before: int
) -> None:
    number = 2**53 + 1
    rows = f"1.5,{'x' * 20},{number}\n" * before + f"{number},x,1\n1,x,{number}\n"
    names = ("a", "b", "c")
    content = (("a,b,c\n" if header else "") + rows).encode()
    source = CsvFile(pa.BufferReader(content), CsvDialect(header=header, names=names))
    types = {"a": pa.float64(), "c": pa.float64()}

    def found(columns: list[str], *, inferred: bool) -> list[Any]:
        rows = CsvRows(source, types, inferred=inferred)
        return [row for _, it in rows.batches(columns, 0, ALL_ROWS) for row in it[0].to_pylist()]

    with pytest.raises(InvalidRow) as refused:
        found(["b", "a"], inferred=True)

    assert (refused.value.row, refused.value.column) == (before + 1 + header, "a")
    assert f"found {number}; declare all columns in `source.columns`" in refused.value.problem
    assert len(found(["b"], inferred=True)) == before + 2
    assert found(["a"], inferred=False)[-2:] == [float(number), 1.0]
    with pytest.raises(InvalidRow) as both:
        found(["a", "c"], inferred=True)
    assert (both.value.row, both.value.column) == (1 + header, "c")


def test_row_that_does_not_fit_is_named_behind_the_first_block() -> None:
    rows = BLOCK_BYTES // 50
    text = "id,text\n" + "".join(f"{number},{'x' * 60}\n" for number in range(rows)) + "z,x\n"

    found = refused(text.encode())

    assert (found.row, found.column) == (rows + 2, "id")


def test_long_row_is_read_and_one_without_end_is_refused() -> None:
    rows = read(b"id,text\n1,x\n2," + b"x" * (2 * BLOCK_BYTES) + b"\n")
    found = refused(b"id,text\n1,x\n2," + b"x" * (MOST_BYTES + BLOCK_BYTES + 1) + b"\n")

    assert [len(row["text"]) for row in rows] == [1, 2 * BLOCK_BYTES]
    assert (found.row, "MiB" in found.problem) == (3, True)


@given(
    st.lists(st.tuples(st.integers(0, 9), VALUES), min_size=1, max_size=12),
    st.integers(1, 40),
    st.sampled_from(["", 'x"y', '"', '5" pipe']),
)
def test_rows_are_the_same_whatever_the_blocks_are(
    rows: list[tuple[int, str]], size: int, stray: str
) -> None:
    """A quote in a value without quotes is no mistake, and misleads whoever counts quotes."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    text = f"id,text\n1,a{stray}\n{file.getvalue()}"
    expected = [{"id": 1, "text": f"a{stray}"}, *({"id": id, "text": text} for id, text in rows)]

    with mock.patch.object(module, "BLOCK_BYTES", size):
        found = read(text.encode(), quoted_null=False)

    assert found == expected


def test_rows_are_counted_without_any_column() -> None:
    source = CsvFile(pa.BufferReader(b'id,text\n1,"x\ny"\n2,z\n'), CsvDialect())

    with CsvRows(source, TYPES) as rows:
        found = [batch for _, batch in rows.batches([], 0, ALL_ROWS)]

    assert [(batch.num_rows, batch.num_columns) for batch in found] == [(2, 0)]


def test_range_of_rows_is_read() -> None:
    source = CsvFile(pa.BufferReader(b"id,text\n1,a\n2,b\n3,c\n4,d\n"), CsvDialect())

    with CsvRows(source, TYPES) as rows:
        found = [(at, batch.to_pylist()) for at, batch in rows.batches(["id"], 1, 3, 1)]

    assert found == [(1, [{"id": 2}]), (2, [{"id": 3}])]


@pytest.mark.parametrize(
    ("content", "dialect", "expected"),
    [
        (b"1,x\n", {"header": False, "names": ("id", "text")}, [{"id": 1, "text": "x"}]),
        (b'id,text\n1,"a\\"b"\n', {"escape": "\\"}, [{"id": 1, "text": 'a"b'}]),
        (b'id,text\n1,"a"\n', {"quote": None}, [{"id": 1, "text": '"a"'}]),
        (b"id,text\n\\N,NA\n", {"null": ("\\N", "NA")}, [{"id": None, "text": None}]),
        (b"id,text\n1,\n", {"null": ("NA",)}, [{"id": 1, "text": ""}]),
        (b'id,text\n"",""\n', {}, [{"id": None, "text": None}]),
        (b'id,text\n1,""\n', {"quoted_null": False}, [{"id": 1, "text": ""}]),
        ("id,text\n1,é\n".encode("cp1252"), {"encoding": "cp1252"}, [{"id": 1, "text": "é"}]),
        ("id,text\n1,é\n".encode("utf-16"), {"encoding": "utf-16"}, [{"id": 1, "text": "é"}]),
        (b"\n\nid,text\n\n1,x\n", {}, [{"id": 1, "text": "x"}]),
        (b"", {}, []),
        (b"\xef\xbb\xbf\n\n", {}, []),
        (b"", {"header": False, "names": ("id", "text")}, []),
    ],
    ids=[
        *("no header", "escape", "no quotes", "other nulls", "empty is text", "quoted nulls"),
        *(
            "quoted texts",
            "windows",
            "utf-16",
            "empty lines first",
            "empty",
            "no line",
            "empty without header",
        ),
    ],
)
def test_dialect_says_how_rows_are_read(
    content: bytes, dialect: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    assert read(content, **dialect) == expected


@pytest.mark.parametrize(
    ("content", "names", "rows"),
    [
        (b"a,b\n1,2\n", ("a", "b"), 1),
        (b'a,"b\nc"\n', ("a", "b\nc"), 1),
        (b"a,,b,\n", ("a", "_c1", "b", "_c3"), 1),
        (b"\n\n a ,b", (" a ", "b"), 3),
        (b"a,a\n", ("a", "a"), 1),
        (b"a," + b"b" * 40_000 + b"\n1,2\n", ("a", "b" * 40_000), 1),
    ],
    ids=["plain", "line break", "no name", "empty lines", "twice", "long"],
)
def test_header_names_the_columns(content: bytes, names: tuple[str, ...], rows: int) -> None:
    header = header_of(CsvFile(pa.BufferReader(content), CsvDialect()))

    assert (header.names, header.rows) == (names, rows)


def test_header_that_is_no_text_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="no text"):
        header_of(CsvFile(pa.BufferReader(b"a,\xff\n1,2\n"), CsvDialect()))
