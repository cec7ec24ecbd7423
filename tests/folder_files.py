"""The same rows as files of every format that a folder may have."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

Rows = list[dict[str, Any]]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("amount", pa.float64()),
        ("note", pa.string()),
    ]
)
DECLARED = {"id": "long", "at": "timestamp", "amount": "double", "note": "string"}
_AVRO = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": ["null", "long"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "note", "type": ["null", "string"]},
    ],
}


def _parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), sink)
    return sink.getvalue()


def _orc(rows: Rows) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows, SCHEMA), sink)
    return sink.getvalue()


def _avro(rows: Rows) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(_AVRO), rows)
    return sink.getvalue()


def csv_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Write rows with a header, as Python's module does."""
    sink = io.StringIO(newline="")
    writer = csv.DictWriter(sink, list(rows[0]))
    writer.writeheader()
    writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    return sink.getvalue().encode()


def json_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Write one object per line."""
    return "".join(f"{json.dumps(row, default=_text)}\n" for row in rows).encode()


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime | date) else value


WRITERS: Mapping[str, tuple[str, Callable[[Rows], bytes]]] = {
    "parquet": ("parquet", _parquet),
    "orc": ("orc", _orc),
    "avro": ("avro", _avro),
    "csv": ("csv", csv_bytes),
    "csv.gz": ("csv", lambda rows: gzip.compress(csv_bytes(rows), mtime=0)),
    "json": ("json", json_bytes),
    "json.gz": ("json", lambda rows: gzip.compress(json_bytes(rows), mtime=0)),
}
"""Ending of the name → `source.format`, and the bytes of rows."""


def put(root: Path, name: str, rows: Rows) -> Path:
    """Write rows into a file whose name says its format."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WRITERS[name.partition(".")[2]][1](rows))
    return path
