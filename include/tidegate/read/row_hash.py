"""Hash rows to 64 bits, the same on every machine: equal rows have equal hashes.

Tells rows into buckets and unlike rows apart quickly. Unequal rows may share a hash: what is equal
is decided by `tidegate.read.row_codes`, which sees NULL, NaN and maps the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Hashes = "NDArray[np.uint64]"

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_NULL = np.uint64(0x2545F4914F6CDD1D)
_WORD = 8
_WORDS = 16
"""A long text counts by its first 128 bytes, its last 8 and its length."""
_MASKS = np.array([(1 << (8 * kept)) - 1 for kept in range(9)], np.uint64)


def hash_rows(columns: Sequence[pa.Array], rows: int) -> NDArray[np.uint64]:
    """Hash the rows that some columns make.

    Args:
        columns: of equal length; of any Arrow type that a table can have.
        rows: their length, also where there is no column.

    Returns:
        uint64[rows]: NULL equals NULL, NaN equals NaN, 0.0 and -0.0 differ, the order of a map's
        entries does not count.
    """
    hashes = np.full(rows, _SEED)
    for column in columns:
        hashes = _joined(hashes, _column(column))
    return hashes


def _column(array: pa.Array) -> NDArray[np.uint64]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    hashes = _kernel(array.type)(array)
    if array.null_count:
        hashes[_mask(array)] = _NULL
    return hashes


def _kernel(kind: pa.DataType) -> Callable[[pa.Array], NDArray[np.uint64]]:
    for fits, kernel in _KERNELS:
        if fits(kind):
            return kernel
    return _fixed_width


def _mask(array: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return found


def _joined(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix a hash into another; the order of the two counts."""
    joined = left * _SECOND
    joined ^= right
    joined ^= joined >> np.uint64(32)
    joined *= _FACTOR
    joined ^= joined >> np.uint64(29)
    return joined


def _nulls(array: pa.Array) -> NDArray[np.uint64]:
    return np.full(len(array), _NULL)


def _booleans(array: pa.Array) -> NDArray[np.uint64]:
    return _joined(np.full(len(array), _SEED), array.cast(pa.uint8()).fill_null(0).to_numpy())


def _floats(array: pa.Array) -> NDArray[np.uint64]:
    return _joined(np.full(len(array), _SEED), float_bits(array).astype(np.uint64))


def float_bits(array: pa.Array) -> NDArray[np.int64]:
    """Give the bits of floats, one pattern for every NaN; those of a NULL mean nothing."""
    values = array.fill_null(0).to_numpy().astype(np.float64)
    values[np.isnan(values)] = np.nan
    return values.view(np.int64)


def _fixed_width(array: pa.Array) -> NDArray[np.uint64]:
    """Hash values of a fixed number of bytes: integers, times, decimals, fixed binaries."""
    width = array.type.bit_width // 8
    content = _content(array, array.offset * width, len(array) * width)
    words = np.zeros((len(array), -(-width // _WORD) * _WORD), np.uint8)
    words[:, :width] = content.reshape(len(array), width)
    hashes = np.full(len(array), _SEED)
    for word in words.view("<u8").T:
        hashes = _joined(hashes, word)
    return hashes


def _content(array: pa.Array, start: int, length: int) -> NDArray[np.uint8]:
    buffer = array.buffers()[-1]
    if buffer is None or not length:
        return np.zeros(length, np.uint8)
    return np.frombuffer(buffer, np.uint8, length, start)


def _texts(array: pa.Array) -> NDArray[np.uint64]:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    if not wide and not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        array = array.cast(pa.large_binary())
        wide = True
    if not len(array):
        return np.full(0, _SEED)
    size = np.int64 if wide else np.int32
    offsets = np.frombuffer(
        array.buffers()[1], size, len(array) + 1, array.offset * np.dtype(size).itemsize
    ).astype(np.int64)
    first, lengths = int(offsets[0]), np.diff(offsets)
    content = _content(array, first, int(offsets[-1]) - first)
    padded = np.concatenate([content, np.zeros(_WORD, np.uint8)])
    # A word begins at every byte: what comes after a text is masked away.
    words: NDArray[np.uint64] = np.ndarray(
        (len(padded) - _WORD + 1,), np.dtype("<u8"), padded, strides=(1,)
    )
    return _hash_words(words, offsets[:-1] - first, lengths)


def _hash_words(
    words: NDArray[np.uint64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint64]:
    hashes = _joined(np.full(len(starts), _SEED), lengths.astype(np.uint64))
    longest = int(lengths.max(initial=0))
    for number in range(min(-(-longest // _WORD), _WORDS)):
        left = lengths - number * _WORD
        active = np.flatnonzero(left > 0)
        kept = _MASKS[np.minimum(left[active], _WORD)]
        found = words[starts[active] + number * _WORD] & kept
        hashes[active] = _joined(hashes[active], found)
    long = np.flatnonzero(lengths > _WORD * _WORDS)
    if len(long):
        ends = starts[long] + lengths[long] - _WORD
        hashes[long] = _joined(hashes[long], words[ends])
    return hashes


def _structs(array: pa.Array) -> NDArray[np.uint64]:
    return hash_rows(array.flatten(), len(array))


def _lists(array: pa.Array) -> NDArray[np.uint64]:
    offsets, elements = list_parts(array)
    places = np.arange(len(elements)) - np.repeat(offsets[:-1], np.diff(offsets))
    return _summed(_joined(_column(elements), places.astype(np.uint64)), offsets)


def _maps(array: pa.Array) -> NDArray[np.uint64]:
    offsets, entries = list_parts(array)
    return _summed(hash_rows(entries.flatten(), len(entries)), offsets)


def list_parts(array: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Give the elements of lists, or the entries of maps, and where each row's begin and end.

    Returns:
        int64[rows + 1] offsets from 0, and the elements between the first and the last of them.
    """
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.large_list(array.type.value_field))
    if array.null_count:
        # What stands in the place of a NULL may be anything.
        array = array.take(pa.array(np.arange(len(array))))
    offsets = array.offsets.to_numpy().astype(np.int64)
    entries = (
        pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        if pa.types.is_map(array.type)
        else array.values
    )
    return offsets - offsets[0], entries.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _summed(hashes: NDArray[np.uint64], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    lengths = np.diff(offsets).astype(np.uint64)
    return _joined(totals[offsets[1:]] - totals[offsets[:-1]], lengths)


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Say whether a type is one of the lists."""
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


_KERNELS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], NDArray[np.uint64]]], ...
] = (
    (pa.types.is_null, _nulls),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_floating, _floats),
    (_is_text, _texts),
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _maps),
    (is_list, _lists),
)
