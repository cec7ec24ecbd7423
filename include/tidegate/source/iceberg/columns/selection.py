"""Choose the columns of a read: table columns and metadata columns, in order (ICE-3.21)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyiceberg.schema import Schema

from tidegate.config.reading import METADATA_COLUMNS
from tidegate.errors import AmbiguousColumn, ColumnMissing
from tidegate.model.nearness import listed_with_nearest
from tidegate.model.row_kind import RowKind
from tidegate.predicate import named_columns
from tidegate.source.iceberg.columns.metadata_columns import ALWAYS
from tidegate.source.iceberg.columns.name_mapping import parse_mapping
from tidegate.source.iceberg.columns.settling import hidden_columns, settle_rules
from tidegate.source.iceberg.table.variants import refuse_marked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import NestedField

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.plan import Pin

_NAME_MAPPING = "schema.name-mapping.default"


def pinned_selection(
    metadata: TableMetadata,
    whole: Schema,
    config: IcebergSourceConfig,
    extra: Sequence[str],
    source: str,
) -> dict[str, Any]:
    """Return the part of a pin about the selected columns, for `Selection.of`.

    Args:
        metadata: as pinned.
        whole: the schema to read with.
        config: the pipeline's `source`.
        extra: names of further columns.
        source: the table, for errors.

    Raises:
        ColumnMissing, AmbiguousColumn: see `select`.
        UnsupportedFeature: a column has a type that cannot be read.
        InvalidNameMapping: the table's mapping cannot be parsed.
    """
    mapping = metadata.properties.get(_NAME_MAPPING)
    if mapping is not None:
        # Whatever the files: whether a table can be read must not depend on the window.
        parse_mapping(mapping, source)
    hidden = hidden_columns(whole, config, metadata.format_version, source)
    _check_filter(whole, config, source)
    schema, names = select(whole, config, (*extra, *hidden), source)
    refuse_marked(schema, source)
    rules = settle_rules(whole, schema, config, names, source)
    upserts = config.read.output_mode == "lineage_upserts"
    return {
        "schema_id": whole.schema_id,
        "schema": schema.model_dump_json(),
        "schemas": [each.model_dump_json() for each in metadata.schemas],
        "columns": list(names),
        "row_kind": (RowKind.UPSERT if upserts else RowKind.INSERT).value,
        "settling": None if rules is None else rules.to_json(),
        "name_mapping": mapping,
    }


def narrowed(pin: Pin, columns: Collection[str]) -> Pin:
    """Return a pin that reads some of the columns, which may be in another case (ICE-6.17)."""
    wanted = {name.casefold() for name in columns}
    selection = Selection(pin.details)
    fields = [field for field in selection.schema.fields if field.name.casefold() in wanted]
    schema = Schema(*fields, schema_id=selection.schema.schema_id)
    names = [name for name in selection.names if name.casefold() in wanted]
    return replace(
        pin,
        schema=tuple(column for column in pin.schema if column[0] in names),
        details={**pin.details, "schema": schema.model_dump_json(), "columns": names},
    )


@dataclass(frozen=True)
class Selection:
    """The result of `pinned_selection`."""

    details: Mapping[str, Any]

    @property
    def names(self) -> Sequence[str]:
        """All columns of the result, in order."""
        names: Sequence[str] = self.details["columns"]
        return names

    @cached_property
    def schema(self) -> Schema:
        """The table's columns among them, with their names in the result."""
        return Schema.model_validate_json(self.details["schema"])

    @property
    def row_kind(self) -> RowKind:
        """The kind of rows that are in one state only."""
        return RowKind(self.details["row_kind"])

    @property
    def name_mapping(self) -> str | None:
        """The table's `schema.name-mapping.default`."""
        text: str | None = self.details["name_mapping"]
        return text

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        """All schemas of the table, oldest first, except that the one for reading comes last."""
        schemas = (Schema.model_validate_json(text) for text in self.details["schemas"])
        read_with = self.details["schema_id"]
        return tuple(sorted(schemas, key=lambda it: (it.schema_id == read_with, it.schema_id)))


def select(
    schema: Schema, config: IcebergSourceConfig, extra: Sequence[str], source: str
) -> tuple[Schema, tuple[str, ...]]:
    """Choose the columns of `read.columns`, those that the mode always has, and the extra ones.

    Args:
        schema: the whole schema to read with.
        config: the pipeline's `source`; without `case_sensitive`, `ID` finds `id` (ICE-6.17).
        extra: names of further columns.
        source: the table, for errors.

    Returns:
        The table's columns, named as requested, and the names of all selected columns, in order.

    Raises:
        ColumnMissing: the table has no column of a name.
        AmbiguousColumn: it has several; or a metadata column's name is also one of its own.
    """
    mode = config.read.output_mode
    always = ALWAYS.get(mode, ())
    asked = config.read.columns
    if asked is None:
        asked = tuple(field.name for field in schema.fields)
        metadata = frozenset(always) | METADATA_COLUMNS[mode].intersection(extra)
    else:
        metadata = METADATA_COLUMNS[mode]
    names = tuple(dict.fromkeys((*asked, *always, *extra)))
    # If all columns are read, none has to be spelled.
    exact = config.case_sensitive or config.read.columns is None
    own = []
    for name in names:
        if name in metadata:
            _check_free(schema, name, source)
        else:
            own.append(_field(schema, name, exact, source))
    return Schema(*own, schema_id=schema.schema_id), names


def _check_filter(schema: Schema, config: IcebergSourceConfig, source: str) -> None:
    """Refuse a filter whose names match two columns, even if all columns are read."""
    text = config.read.filter
    if text is None or config.case_sensitive:
        return
    for name in named_columns(text, "source.read.filter"):
        if any(_fits(field.name, name, case_sensitive=False) for field in schema.fields):
            _field(schema, name, case_sensitive=False, source=source)


def _check_free(schema: Schema, name: str, source: str) -> None:
    if any(field.name == name for field in schema.fields):
        raise AmbiguousColumn(
            source=source, column=name, found="a metadata column and a column of the table"
        )


def _field(schema: Schema, name: str, case_sensitive: bool, source: str) -> NestedField:
    found = [field for field in schema.fields if _fits(field.name, name, case_sensitive)]
    if not found:
        known = listed_with_nearest(name, (field.name for field in schema.fields))
        raise ColumnMissing(source=source, column=name, known=known)
    if len(found) > 1:
        names = " and ".join(f"'{field.name}'" for field in found)
        raise AmbiguousColumn(source=source, column=name, found=names)
    return found[0].model_copy(update={"name": name})


def _fits(name: str, asked: str, case_sensitive: bool) -> bool:
    return name == asked if case_sensitive else name.lower() == asked.lower()
