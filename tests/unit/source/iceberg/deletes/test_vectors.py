"""Deletion vectors decode to their positions, or are refused for what is wrong with them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyroaring import BitMap64

from tidegate.errors import CorruptDeletes, SourceFileGone
from tidegate.model.file_slice import Delta, DeltaKind
from tidegate.source.iceberg.deletes.vectors import decode_vector, read_vector

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = bytes.fromhex("d1d33964")

FOOTER = b"PFA1" + b"\0" * 8 + b"PFA1"

positions = st.frozensets(st.integers(0, 2**40), max_size=40)


def frame(bitmap: bytes, magic: bytes = MAGIC) -> bytes:
    body = magic + bitmap
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def blob_of(deleted: frozenset[int]) -> bytes:
    return frame(BitMap64(deleted).serialize())


@given(positions)
def test_decode_any_positions_gives_them_ascending(deleted: frozenset[int]) -> None:
    assert decode_vector(blob_of(deleted), len(deleted), "dv").to_pylist() == sorted(deleted)


@given(positions, st.data())
def test_decode_blob_with_any_byte_changed_is_refused(
    deleted: frozenset[int], data: st.DataObject
) -> None:
    blob = bytearray(blob_of(deleted))
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(CorruptDeletes, match="dv"):
        decode_vector(bytes(blob), len(deleted), "dv")


@given(positions, st.data())
def test_decode_blob_cut_anywhere_is_refused(deleted: frozenset[int], data: st.DataObject) -> None:
    blob = blob_of(deleted)

    with pytest.raises(CorruptDeletes):
        decode_vector(blob[: data.draw(st.integers(0, len(blob) - 1))], len(deleted), "dv")


@pytest.mark.parametrize(
    ("blob", "problem"),
    [
        (BitMap64([1, 2]).serialize(), "the magic d1d33964"),
        (frame(BitMap64([1, 2]).serialize(), b"\0\0\0\0"), "the magic d1d33964, found 00000000"),
        (b"\0" + blob_of(frozenset({1, 2}))[1:-4] + b"\0\0\0\0", "CRC-32"),
        (frame(b"no bitmap at all"), "a roaring bitmap"),
        (frame(BitMap64([1, 2**63]).serialize()), "63 bits"),
        (blob_of(frozenset({1, 2, 3})), "the number of positions 2, found 3"),
    ],
    ids=["bare bitmap", "other magic", "checksum", "no bitmap", "beyond 63 bits", "cardinality"],
)
def test_decode_wrong_blob_says_what_is_wrong(blob: bytes, problem: str) -> None:
    with pytest.raises(CorruptDeletes, match=problem):
        decode_vector(blob, 2, "dv")


def _vector(path: Path, content: bytes, offset: int | None, size: int | None) -> Delta:
    path.write_bytes(content)
    return Delta(str(path), DeltaKind.VECTOR, "puffin", len(content), 2, 1, (), offset, size)


def test_read_takes_the_blob_at_its_offset(tmp_path: Path) -> None:
    blob = blob_of(frozenset({3, 2**33}))
    vector = _vector(tmp_path / "d.puffin", b"PFA1" + blob + b"another blob" + FOOTER, 4, len(blob))

    assert read_vector(PyArrowFileIO(), vector, "t").to_pylist() == [3, 2**33]


@pytest.mark.parametrize(
    ("offset", "size"),
    [(None, 30), (4, None), (4, 1000), (4, 60), (0, 20)],
    ids=["no offset", "no size", "beyond", "into the footer", "into the magic"],
)
def test_read_vector_that_is_not_there_is_corrupt(
    tmp_path: Path, offset: int | None, size: int | None
) -> None:
    vector = _vector(
        tmp_path / "d.puffin", b"PFA1" + blob_of(frozenset({1, 2})) + FOOTER, offset, size
    )

    with pytest.raises(CorruptDeletes, match=r"d\.puffin"):
        read_vector(PyArrowFileIO(), vector, "t")


def test_read_blob_without_a_puffin_file_around_it_is_corrupt(tmp_path: Path) -> None:
    blob = blob_of(frozenset({1, 2}))
    vector = _vector(tmp_path / "d.puffin", blob, 0, len(blob))

    with pytest.raises(CorruptDeletes, match="between the magic and the footer"):
        read_vector(PyArrowFileIO(), vector, "t")


def test_read_puffin_file_that_was_cut_is_corrupt(tmp_path: Path) -> None:
    content = b"PFA1" + blob_of(frozenset({1, 2})) + FOOTER
    vector = _vector(tmp_path / "d.puffin", content, 4, len(content) - 20)
    (tmp_path / "d.puffin").write_bytes(content[:-20])

    with pytest.raises(CorruptDeletes, match=r"d\.puffin"):
        read_vector(PyArrowFileIO(), vector, "t")


def test_read_puffin_file_that_was_deleted_is_gone(tmp_path: Path) -> None:
    vector = _vector(tmp_path / "d.puffin", b"PFA1" + b"\0" * 30 + FOOTER, 4, 30)
    (tmp_path / "d.puffin").unlink()

    with pytest.raises(SourceFileGone, match=r"d\.puffin"):
        read_vector(PyArrowFileIO(), vector, "t")
