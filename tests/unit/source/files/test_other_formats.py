"""A file of another format is told apart from a damaged Parquet file."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tidegate.source.files.listing import ListedFile, Listing
from tidegate.source.files.other_formats import LONGEST, binary_format, guess_format, other_format

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


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.csv", b"id\n1\n", None),
        ("a.csv", _parquet(), "Parquet"),
        ("a.csv", gzip.compress(b"id\n"), "gzip"),
        ("a.csv.gz", gzip.compress(b"id\n"), None),
        ("part-0", _orc(), "ORC"),
    ],
    ids=["text", "parquet", "compressed", "compressed by name", "orc"],
)
def test_file_that_is_no_text_is_known_by_its_beginning(
    path: str, content: bytes, expected: str | None
) -> None:
    assert binary_format(path, content[:LONGEST]) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.parquet", "b.parquet"], {}),
        (["part-0"], {}),
        ([], {}),
        (["a.csv", "b.csv", "notes.txt"], {"format": "csv"}),
        (["a.CSV.gz"], {"format": "csv"}),
        (["a.tsv"], {"format": "csv", "csv": {"delimiter": "\t"}}),
        (["a.jsonl", "b.ndjson", "c.json.zst"], {"format": "json"}),
        (["a.orc"], {"format": "orc"}),
        (["a.avro"], {"format": "avro"}),
    ],
    ids=["parquet", "no ending", "none", "csv", "gz", "tabs", "json", "orc", "avro"],
)
def test_format_of_a_folder_is_guessed_from_names(
    names: list[str], expected: dict[str, object]
) -> None:
    listing = Listing(tuple(ListedFile(name, 1, 1) for name in names))

    assert guess_format(listing) == expected
