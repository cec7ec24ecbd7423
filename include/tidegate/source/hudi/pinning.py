"""Pin an instant of a Hudi table: its columns, and how its rows are merged by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import HudiCommitTimesMissing, HudiSchemaUnsupported
from tidegate.model.plan import Pin
from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.source.columns import select_columns
from tidegate.source.hudi.slices.details import CHANGELOG, REPLACING, WITH_DELETES
from tidegate.source.hudi.table.columns import (
    META_COLUMNS,
    OF_CHANGES,
    KeyedBy,
    arrow_schema,
    refuse_defaults,
)
from tidegate.source.hudi.table.merge_columns import check_merge_columns
from tidegate.source.hudi.table.merge_rules import Filling, MergeMode, MergeRules, merge_rules
from tidegate.source.hudi.timeline.times import instant_of
from tidegate.source.hudi.timeline.writes import newest_write
from tidegate.source.named_columns import encode_schema
from tidegate.source.reading import pinned_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.source.hudi.access import TableAccess
    from tidegate.source.hudi.table.properties import TableProperties
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order

_ADDED = {WITH_DELETES: (CHANGE_TYPE,), CHANGELOG: tuple(OF_CHANGES)}


class HudiPins:
    """Makes the pins of one table."""

    def __init__(self, access: TableAccess, extra_columns: Sequence[str]) -> None:
        """Prepare.

        Args:
            access: to the table.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
        """
        self._access = access
        self._extra_columns = tuple(extra_columns)

    def of(self, timeline: LoadedTimeline, head: Order | None) -> Pin:
        """Pin one instant of a timeline; None: nothing is done yet.

        Raises:
            HudiCommitTimesMissing: rows do not have the time of their commit, and changes are read.
            HudiSchemaUnsupported: a column cannot be read.
        """
        table, config = timeline.table, self._access.config
        if not table.has_meta_fields and config.read.mode not in {"snapshot", REPLACING}:
            key = table.meta_fields_key
            raise HudiCommitTimesMissing(
                source=self._access.name, property=key, value=table.raw[key], mode=config.read.mode
            )
        # Changes are read with the newest columns, a state with its own, as Hudi does.
        schema_of = head if config.read.mode == "snapshot" else newest_write(timeline)
        added = _ADDED.get(config.read.mode, ())
        columns = self._table_schema(timeline, schema_of)
        whole = pa.schema(
            [
                *(pa.field(name, pa.string()) for name in META_COLUMNS if table.has_meta_fields),
                *columns,
                *(pa.field(name, OF_CHANGES[name]) for name in added),
            ]
        )
        known = [name for name in whole.names if name not in META_COLUMNS]
        # Before the first write nobody knows which columns there will be.
        asked = config.read.columns if len(columns) else None
        extra = self._extra_columns if len(columns) else ()
        chosen = select_columns(whole, asked or known, extra, self._access.name)
        rules = merge_rules(table) if table.is_merge_on_read else MergeRules(MergeMode.COMMIT_TIME)
        if table.is_merge_on_read:
            check_merge_columns(table, columns, rules)
        by = KeyedBy(
            mode=rules.mode.value,
            ordering=table.ordering_fields if rules.mode is MergeMode.EVENT_TIME else (),
            filling=rules.filling.value,
            key_fields=() if table.has_meta_fields else table.key_fields,
            marker=(rules.marker.column, rules.marker.value) if rules.marker else None,
        )
        details = {
            "table_schema": encode_schema(whole),
            "names": chosen.names,
            "keyed_by": by.to_json(),
        }
        if added or config.read.mode == REPLACING:
            details["properties"] = table.naming
        if table.has_mixed_logs:
            done = {key: action.completed for key, action in timeline.active.writes.items()}
            details["gate"] = {"first": timeline.active.first or "", "done": done}
        zone = self._access.zone(table)
        instant = instant_of(head, table.layout, zone) if head else None
        return Pin(_identity(timeline), instant, pinned_columns(chosen), details)

    def _table_schema(self, timeline: LoadedTimeline, head: Order | None) -> pa.Schema:
        """Return the columns as of an instant: those of the newest write that names them."""
        for action in reversed(timeline.active.done):
            is_later = head is None or action.order > head
            if is_later or timeline.active.writes.get(action.requested) != action:
                continue
            metadata = timeline.metadata(action)
            if metadata.evolution is not None:
                raise HudiSchemaUnsupported(
                    source=self._access.name, problem="it was evolved with schema-on-read"
                )
            if metadata.schema is not None:
                return self._columns(timeline.table, metadata.schema)
        created = timeline.table.created_schema
        return self._columns(timeline.table, created) if created else pa.schema([])

    def _columns(self, table: TableProperties, avro: str) -> pa.Schema:
        if table.is_merge_on_read and merge_rules(table).filling is Filling.DEFAULTS:
            kept = {*table.key_fields, *table.ordering_fields}
            refuse_defaults(self._access.name, avro, kept)
        return arrow_schema(self._access.name, avro)


def _identity(timeline: LoadedTimeline) -> str:
    """Return what tells a table from another one: Hudi's have a name, and no id."""
    return f"hudi {timeline.table.raw.get('hoodie.table.name', '')}"
