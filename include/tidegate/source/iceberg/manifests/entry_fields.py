"""Decode the wanted fields of a manifest entry, and skip the others quickly.

Column metrics make up most of a manifest. They are only decoded for the columns that are needed, so
that planning 100,000 files takes seconds and little memory. Each function here is called a hundred
thousand times for each of two dozen fields, so none calls more than it must.
"""

from __future__ import annotations

from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

from pyiceberg.avro.resolver import construct_reader
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.schema import Schema

    Read = Callable[[BinaryDecoder], Any]

PARTITION = 102
_DATA_FILE = 2


def record_reader(
    schema: Schema, wanted: Sequence[int], metric_ids: Sequence[int]
) -> Callable[[BinaryDecoder], tuple[Any, ...]]:
    """Return a function that decodes one manifest entry.

    Args:
        schema: the writer's.
        wanted: field ids, at least two, in the order in which the function gives their values;
            what the writer did not write is None. Maps are given as the values of `metric_ids`.
        metric_ids: columns whose metrics are kept, of the maps that are wanted.
    """
    fields = list(_leaves(schema.fields))
    steps = [_reader(field, field.field_id in wanted, metric_ids) for field in fields]
    places = {field.field_id: place for place, field in enumerate(fields)}
    pick = itemgetter(*[places.get(field_id, len(fields)) for field_id in wanted])

    def read(decoder: BinaryDecoder) -> tuple[Any, ...]:
        values = [step(decoder) for step in steps]
        values.append(None)
        found: tuple[Any, ...] = pick(values)
        return found

    return read


def _leaves(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    for field in fields:
        if field.field_id == _DATA_FILE and isinstance(field.field_type, StructType):
            yield from field.field_type.fields
        else:
            yield field


def _reader(field: NestedField, is_wanted: bool, metric_ids: Sequence[int]) -> Read:
    kind = field.field_type
    if isinstance(kind, IntegerType | LongType):
        return methodcaller("read_int") if field.required else _optional_number
    if isinstance(kind, StringType):
        return methodcaller("read_utf8") if field.required else _optional_text
    if field.field_id == PARTITION and isinstance(kind, StructType):
        read = _tuple_reader(kind)
    elif isinstance(kind, MapType) and isinstance(kind.key_type, IntegerType):
        read = _metric_reader(kind, metric_ids if is_wanted else ())
    elif isinstance(kind, ListType) and isinstance(kind.element_type, IntegerType | LongType):
        read = _numbers if kind.element_required else construct_reader(kind).read
    else:
        read = construct_reader(kind).read
    return read if field.required else _optional(read)


# NULL is the first branch of every union in Iceberg.


def _optional_number(decoder: BinaryDecoder) -> int | None:
    return decoder.read_int() if decoder.read_int() > 0 else None


def _optional_text(decoder: BinaryDecoder) -> str | None:
    return decoder.read_utf8() if decoder.read_int() > 0 else None


def _optional(read: Read) -> Read:
    def read_optional(decoder: BinaryDecoder) -> Any:
        return read(decoder) if decoder.read_int() > 0 else None

    return read_optional


def _numbers(decoder: BinaryDecoder) -> tuple[int, ...]:
    found: tuple[int, ...] = ()
    while count := decoder.read_int():
        block = decoder.read_ints(count if count > 0 else _sized(decoder, count))
        found = (*found, *block)
    return found


def _sized(decoder: BinaryDecoder, count: int) -> int:
    """Return the number of items of a block that also has its size in bytes."""
    decoder.skip_int()
    return -count


def _tuple_reader(struct: StructType) -> Read:
    readers = tuple(_reader(field, True, ()) for field in struct.fields)

    def read(decoder: BinaryDecoder) -> tuple[Any, ...]:
        return tuple([each(decoder) for each in readers])

    return read


def _metric_reader(kind: MapType, metric_ids: Sequence[int]) -> Read:
    if isinstance(kind.value_type, LongType | IntegerType) and kind.value_required:
        return _number_picker(metric_ids) if metric_ids else _pass_numbers
    if isinstance(kind.value_type, BinaryType) and kind.value_required:
        return _bytes_picker(metric_ids)
    return _picker(construct_reader(kind).read, metric_ids)


def _pass_numbers(decoder: BinaryDecoder) -> None:
    while count := decoder.read_int():
        decoder.read_ints(2 * (count if count > 0 else _sized(decoder, count)))


def _number_picker(metric_ids: Sequence[int]) -> Read:
    """Read numbers by field id, which files of one writer have at the same places."""
    ids = list(metric_ids)
    length, places = 0, [0]

    def read(decoder: BinaryDecoder) -> Sequence[int | None] | None:
        nonlocal length, places
        pairs: Sequence[int] = ()
        while count := decoder.read_int():
            block = decoder.read_ints(2 * (count if count > 0 else _sized(decoder, count)))
            pairs = [*pairs, *block] if pairs else block
        if not pairs:
            return None
        if len(pairs) == length and [pairs[place] for place in places] == ids:
            return [pairs[place + 1] for place in places]
        found = dict(zip(pairs[::2], range(0, len(pairs), 2), strict=True))
        length, places = len(pairs), [found[each] for each in ids if each in found]
        return [pairs[found[each] + 1] if each in found else None for each in ids]

    return read


def _bytes_picker(metric_ids: Sequence[int]) -> Read:
    def read(decoder: BinaryDecoder) -> Sequence[bytes | None]:
        found: dict[int, bytes] = {}
        while count := decoder.read_int():
            decoder.read_int_bytes_dict(count if count > 0 else _sized(decoder, count), found)
        return [found.get(field_id) for field_id in metric_ids]

    return read


def _picker(read: Callable[[BinaryDecoder], Mapping[int, Any]], metric_ids: Sequence[int]) -> Read:
    def read_wanted(decoder: BinaryDecoder) -> Sequence[Any]:
        found = read(decoder)
        return [found.get(field_id) for field_id in metric_ids]

    return read_wanted
