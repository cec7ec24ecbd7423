"""Number rows so that two have the same number exactly if they are equal. Reads no file.

NULL equals NULL, NaN equals NaN, and 0.0 is not -0.0: rows are equal if they are indistinguishable
in the file that is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.physical.arrays import Flags, Integers, integer_column, integers, missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST = 1 << 62
_WIDTH = 8
"""The number of bytes of a code."""


@dataclass(frozen=True)
class _Codes:
    """int64[n], each at least 0 and less than `size`."""

    values: Integers
    size: int

    @staticmethod
    def dense(array: pa.Array) -> _Codes:
        """Number the values of an array that Arrow can hash, including NULL."""
        encoded = array.dictionary_encode(null_encoding="encode")
        values = integers(encoded.indices).astype(np.int64)
        return _Codes(values, max(1, len(encoded.dictionary)))

    def with_(self, other: _Codes) -> _Codes:
        """Number the pairs of two columns by mixed radix, or densely if that would overflow."""
        left, right = self, other
        if left.size * right.size > _MOST:
            left, right = left.renumbered(), right.renumbered()
        return _Codes(left.values * right.size + right.values, left.size * right.size)

    def renumbered(self) -> _Codes:
        """Renumber densely, from 0 to the number of different values."""
        return _Codes.dense(integer_column(self.values))


def row_codes(columns: Sequence[pa.Array]) -> pa.Int64Array:
    """Number the rows of columns of equal length, at least one, by all their values.

    Returns:
        int64[n], dense: from 0 up to, but excluding, the number of different rows.
    """
    whole = reduce(_Codes.with_, map(_codes, columns))
    return integer_column(whole.renumbered().values)


def codes(array: pa.Array) -> pa.Int64Array:
    """Number the values of a column of any type, like `row_codes`."""
    return row_codes([array])


def _codes(array: pa.Array) -> _Codes:
    for is_kind, number in _KINDS:
        if is_kind(array.type):
            return number(array)
    return _Codes.dense(array)


def _null_codes(array: pa.NullArray) -> _Codes:
    return _Codes(np.zeros(len(array), dtype=np.int64), 1)


def _float_codes(array: pa.Array) -> _Codes:
    width = array.type.bit_width
    floats = integers(array.view(pa.type_for_alias(f"uint{width}"))).view(f"f{width // 8}")
    bits = floats.view(f"i{width // 8}").astype(np.int64)
    bits[np.isnan(floats)] = np.iinfo(np.int64).max
    numbers = _Codes.dense(integer_column(bits))
    # The buffer of a float has arbitrary content where it is NULL.
    return _Codes(np.where(_absent(array), 0, numbers.values + 1), numbers.size + 1)


def _struct_codes(array: pa.StructArray) -> _Codes:
    absent = _absent(array)
    whole = _Codes((~absent).astype(np.int64), 2)
    for index in range(array.type.num_fields):
        whole = whole.with_(_codes(array.field(index)))
    # The children of a NULL struct have arbitrary content.
    return _Codes(np.where(absent, 0, whole.values), whole.size)


def _list_codes(array: pa.Array) -> _Codes:
    return _text_codes(array, integers(array.offsets), _codes(array.values))


def _fixed_list_codes(array: pa.FixedSizeListArray) -> _Codes:
    starts = array.offset + np.arange(len(array) + 1)
    return _text_codes(array, starts * array.type.list_size, _codes(array.values))


def _map_codes(array: pa.MapArray) -> _Codes:
    entries = _codes(array.keys).with_(_codes(array.items))
    return _text_codes(array, integers(array.offsets), entries)


def _text_codes(array: pa.Array, offsets: Integers, elements: _Codes) -> _Codes:
    """Number lists as texts over the numbers of their elements."""
    # This is correct because equal elements have equal numbers.
    ends = integer_column(offsets.astype(np.int64) * _WIDTH)
    valid = pa.compute.is_valid(array) if array.null_count else None
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(array),
        [
            valid.buffers()[1] if valid is not None else None,
            ends.buffers()[1],
            pa.py_buffer(np.ascontiguousarray(elements.values)),
        ],
    )
    return _Codes.dense(texts)


def _absent(array: pa.Array) -> Flags:
    found = missing(array)
    return np.zeros(len(array), dtype=np.bool_) if found is None else found


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], _Codes]], ...] = (
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda array: _codes(array.storage)),
    (pa.types.is_dictionary, lambda array: _codes(array.dictionary_decode())),
    (pa.types.is_null, _null_codes),
    (pa.types.is_floating, _float_codes),
    (pa.types.is_struct, _struct_codes),
    (pa.types.is_map, _map_codes),
    (pa.types.is_fixed_size_list, _fixed_list_codes),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _list_codes),
)
