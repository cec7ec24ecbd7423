"""A text is the same however it is compressed, encoded, and asked for."""

from __future__ import annotations

import bz2
import gzip

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.text_stream import TextStream, compression_of, estimated_rows

COMPRESSED = {
    None: lambda content: content,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "zstd": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def _stream(content: bytes, compression: str | None = None, encoding: str = "utf-8") -> TextStream:
    return TextStream(pa.BufferReader(content), compression, encoding)


@given(
    st.text("aé東\n\ufeff", max_size=60),
    st.sampled_from(["utf-8", "utf-16", "utf-16-le"]),
    st.sampled_from([None, "gzip"]),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_text_is_read_as_it_was_written_in_pieces_of_any_size(
    text: str, encoding: str, compression: str | None, sizes: list[int]
) -> None:
    content = COMPRESSED[compression](text.encode(encoding))
    stream = _stream(content, compression, encoding)

    parts = [stream.read(size) for size in sizes]
    short = [len(part) < size for part, size in zip(parts, sizes, strict=True)]
    parts += iter(lambda: stream.read(16), b"")

    assert b"".join(parts) == text.encode()
    # Only the end is shorter than what was asked for.
    assert short == sorted(short)


@pytest.mark.parametrize("compression", ["gzip", "bz2"])
def test_parts_that_were_compressed_by_themselves_are_all_read(compression: str) -> None:
    compress = COMPRESSED[compression]

    stream = _stream(compress(b"one\n") + compress(b"two\n"), compression)

    assert stream.read() == b"one\ntwo\n"


@pytest.mark.parametrize("compression", ["gzip", "bz2", "zstd"])
def test_compressed_text_that_was_cut_is_refused(compression: str) -> None:
    content = COMPRESSED[compression](b"row\n" * 1_000)

    stream = _stream(content[:-5], compression)

    with pytest.raises(OSError, match=r"."):
        stream.read()


def test_text_of_another_encoding_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="ascii"):
        _stream("é".encode(), None, "ascii").read()


@pytest.mark.parametrize(
    ("path", "compression"),
    [("a.csv", None), ("a.csv.gz", "gzip"), ("A.JSON.GZ", "gzip"), ("gz", None), ("a.zst", "zstd")],
)
def test_compression_is_told_by_the_name(path: str, compression: str | None) -> None:
    assert compression_of(path) == compression


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize(("rows", "share"), [(0, 0.0), (1, 0.0), (3, 0.0), (50_000, 0.1)])
def test_estimate_is_exact_for_a_small_file_and_near_for_a_large_one(
    compression: str | None, rows: int, share: float
) -> None:
    text = "id,text\n" + "".join(f"{number},some text\n" for number in range(rows))
    content = COMPRESSED[compression](text.encode())
    file = pa.BufferReader(content)

    found = estimated_rows(file, TextStream(file, compression, "utf-8"), 1)

    # Arrow reads ahead in compressed files, so that only plain ones are told exactly.
    allowed = share if compression is None else 1.0
    assert abs(found - max(1, rows)) <= rows * allowed
