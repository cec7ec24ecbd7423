"""Turn one column of a file into the column that the schema wants, at every depth.

Fields are matched by key: a field id in Iceberg tables, a name in plain files.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tidegate.errors import SchemaIncompatible
from tidegate.source.promotion import CastTo, cast_to

Kernel = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class Wanted:
    """A column or nested field of the schema that is wanted."""

    key: Hashable
    name: str
    type: pa.DataType
    children: tuple[Wanted, ...] = ()
    default: Any = None
    """Python value for rows of files that lack the field (ICE-6.15)."""
    required: bool = False


@dataclass(frozen=True)
class Found:
    """A column or nested field of a file."""

    key: Hashable | None
    name: str
    type: pa.DataType
    children: tuple[Found, ...] = ()
    zoneless: bool = False
    """Whether it is a timestamp without a zone of its own (INT96)."""


@dataclass(frozen=True)
class ProjectedColumn:
    """Where a wanted column comes from: a column of the file, or a constant."""

    wanted: Wanted
    index: int | None
    """Position in the file's batch; None: a constant."""
    kernel: Kernel | None
    """None: the column is passed on as it is."""
    found: str = ""
    constant: pa.Scalar | None = None


@dataclass(frozen=True)
class Place:
    """The file and the column that are being decided on."""

    path: str
    constants: Mapping[Any, pa.Scalar]
    column: str = ""
    cast_to: CastTo = cast_to
    """Which primitive types may become which others, and how."""

    def inside(self, name: str) -> Place:
        """Return the place of a nested field."""
        return replace(self, column=f"{self.column}.{name}" if self.column else name)

    def refusal(self, expected: object, found: object) -> SchemaIncompatible:
        """Return the error for a column whose type cannot be used."""
        return SchemaIncompatible(
            path=self.path, column=self.column, expected=str(expected), found=str(found)
        )


def decide(wanted: Sequence[Wanted], found: Sequence[Found], place: Place) -> list[ProjectedColumn]:
    """Decide where each wanted field comes from, at one level of nesting.

    Raises:
        SchemaIncompatible: a type cannot be promoted, or a required column has no value anywhere.
    """
    positions = {field.key: index for index, field in enumerate(found) if field.key is not None}
    columns = []
    for field in wanted:
        index, inside = positions.get(field.key), place.inside(field.name)
        if index is None:
            columns.append(ProjectedColumn(field, None, None, constant=_default(field, inside)))
        else:
            kernel = _kernel(field, found[index], inside)
            columns.append(ProjectedColumn(field, index, kernel, found=str(found[index].type)))
    return columns


def project(column: ProjectedColumn, batch: pa.RecordBatch, path: str) -> pa.Array:
    """Return one wanted column of a batch.

    Raises:
        SchemaIncompatible: a value does not fit the wanted type.
    """
    if column.index is None:
        return _repeat(column.constant, column.wanted.type, batch.num_rows)
    array = batch.column(column.index)
    if column.kernel is None:
        return array
    try:
        return column.kernel(array)
    except pa.ArrowInvalid as refused:
        found = f"{column.found} ({refused})"
        raise SchemaIncompatible(
            path=path, column=column.wanted.name, expected=str(column.wanted.type), found=found
        ) from refused


def _default(wanted: Wanted, place: Place) -> pa.Scalar:
    """Return the value of a field that the file lacks, in the order of ICE-6.12."""
    if wanted.key in place.constants:
        return place.constants[wanted.key]
    if wanted.default is None:
        if wanted.required:
            expected = f"a required column of type {wanted.type}"
            raise place.refusal(expected, "no such column and no default")
        return pa.nulls(1, wanted.type)[0]
    return pa.scalar(wanted.default, wanted.type)


def _repeat(value: pa.Scalar | None, kind: pa.DataType, count: int) -> pa.Array:
    if value is None or not value.is_valid:
        return pa.nulls(count, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.repeat(value.value, count))
    return pa.repeat(value, count)


def stands_for(found: Found, wanted: Wanted) -> bool:
    """Return whether a field of a file has exactly the wanted nested fields, in the same order.

    The elements of lists and maps need no key, as in `_list_kernel` and `_map_kernel`.
    """
    if len(found.children) != len(wanted.children):
        return False
    has_keys = pa.types.is_struct(wanted.type)
    return all(
        (not has_keys or one.key == other.key) and stands_for(one, other)
        for one, other in zip(found.children, wanted.children, strict=True)
    )


def _kernel(wanted: Wanted, found: Found, place: Place) -> Kernel | None:
    """Return the function that converts a found array to the wanted type; None if it fits."""
    for is_kind, build in _NESTED:
        if is_kind(wanted.type):
            if pa.types.is_null(found.type):
                return lambda array: pa.nulls(len(array), wanted.type)
            if not is_kind(found.type):
                raise place.refusal(wanted.type, found.type)
            return build(wanted, found, place)
    if wanted.type == found.type:
        return None
    kernel = place.cast_to(found.type, wanted.type, zoneless=found.zoneless)
    if kernel is None:
        raise place.refusal(wanted.type, found.type)
    return kernel


def _struct_kernel(wanted: Wanted, found: Found, place: Place) -> Kernel | None:
    columns = decide(wanted.children, found.children, place)
    in_place = all(
        column.index == position and column.kernel is None
        for position, column in enumerate(columns)
    )
    if in_place and wanted.type == found.type:
        return None
    fields = list(wanted.type)

    def build(array: pa.Array) -> pa.Array:
        arrays = []
        for column in columns:
            if column.index is None:
                arrays.append(_repeat(column.constant, column.wanted.type, len(array)))
            else:
                child = array.field(column.index)
                arrays.append(column.kernel(child) if column.kernel else child)
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    return build


def _list_kernel(wanted: Wanted, found: Found, place: Place) -> Kernel | None:
    element = _kernel(wanted.children[0], found.children[0], place.inside("element"))
    if element is None and wanted.type == found.type:
        return None
    plain = None if pa.types.is_list(found.type) else pa.list_(found.type.value_field)

    def build(array: pa.Array) -> pa.Array:
        lists = array if plain is None else array.cast(plain)
        values = element(lists.values) if element else lists.values
        # From buffers, because NULL lists and offsets of slices stay as they are (ICE-6.15).
        return pa.Array.from_buffers(
            wanted.type,
            len(lists),
            lists.buffers()[:2],
            lists.null_count,
            lists.offset,
            children=[values],
        )

    return build


def _map_kernel(wanted: Wanted, found: Found, place: Place) -> Kernel | None:
    key = _kernel(wanted.children[0], found.children[0], place.inside("key"))
    value = _kernel(wanted.children[1], found.children[1], place.inside("value"))
    if key is None and value is None and wanted.type == found.type:
        return None
    fields = [wanted.type.key_field, wanted.type.item_field]

    def build(array: pa.Array) -> pa.Array:
        keys = key(array.keys) if key else array.keys
        values = value(array.items) if value else array.items
        entries = pa.StructArray.from_arrays([keys, values], fields=fields)
        return pa.Array.from_buffers(
            wanted.type,
            len(array),
            array.buffers()[:2],
            array.null_count,
            array.offset,
            children=[entries],
        )

    return build


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


_NESTED: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[Wanted, Found, Place], Kernel | None]], ...
] = (
    (pa.types.is_struct, _struct_kernel),
    (pa.types.is_map, _map_kernel),
    (_is_list, _list_kernel),
)
