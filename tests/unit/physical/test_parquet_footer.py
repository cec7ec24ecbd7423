"""What a footer says of a file, by files of several writers."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from parquet_bytes import with_inexact_largest, without_null_count
from tidegate.physical import ParquetRows
from tidegate.physical.parquet_footer import FileEnd, ParquetFooter

NUMBERS = pa.table({"n": pa.array([5, 9, 7], pa.int64()), "s": ["x", None, "y"]})


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def footer(content: bytes) -> ParquetFooter:
    with ParquetRows(pa.BufferReader(content)) as rows:
        return rows.footer


def test_footer_outlives_its_file() -> None:
    found = footer(content := written(NUMBERS, compression="zstd", row_group_size=2))

    assert (found.rows, found.groups, found.codecs) == (3, 2, {"ZSTD"})
    assert found.largest_group[0] == 2
    assert 0 < found.last_group_bytes < found.end.length == len(content)


def test_end_of_a_file_is_its_length_and_footer() -> None:
    content = written(NUMBERS)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")

    assert FileEnd.of(pa.BufferReader(content)) == FileEnd(len(content), content[start:])
    assert FileEnd.of(pa.BufferReader(b"short")) == FileEnd(5, b"short")


def test_bounds_are_those_of_all_row_groups() -> None:
    assert footer(written(NUMBERS, row_group_size=1)).exact_bounds("n") == (5, 9)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(written(NUMBERS, write_statistics=False), id="no statistics"),
        pytest.param(written(NUMBERS.append_column("m", NUMBERS["n"]).drop("n")), id="no column"),
        pytest.param(written(pa.table({"n": [1, None]})), id="a NULL"),
        pytest.param(written(pa.table({"n": [1, 2, None]}), row_group_size=2), id="a NULL behind"),
        pytest.param(written(pa.table({"n": ["a", "b"]})), id="texts"),
        pytest.param(written(pa.table({"n": [1.5]})), id="floats"),
        pytest.param(written(NUMBERS.slice(0, 0)), id="no rows"),
        pytest.param(with_inexact_largest(written(NUMBERS), 5), id="not exact"),
        pytest.param(without_null_count(written(NUMBERS), 9), id="NULLs not counted"),
    ],
)
def test_bounds_that_are_not_known_for_sure_are_none(content: bytes) -> None:
    assert footer(content).exact_bounds("n") is None


def test_layout_is_that_of_columns_and_not_of_memory() -> None:
    moment = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    plain = pa.table({"t": moment, "s": ["x"], "l": [["y"]]})
    large = pa.table(
        {
            "t": moment,
            "s": pa.array(["x"], pa.large_string()),
            "l": pa.array([["y"]], pa.large_list(pa.large_string())),
        }
    )
    other = io.BytesIO()
    pl.DataFrame({"t": moment, "s": ["x"]}).write_parquet(other)

    assert footer(written(plain)).layout == footer(written(large)).layout
    assert footer(written(plain.select(["t", "s"]))).layout == footer(other.getvalue()).layout


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"a": [1], "c": ["x"]}),
        pa.table({"b": ["x"], "a": [1]}),
        pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}),
        pa.table({"a": pa.array([1], pa.uint64()), "b": ["x"]}),
        pa.table({"a": [1], "b": pa.array([b"x"])}),
        pa.table({"a": [1], "b": pa.array(["x"]).dictionary_encode()}),
        pa.table(
            {"a": [1], "b": ["x"]}, pa.schema([pa.field("a", pa.int64(), False), ("b", "string")])
        ),
    ],
    ids=["name", "order", "width", "sign", "bytes", "dictionary", "required"],
)
def test_layout_differs_where_columns_do(other: pa.Table) -> None:
    one = pa.table({"a": [1], "b": ["x"]})

    assert footer(written(one)).layout != footer(written(other)).layout


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (None, False),
        ('{"index_columns": []}', False),
        ('{"index_columns": [{"kind": "range"}]}', False),
        ('{"index_columns": ["n"]}', True),
        ('{"index_columns"', True),
        ("[]", True),
        ("{}", True),
    ],
)
def test_index_of_pandas_is_found(note: str | None, expected: bool) -> None:
    table = NUMBERS.replace_schema_metadata(None if note is None else {"pandas": note})

    assert footer(written(table)).has_pandas_index == expected


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({}, False),
        ({"org.apache.spark.version": "3.0.0"}, False),
        ({"org.apache.spark.version": "4.1.0-preview1"}, False),
        ({"org.apache.spark.version": "2.4.8"}, True),
        ({"org.apache.spark.version": "unknown"}, True),
        ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}, True),
        ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""}, True),
        ({"writer.date.proleptic": "true"}, False),
        ({"writer.date.proleptic": "false"}, True),
    ],
)
def test_old_calendar_is_told_by_its_writer(notes: dict[str, str], expected: bool) -> None:
    assert footer(written(NUMBERS.replace_schema_metadata(notes))).is_of_old_calendar == expected


def test_nullability_that_moves_inside_is_another_layout() -> None:
    def of(*, outside: bool, inside: bool) -> bytes:
        kind = pa.struct([pa.field("x", pa.int64(), nullable=inside)])
        field = pa.field("s", kind, nullable=outside)
        return written(pa.table({"s": pa.array([{"x": 1}], kind)}, pa.schema([field])))

    assert (
        footer(of(outside=True, inside=False)).layout
        != footer(of(outside=False, inside=True)).layout
    )


class NoService(pe.KmsClient):  # type: ignore[misc]  # pyarrow has no types
    """A key service that hands out what it gets."""

    def wrap_key(self, key: bytes, _name: str) -> bytes:
        return key.hex().encode()

    def unwrap_key(self, key: bytes, _name: str) -> bytes:
        return bytes.fromhex(key.decode())


def test_file_with_an_encrypted_column_is_not_plain() -> None:
    factory = pe.CryptoFactory(lambda _: NoService())
    how = pe.EncryptionConfiguration(
        footer_key="f", plaintext_footer=True, column_keys={"c": ["s"]}
    )
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), how)

    assert not footer(written(NUMBERS, encryption_properties=properties)).is_plain
    assert footer(written(NUMBERS)).is_plain
