"""A file with another end reads like the bytes that it stands for."""

from __future__ import annotations

import os

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.orc_view import WithOtherEnd


@given(
    whole=st.binary(max_size=20),
    end=st.binary(max_size=10),
    data=st.data(),
)
def test_any_read_gives_the_bytes_of_the_whole(
    whole: bytes, end: bytes, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, len(whole)), "length")
    expected = whole[:length] + end
    at = data.draw(st.integers(0, len(expected)), "at")
    size = data.draw(st.integers(-1, 40), "size")
    view = WithOtherEnd(pa.BufferReader(whole), length, end)

    view.seek(at)
    found = view.read(size)

    assert found == (expected[at:] if size < 0 else expected[at : at + size])
    assert view.tell() == at + len(found)


def test_position_is_counted_from_anywhere() -> None:
    view = WithOtherEnd(pa.BufferReader(b"abcdef"), 3, b"XY")

    assert view.seek(-1, os.SEEK_END) == 4
    assert view.read() == b"Y"
    assert view.seek(-3, os.SEEK_CUR) == 2
    assert view.read(2) == b"cX"


def test_arrow_reads_through_it() -> None:
    file = pa.PythonFile(WithOtherEnd(pa.BufferReader(b"abcdef"), 3, b"XY"), mode="r")

    assert file.size() == 5
    assert file.read_at(2, 2) == b"cX"
