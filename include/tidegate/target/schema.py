"""Unify the schemas of part files that were written under different ones. Reads no file.

A source may add, drop and widen columns (ICE-6.16), so the files of a table, and of one partition
after late rows, may differ. Their common schema has every column of any file, each with a type that
all of its values can be read as without loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from tidegate.errors import ColumnTypesDiffer

_TIME_UNITS = ("s", "ms", "us", "ns")

Rule = Callable[[pa.DataType, pa.DataType], pa.DataType | None]


def unified(files: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return a schema that all files can be read with.

    Args:
        files: (path, schema) of each; the path is used in the error.

    Returns:
        Every column, in the order of first occurrence, nullable and without metadata; a file that
        lacks one has NULLs.
    """
    types: dict[str, pa.DataType] = {}
    origins: dict[str, str] = {}
    for path, schema in files:
        for field in schema:
            found = plain(field.type)
            known = types.setdefault(field.name, found)
            wide = known if known == found else common_type(known, found)
            if wide is None:
                raise ColumnTypesDiffer(
                    column=field.name,
                    file=path,
                    type=str(found),
                    other_file=origins[field.name],
                    other_type=str(known),
                )
            if wide != known or field.name not in origins:
                types[field.name], origins[field.name] = wide, path
    return pa.schema(list(types.items()))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries and nullability, which differ between files of a table."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if _is_list(kind):
        return pa.list_(pa.field("element", plain(kind.value_type)))
    return kind


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the narrowest type that holds all values of both plain types; None without one."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    return next((kind for rule in _RULES if (kind := rule(one, other)) is not None), None)


def _integers(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_integer(one) and pa.types.is_integer(other)):
        return None
    narrow, wide = sorted((one, other), key=lambda kind: kind.bit_width)
    if pa.types.is_signed_integer(narrow) == pa.types.is_signed_integer(wide):
        return wide
    fits = narrow.bit_width < wide.bit_width and pa.types.is_signed_integer(wide)
    return wide if fits else None


def _floats(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_floating(one) and pa.types.is_floating(other)):
        return None
    return max(one, other, key=lambda kind: kind.bit_width)


def _decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_decimal(one) and pa.types.is_decimal(other) and one.scale == other.scale):
        return None
    return max(one, other, key=lambda kind: (kind.precision, kind.bit_width))


def _timestamps(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_timestamp(one) and pa.types.is_timestamp(other)):
        return None
    if (one.tz is None) != (other.tz is None):
        return None
    # Two zones denote the same instants.
    return pa.timestamp(_finer(one, other), one.tz if one.tz == other.tz else "UTC")


def _dates(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    for day, moment in ((one, other), (other, one)):
        if pa.types.is_date32(day) and pa.types.is_timestamp(moment) and moment.tz is None:
            return moment
    return None


def _times(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_time(one) and pa.types.is_time(other)):
        return None
    unit = _finer(one, other)
    return pa.time32(unit) if unit in {"s", "ms"} else pa.time64(unit)


def _texts(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    return pa.large_string() if _is_text(one) and _is_text(other) else None


def _binaries(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    return pa.large_binary() if _is_bytes(one) and _is_bytes(other) else None


def _lists(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_list(one) and pa.types.is_list(other)):
        return None
    element = common_type(one.value_type, other.value_type)
    return None if element is None else pa.list_(pa.field("element", element))


def _maps(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_map(one) and pa.types.is_map(other)):
        return None
    key = common_type(one.key_type, other.key_type)
    item = common_type(one.item_type, other.item_type)
    return None if key is None or item is None else pa.map_(key, item)


def _structs(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)):
        return None
    types = {field.name: field.type for field in one}
    for field in other:
        wide = common_type(types.get(field.name, field.type), field.type)
        if wide is None:
            return None
        types[field.name] = wide
    return pa.struct(list(types.items()))


def _finer(one: pa.DataType, other: pa.DataType) -> str:
    return _TIME_UNITS[max(map(_TIME_UNITS.index, (one.unit, other.unit)))]


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


_RULES: tuple[Rule, ...] = (
    _integers,
    _floats,
    _decimals,
    _timestamps,
    _dates,
    _times,
    _texts,
    _binaries,
    _lists,
    _maps,
    _structs,
)
