"""Decode Thrift's compact encoding, which Parquet footers use.

Arrow exposes most of a footer, but not whether bounds are exact and whether columns are encrypted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

Struct = dict[int, Any]
"""Field id → value: a number, a boolean, bytes, a list, or another `Struct`."""

_TRUE, _FALSE = 1, 2
_DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = 7, 8, 9, 10, 11, 12, 13
_INTEGERS = (4, 5, 6)
_MANY = 15
_FIXED = {3: 1, _DOUBLE: 8, _UUID: 16}
"""Kinds of fixed size, including a byte."""


def read_struct(content: bytes) -> Struct:
    """Decode the struct at the beginning of some bytes.

    Raises:
        pa.ArrowInvalid: they end early, or have an unknown encoding.
    """
    try:
        return _ThriftReader(content).struct()
    except IndexError as short:
        problem = "a Thrift struct ends before its end"
        raise pa.ArrowInvalid(problem) from short


class _ThriftReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0
        self._reads: dict[int, Callable[[], Any]] = {
            **dict.fromkeys((_TRUE, _FALSE), lambda: self._byte() == _TRUE),
            **dict.fromkeys(_INTEGERS, self._zigzag),
            **dict.fromkeys((_LIST, _SET), self._items),
            _BINARY: lambda: self._bytes(self._varint()),
            _MAP: self._pairs,
            _STRUCT: self.struct,
        }

    def struct(self) -> Struct:
        found: Struct = {}
        field = 0
        while (header := self._byte()) != 0:
            step, kind = header >> 4, header & 0x0F
            field = field + step if step else self._zigzag()
            # A boolean field consists of its header only.
            found[field] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in _FIXED:
            return self._bytes(_FIXED[kind])
        read = self._reads.get(kind)
        if read is None:
            problem = f"Thrift knows no kind {kind}"
            raise pa.ArrowInvalid(problem)
        return read()

    def _items(self) -> list[Any]:
        header = self._byte()
        size, kind = header >> 4, header & 0x0F
        count = self._varint() if size == _MANY else size
        return [self._value(kind) for _ in range(count)]

    def _pairs(self) -> list[tuple[Any, Any]]:
        count = self._varint()
        if not count:
            return []
        kinds = self._byte()
        return [(self._value(kinds >> 4), self._value(kinds & 0x0F)) for _ in range(count)]

    def _byte(self) -> int:
        byte = self._content[self._position]
        self._position += 1
        return byte

    def _bytes(self, count: int) -> bytes:
        start, self._position = self._position, self._position + count
        if self._position > len(self._content):
            raise IndexError
        return self._content[start : self._position]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)
