"""Decode the fields of a manifest entry that are wanted, and pass over the others quickly.

Column metrics make up most of a manifest: they are decoded for the columns that somebody asks
about, so that planning 100,000 files costs seconds and little memory.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any

from pyiceberg.avro.resolver import construct_reader
from pyiceberg.types import (
    BinaryType,
    IcebergType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.schema import Schema

    Read = Callable[[BinaryDecoder], Any]

PARTITION = 102
_DATA_FILE = 2
_NOTHING: Mapping[int, Any] = {}
_PLAIN: Mapping[type[IcebergType], str] = {
    IntegerType: "read_int",
    LongType: "read_int",
    StringType: "read_utf8",
}


def record_reader(
    schema: Schema, wanted: Mapping[int, int], metric_ids: Collection[int]
) -> Callable[[BinaryDecoder], list[Any]]:
    """Give a function that decodes one manifest entry.

    Args:
        schema: the writer's.
        wanted: field id → place in the list that the function gives; what the writer did not
            write stays None there.
        metric_ids: columns whose metrics are kept, of the maps that are wanted.
    """
    steps = tuple(
        (wanted.get(field.field_id), _reader(field, field.field_id in wanted, metric_ids))
        for field in _leaves(schema.fields)
    )
    width = len(wanted)

    def read(decoder: BinaryDecoder) -> list[Any]:
        values = [None] * width
        for place, step in steps:
            value = step(decoder)
            if place is not None:
                values[place] = value
        return values

    return read


def _leaves(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    for field in fields:
        if field.field_id == _DATA_FILE and isinstance(field.field_type, StructType):
            yield from field.field_type.fields
        else:
            yield field


def _reader(field: NestedField, is_wanted: bool, metric_ids: Collection[int]) -> Read:
    kind = field.field_type
    if field.field_id == PARTITION and isinstance(kind, StructType):
        read = _tuple_reader(kind)
    elif isinstance(kind, MapType) and isinstance(kind.key_type, IntegerType):
        read = _metric_reader(kind, tuple(metric_ids) if is_wanted else ())
    else:
        read = _value_reader(kind)
    return read if field.required else _optional(read)


def _value_reader(kind: IcebergType) -> Read:
    plain = _PLAIN.get(type(kind))
    return methodcaller(plain) if plain else construct_reader(kind).read


def _optional(read: Read) -> Read:
    def read_optional(decoder: BinaryDecoder) -> Any:
        # Iceberg writes NULL as the first branch of every union.
        return read(decoder) if decoder.read_int() > 0 else None

    return read_optional


def _tuple_reader(struct: StructType) -> Read:
    readers = tuple(_reader(field, True, ()) for field in struct.fields)

    def read(decoder: BinaryDecoder) -> tuple[Any, ...]:
        return tuple([each(decoder) for each in readers])

    return read


def _metric_reader(kind: MapType, metric_ids: tuple[int, ...]) -> Read:
    if isinstance(kind.value_type, LongType | IntegerType) and kind.value_required:
        return _block_reader(_add_numbers if metric_ids else _pass_numbers, metric_ids)
    if isinstance(kind.value_type, BinaryType) and kind.value_required:
        return _block_reader(_add_bytes, metric_ids)
    return construct_reader(kind).read


def _block_reader(
    add: Callable[[BinaryDecoder, int, dict[int, Any]], None], metric_ids: tuple[int, ...]
) -> Read:
    wanted = frozenset(metric_ids)

    def read(decoder: BinaryDecoder) -> Mapping[int, Any]:
        count = decoder.read_int()
        if count == 0:
            return _NOTHING
        found: dict[int, Any] = {}
        while count != 0:
            if count < 0:
                count = -count
                decoder.read_int()
            add(decoder, count, found)
            count = decoder.read_int()
        if len(metric_ids) > len(found):
            return {field_id: found[field_id] for field_id in found if field_id in wanted}
        return {field_id: found[field_id] for field_id in metric_ids if field_id in found}

    return read


def _add_numbers(decoder: BinaryDecoder, count: int, found: dict[int, Any]) -> None:
    numbers = decoder.read_ints(2 * count)
    found.update(zip(numbers[::2], numbers[1::2], strict=True))


def _pass_numbers(decoder: BinaryDecoder, count: int, found: dict[int, Any]) -> None:
    del found
    decoder.read_ints(2 * count)


def _add_bytes(decoder: BinaryDecoder, count: int, found: dict[int, Any]) -> None:
    decoder.read_int_bytes_dict(count, found)
