"""JSON rows are what Python's module reads, and no value is lost in silence."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.json_lines import JsonFile, JsonRows
from tidegate.physical.streamed import ALL_ROWS, InvalidRow
from tidegate.physical.text_stream import BLOCK_BYTES, MOST_BYTES

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("n", pa.float64()), ("local", pa.timestamp("us"))])),
    ]
)


def read(content: bytes, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Read all rows."""
    with JsonRows(JsonFile(pa.BufferReader(content)), SCHEMA) as rows:
        names = SCHEMA.names if columns is None else columns
        return [row for _, batch in rows.batches(names, 0, ALL_ROWS) for row in batch.to_pylist()]


def refused(content: bytes) -> InvalidRow:
    """Return the error of a file that cannot be read."""
    with pytest.raises(InvalidRow) as failed:
        read(content)
    return failed.value


OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "text": st.none() | st.text(st.characters(codec="utf-8"), max_size=8),
        "tags": st.none() | st.lists(st.text("ab", max_size=2), max_size=3),
        "other": st.none() | st.integers() | st.text("ab") | st.lists(st.booleans()),
    },
)


@given(st.lists(OBJECTS, max_size=8), st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_values_are_those_of_python(
    objects: list[dict[str, Any]], is_ascii: bool, ending: str
) -> None:
    lines = [json.dumps(one, ensure_ascii=is_ascii) for one in objects]

    found = read(ending.join(lines).encode(), ["id", "text", "tags"])

    assert found == [{name: one.get(name) for name in ("id", "text", "tags")} for one in objects]


def test_times_are_read_at_every_depth() -> None:
    line = (
        b'{"at": "2026-02-01T10:00:00+02:00", "day": "2026-02-01", '
        b'"inner": {"n": 1, "local": "2026-02-01 10:00:00"}}'
    )

    (row,) = read(line)

    assert str(row["at"]) == "2026-02-01 08:00:00+00:00"
    assert str(row["day"]) == "2026-02-01"
    assert (row["inner"]["n"], str(row["inner"]["local"])) == (1.0, "2026-02-01 10:00:00")


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('{"id": 1.5}', "id"),
        ('{"id": "1"}', "id"),
        ('{"id": 9223372036854775808}', "id"),
        ('{"text": 5}', "text"),
        ('{"at": "2026-02-01T10:00:00"}', "at"),
        ('{"day": "01.02.2026"}', "day"),
        ('{"day": 5}', "day"),
        ('{"tags": ["a", 1]}', "tags"),
        ('{"inner": {"local": "2026-02-01T10:00:00Z"}}', "inner"),
        ("[1]", None),
        ("5", None),
        ("hello", None),
        ('{"id": 1', None),
        ('{"id": 1, "id": 2}', None),
    ],
)
@pytest.mark.parametrize("last", ["", '\n{"id": 3}\n'], ids=["last", "not last"])
def test_row_that_does_not_fit_is_refused_with_its_row_and_column(
    line: str, column: str | None, last: str
) -> None:
    found = refused(f'{{"id": 1}}\n\n{{"id": 2}}\n{line}{last}'.encode())

    assert found.row == 3
    assert found.column == column or column is None


def test_mistake_of_the_zone_names_the_other_type() -> None:
    found = refused(b'{"id": 1}\n{"at": "2026-02-01T10:00:00"}\n')

    assert found.problem.endswith(
        'found "2026-02-01T10:00:00", which has no zone; `timestamp_ntz` in `source.columns` is '
        "for times without one"
    )


@pytest.mark.parametrize("before", [1, BLOCK_BYTES // 40], ids=["first block", "behind it"])
def test_whole_number_of_which_an_inferred_double_loses_digits_is_refused(before: int) -> None:
    number = 2**53 + 1
    line = f'{{"id": {number}, "inner": {{"n": 1e300}}}}\n'
    content = (line * before + f'{{"inner": {{"n": {number}}}}}\n' + line).encode()

    def found(columns: list[str], *, inferred: bool) -> list[Any]:
        rows = JsonRows(JsonFile(pa.BufferReader(content)), SCHEMA, inferred=inferred)
        return [row for _, it in rows.batches(columns, 0, ALL_ROWS) for row in it.to_pylist()]

    with pytest.raises(InvalidRow) as refused:
        found(["inner"], inferred=True)

    assert (refused.value.row, refused.value.column) == (before + 1, "inner")
    assert f"found {number}; declare all columns in `source.columns`" in refused.value.problem
    assert found(["id"], inferred=True)[0] == {"id": number}
    assert found(["inner"], inferred=False)[before]["inner"]["n"] == float(number)


def test_text_that_is_not_utf8_is_refused() -> None:
    assert refused(b'{"text": "a"}\n{"text": "\xff"}\n').row == 2


@pytest.mark.parametrize(("column", "value"), [("id", "x"), ("at", "noon")])
def test_row_that_does_not_fit_is_counted_from_the_beginning_of_the_file(
    column: str, value: str
) -> None:
    """A time is a text first, whose rows are counted apart from those that cannot be parsed."""
    line = json.dumps({"text": "x" * 200}).encode() + b"\n"
    rows = BLOCK_BYTES // len(line) + 10
    odd = json.dumps({column: value}).encode() + b"\n"

    found = refused(line * rows + odd + line)

    assert (found.row, found.column) == (rows + 1, column)


def test_object_of_the_most_bytes_is_read_wherever_it_stands() -> None:
    """What was read beyond its end is no part of it."""
    long = b'{"id": 2, "text": "' + b"x" * (MOST_BYTES - 30) + b'"}\n'
    after = b'{"id": 3, "text": "' + b"x" * (BLOCK_BYTES - 30) + b'"}\n'

    found = read(b'{"id": 1}\n' + long + after * 2, ["id"])

    assert [row["id"] for row in found] == [1, 2, 3, 3]


def test_long_object_is_read_and_one_without_end_is_refused() -> None:
    (row,) = read(b'{"text": "' + b"x" * (2 * BLOCK_BYTES) + b'"}\n', ["text"])
    found = refused(b'{"text": "' + b"x" * (MOST_BYTES + BLOCK_BYTES + 1) + b'"}\n')

    assert len(row["text"]) == 2 * BLOCK_BYTES
    assert "MiB" in found.problem


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_file_without_an_object_has_no_rows(content: bytes) -> None:
    assert read(content) == []


def test_rows_are_counted_without_any_column() -> None:
    with JsonRows(JsonFile(pa.BufferReader(b'{"id": 1}\n{}\n')), SCHEMA) as rows:
        found = [batch for _, batch in rows.batches([], 0, ALL_ROWS)]

    assert [(batch.num_rows, batch.num_columns) for batch in found] == [(2, 0)]
