"""A file of another format is told apart from a damaged Parquet file."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tidegate.source.files.other_formats import LONGEST, other_format

TABLE = pa.table({"id": [1]})


def _orc() -> bytes:
    sink = io.BytesIO()
    orc.write_table(TABLE, sink)
    return sink.getvalue()


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.orc", _orc(), "ORC"),
        ("part-00000", _orc(), "ORC"),
        ("a.csv", b"id\n1\n", "CSV"),
        ("A.JSON", b"{}", "JSON"),
        ("a.csv.gz", gzip.compress(b"id\n"), "gzip"),
        ("a.parquet", _parquet()[:-4], None),
        ("a.csv", _parquet(), None),
        ("a.parquet", bytes(9), None),
    ],
    ids=[*("orc", "orc by content", "csv", "json", "gzip", "cut", "odd name", "zeros")],
)
def test_format_is_known_by_beginning_or_name(
    path: str, content: bytes, expected: str | None
) -> None:
    assert other_format(path, content[:LONGEST]) == expected
