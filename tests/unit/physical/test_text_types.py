"""A type is inferred where every value seen has it; the rest is text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.physical.csv import CsvDialect, CsvFile
from tidegate.physical.json_lines import JsonFile
from tidegate.physical.text_types import csv_schema, json_schema, widened, without_nulls

INSTANT, WALL_CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2"], pa.int64()),
        (["1", "2.5"], pa.float64()),
        (["1", "x"], pa.string()),
        (["0.1", "1e300", "100000000000000000000000"], pa.float64()),
        (["1.5", "9007199254740992"], pa.float64()),
        (["1.5", "", "9007199254740993"], pa.string()),
        (["123456789012345678901", "1"], pa.string()),
        (["true", "FALSE"], pa.bool_()),
        (["2026-02-01"], pa.date32()),
        (["2026-02-01 10:00:00", "2026-02-01 10:00:00.123456"], WALL_CLOCK),
        (["2026-02-01T10:00:00Z"], INSTANT),
        (["2026-02-01T10:00:00Z", "2026-02-01T10:00:00"], pa.string()),
        (["10:00:00"], pa.string()),
        (["", ""], pa.null()),
        (["", "5"], pa.int64()),
        ([], pa.null()),
    ],
)
def test_type_of_a_csv_column_is_that_of_all_values(values: list[str], kind: pa.DataType) -> None:
    text = "v,w\n" + "".join(f"{value},x\n" for value in values)

    found = csv_schema(CsvFile(pa.BufferReader(text.encode()), CsvDialect()))

    assert found.names == ["v", "w"]
    assert found.field("v").type == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2"], pa.int64()),
        (["1", "2.5"], pa.float64()),
        (["true"], pa.bool_()),
        (['"x"', '"2026-02-01"'], pa.string()),
        (['"2026-02-01"'], pa.date32()),
        (['"2026-02-01 10:00:00"', '"2026-02-01"'], WALL_CLOCK),
        (['"2026-02-01T10:00:00Z"', "null"], INSTANT),
        (['"2026-02-01T10:00:00Z"', '"2026-02-01T10:00:00"'], pa.string()),
        (["null"], pa.null()),
    ],
)
def test_type_of_a_json_field_is_that_of_all_values(values: list[str], kind: pa.DataType) -> None:
    text = "".join(f'{{"v": {value}}}\n' for value in values)

    found = json_schema(JsonFile(pa.BufferReader(text.encode())))

    assert found.field("v").type == kind


def test_fields_within_fields_are_found_and_their_times_stay_text() -> None:
    text = b'{"o": {"t": "2026-02-01", "n": null}, "l": [1]}\n'

    found = json_schema(JsonFile(pa.BufferReader(text)))

    kind = without_nulls(found.field("o").type)
    assert kind == pa.struct([("t", pa.string()), ("n", pa.string())])
    assert without_nulls(found.field("l").type).value_type == pa.int64()


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_last_row_of_a_small_file_tells_a_type_however_it_ends(ending: str) -> None:
    csv = csv_schema(CsvFile(pa.BufferReader(f"a,b\n1,2{ending}".encode()), CsvDialect()))
    text = f'{{"a": 1}}\n{{"a": 2, "b": 3}}{ending}'

    assert csv == pa.schema([("a", pa.int64()), ("b", pa.int64())])
    assert json_schema(JsonFile(pa.BufferReader(text.encode()))) == csv


def test_first_row_that_is_longer_than_a_sample_tells_its_columns() -> None:
    text = f'{{"a": 1, "long": "{"x" * 600_000}"}}\n' + '{"a": 2, "b": 3}\n' * 60_000

    found = json_schema(JsonFile(pa.BufferReader(text.encode())))

    assert [*found.names[:2]] == ["a", "long"]


def test_row_that_is_cut_by_the_sample_does_not_count() -> None:
    rows = 60_000
    text = "v,w\n" + f"1,{'x' * 10}\n" * rows

    assert csv_schema(CsvFile(pa.BufferReader(text.encode()), CsvDialect())).types[0] == pa.int64()


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.null(), pa.date32(), pa.date32()),
        (pa.date32(), WALL_CLOCK, pa.string()),
        (pa.int64(), pa.int64(), pa.int64()),
        (pa.bool_(), pa.int64(), pa.string()),
        (pa.list_(pa.int64()), pa.list_(pa.float64()), pa.list_(pa.float64())),
    ],
)
def test_column_of_two_files_has_a_type_for_both(
    one: pa.DataType, other: pa.DataType, both: pa.DataType
) -> None:
    schemas = [pa.schema([("v", one)]), pa.schema([("v", other)])]

    assert widened(schemas).field("v").type == both
    assert widened(schemas[::-1]).field("v").type == both
