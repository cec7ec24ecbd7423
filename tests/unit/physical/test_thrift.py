"""Structs of Thrift's compact encoding are read as its specification writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.physical.thrift import read_struct


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        pytest.param("00", {}, id="nothing"),
        pytest.param("11 12 00", {1: True, 2: False}, id="booleans"),
        pytest.param("15 02 15 01 16 9601 00", {1: 1, 2: -1, 3: 75}, id="numbers"),
        pytest.param("f5 02 00", {15: 1}, id="a step of fifteen"),
        pytest.param("05 28 02 00", {20: 1}, id="a field id by itself"),
        pytest.param("18 03 616263 00", {1: b"abc"}, id="bytes"),
        pytest.param("19 25 02 04 00", {1: [1, 2]}, id="a list"),
        pytest.param("19 f5 10" + " 02" * 16 + " 00", {1: [1] * 16}, id="a long list"),
        pytest.param("19 22 01 02 00", {1: [True, False]}, id="a list of booleans"),
        pytest.param("1c 15 02 00 15 04 00", {1: {1: 1}, 2: 2}, id="a struct"),
        pytest.param("1b 01 85 0161 02 00", {1: [(b"a", 1)]}, id="a map"),
        pytest.param("1b 00 00", {1: []}, id="an empty map"),
        pytest.param(
            "13 07 17 0000000000000040 00", {1: b"\x07", 2: b"\x00" * 7 + b"@"}, id="fixed"
        ),
    ],
)
def test_struct_is_read(encoded: str, expected: object) -> None:
    assert read_struct(bytes.fromhex(encoded) + b"behind") == expected


@pytest.mark.parametrize("encoded", ["", "15", "15 80", "18 05 61", "1c 15 02 00", "1e 00"])
def test_what_is_no_struct_is_refused(encoded: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="Thrift"):
        read_struct(bytes.fromhex(encoded))
