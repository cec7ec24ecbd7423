"""Hash rows to 64 bits, the same on every machine: equal rows have equal hashes.

Used to assign rows to buckets and to tell unequal rows apart quickly. Unequal rows may have the
same hash: equality is decided by `tidegate.read.codes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.physical.arrays import Integers, integers, missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Hashes = npt.NDArray[np.uint64]

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_NULL = np.uint64(0x2545F4914F6CDD1D)
_WORD = 8
_WORDS = 16
"""A long text is hashed by its first 128 bytes, its last 8 and its length."""
_MASKS = np.array([(1 << (8 * kept)) - 1 for kept in range(9)], np.uint64)


def hash_rows(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Hash the rows of some columns.

    Args:
        columns: of equal length; of any Arrow type that a table can have.
        rows: their length, needed if there are no columns.

    Returns:
        uint64[rows]: NULL equals NULL, and NaN equals NaN.
    """
    hashes = np.full(rows, _SEED)
    for column in columns:
        hashes = _joined(hashes, _column(column))
    return hashes


def _column(array: pa.Array) -> Hashes:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    hashes = _kernel(array.type)(array)
    absent = missing(array)
    if absent is not None:
        # The buffer has arbitrary content in the place of a NULL.
        hashes[absent] = _NULL
    return hashes


def _kernel(kind: pa.DataType) -> Callable[[pa.Array], Hashes]:
    for fits, kernel in _KERNELS:
        if fits(kind):
            return kernel
    return _fixed_width


def _joined(left: Hashes, right: Hashes) -> Hashes:
    """Mix a hash into another; their order matters."""
    joined = left * _SECOND
    joined ^= right
    joined ^= joined >> np.uint64(32)
    joined *= _FACTOR
    joined ^= joined >> np.uint64(29)
    return joined


def _nulls(array: pa.Array) -> Hashes:
    return np.full(len(array), _NULL)


def _booleans(array: pa.Array) -> Hashes:
    return _fixed_width(array.cast(pa.uint8()))


def _floats(array: pa.Array) -> Hashes:
    width = array.type.bit_width
    values = integers(array.view(pa.type_for_alias(f"uint{width}"))).view(f"f{width // 8}")
    bits = values.view(f"u{width // 8}").astype(np.uint64)
    bits[np.isnan(values)] = _NULL
    return _joined(np.full(len(array), _SEED), bits)


def _fixed_width(array: pa.Array) -> Hashes:
    """Hash values of a fixed number of bytes: integers, times, decimals, fixed binaries."""
    width = array.type.bit_width // 8
    content = _content(array, array.offset * width, len(array) * width)
    words = np.zeros((len(array), -(-width // _WORD) * _WORD), np.uint8)
    words[:, :width] = content.reshape(len(array), width)
    hashes = np.full(len(array), _SEED)
    for word in words.view("<u8").T:
        hashes = _joined(hashes, word)
    return hashes


def _content(array: pa.Array, start: int, length: int) -> npt.NDArray[np.uint8]:
    buffer = array.buffers()[-1]
    if buffer is None or not length:
        return np.zeros(length, np.uint8)
    return np.frombuffer(buffer, np.uint8, length, start)


def _texts(array: pa.Array) -> Hashes:
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
    # A word begins at every byte; bytes after a text are masked.
    words: Hashes = np.ndarray((len(padded) - _WORD + 1,), np.dtype("<u8"), padded, strides=(1,))
    return _hash_words(words, offsets[:-1] - first, lengths)


def _hash_words(words: Hashes, starts: Integers, lengths: Integers) -> Hashes:
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


def _structs(array: pa.Array) -> Hashes:
    return hash_rows(array.flatten(), len(array))


def _lists(array: pa.Array) -> Hashes:
    offsets, elements = _parts(array)
    places = np.arange(len(elements)) - np.repeat(offsets[:-1], np.diff(offsets))
    return _summed(_joined(_column(elements), places.astype(np.uint64)), offsets)


def _maps(array: pa.Array) -> Hashes:
    offsets, entries = _parts(array)
    return _summed(hash_rows(entries.flatten(), len(entries)), offsets)


def _parts(array: pa.Array) -> tuple[Integers, pa.Array]:
    """Return where the elements of each row begin and end, and the elements in between."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return np.arange(len(array) + 1) * size, array.values.slice(
            array.offset * size, len(array) * size
        )
    offsets = integers(array.offsets).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    entries = array.values.slice(first, last - first)
    return offsets - first, entries


def _summed(hashes: Hashes, offsets: Integers) -> Hashes:
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    lengths = np.diff(offsets).astype(np.uint64)
    return _joined(totals[offsets[1:]] - totals[offsets[:-1]], lengths)


_TEXTS = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
    pa.types.is_string_view,
    pa.types.is_binary_view,
)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_KERNELS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Hashes]], ...] = (
    (pa.types.is_null, _nulls),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_floating, _floats),
    *((fits, _texts) for fits in _TEXTS),
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _maps),
    *((fits, _lists) for fits in _LISTS),
)
