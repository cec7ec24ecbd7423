"""What a marker tells of files that do not tell their own columns, and how it is read again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.model.part_format import CsvForm, PartFormat

Told = Mapping[str, Any]

_PLAIN = {
    str(kind): kind
    for kind in (
        pa.null(),
        pa.bool_(),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64()),
        *(pa.string(), pa.large_string()),
        *(pa.date32(), pa.time32("s"), pa.time32("ms"), pa.time64("us")),
    )
}
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")
_DECIMAL = re.compile(r"decimal128\((\d+), (\d+)\)")


def tell(form: PartFormat, columns: pa.Schema) -> Told:
    """Return what a reader has to know of files of text.

    Args:
        form: how they are written.
        columns: those of all files, plain, in their order.
    """
    csv = {} if form.csv is None else {"csv": _without_version(form.csv)}
    return {"format": form.name, **csv, "columns": [_field(field) for field in columns]}


def told(raw: Told) -> tuple[PartFormat, pa.Schema]:
    """Read the result of `tell`; the names of files tell their compression.

    Raises:
        ValueError: it is something else.
    """
    name, csv = raw["format"], raw.get("csv")
    form = CsvForm(**csv) if csv is not None else None
    return PartFormat(name, "none", form), pa.schema(_read_fields(raw["columns"]))


def _without_version(form: CsvForm) -> dict[str, Any]:
    return {key: item for key, item in form.to_json().items() if key != "format"}


def _field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _text(field.type)}


def _text(kind: pa.DataType) -> Any:
    """Return Arrow's text of a plain type; lists and structs as objects."""
    if pa.types.is_struct(kind):
        return {"struct": [_field(field) for field in kind]}
    if pa.types.is_nested(kind):
        return {"list": _text(kind.value_type)}
    return str(kind)


def _read_fields(raw: Sequence[Told]) -> list[pa.Field]:
    return [pa.field(item["name"], _read(item["type"])) for item in raw]


def _read(raw: Any) -> pa.DataType:
    if isinstance(raw, Mapping):
        if "struct" in raw:
            return pa.struct(_read_fields(raw["struct"]))
        return pa.list_(pa.field("element", _read(raw["list"])))
    if raw in _PLAIN:
        return _PLAIN[raw]
    if moment := _TIMESTAMP.fullmatch(raw):
        return pa.timestamp(*moment.groups())
    if decimal := _DECIMAL.fullmatch(raw):
        return pa.decimal128(*map(int, decimal.groups()))
    problem = f"no type of a column: {raw!r}"
    raise ValueError(problem)
