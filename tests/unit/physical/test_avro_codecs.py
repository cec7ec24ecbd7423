"""Every compression of Avro blocks, sound and broken."""

from __future__ import annotations

import io
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tidegate.physical.avro import AvroRows
from tidegate.physical.avro_container import write_bytes, write_container, write_long


def _schema(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "table", "fields": fields}


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_compressed_file_is_read(codec: str) -> None:
    if codec in {"snappy", "zstandard"}:
        file = _compressed_by_arrow(codec)
    else:
        written = io.BytesIO()
        fastavro.writer(written, _schema(a="long"), [{"a": n} for n in range(99)], codec=codec)
        file = AvroRows(pa.BufferReader(written.getvalue()))

    ((_, batch),) = file.batches(["a"], 0, 99)

    assert batch.column("a").to_pylist() == list(range(99))


def _compressed_by_arrow(codec: str) -> AvroRows:
    """fastavro needs further packages for these; the plain file is packed here."""
    rows = b"".join(write_long(number) for number in range(99))
    packed = pa.compress(rows, {"zstandard": "zstd"}.get(codec, codec), asbytes=True)
    if codec == "snappy":
        packed += zlib.crc32(rows).to_bytes(4, "big")
    plain = write_container(_schema(a="long"), 99, packed)
    head = plain.replace(write_bytes(b"null"), write_bytes(codec.encode()), 1)
    return AvroRows(pa.BufferReader(head))


def test_snappy_block_with_another_checksum_is_refused() -> None:
    packed = pa.compress(write_long(1), "snappy", asbytes=True) + bytes(4)
    plain = write_container(_schema(a="long"), 1, packed)
    whole = plain.replace(write_bytes(b"null"), write_bytes(b"snappy"), 1)

    with (
        pytest.raises(pa.ArrowInvalid, match="checksum"),
        AvroRows(pa.BufferReader(whole)) as file,
    ):
        list(file.batches(["a"], 0, 1))


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_block_that_is_not_compressed_as_the_header_says_is_refused(codec: str) -> None:
    plain = write_container(_schema(a="long"), 3, b"\x02\x04\x06")
    whole = plain.replace(write_bytes(b"null"), write_bytes(codec.encode()), 1)

    with (
        pytest.raises((OSError, pa.ArrowException)),
        AvroRows(pa.BufferReader(whole)) as file,
    ):
        list(file.batches(["a"], 0, 3))


def test_codec_that_nobody_knows_is_named() -> None:
    plain = write_container(_schema(a="long"), 0, b"")
    whole = plain.replace(write_bytes(b"null"), write_bytes(b"lzo9"), 1)

    with pytest.raises(pa.ArrowNotImplementedError, match="lzo9"):
        AvroRows(pa.BufferReader(whole))
