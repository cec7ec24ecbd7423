"""Check that records can be merged by the columns that order them and make their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.source.hudi.table.columns import META_COLUMNS
from tidegate.source.hudi.table.merge_rules import MergeMode

if TYPE_CHECKING:
    from tidegate.source.hudi.table.merge_rules import MergeRules
    from tidegate.source.hudi.table.properties import TableProperties

_SPELLED_ALIKE = (
    pa.types.is_string,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_decimal,
)
"""Types of key columns whose texts are the writer's; it spells floats and timestamps otherwise."""
_COMPLEX_SINCE = 8
"""The table version since which a generator for several columns spells a single one with its name,
or not, as the writer chose."""


def check_merge_columns(table: TableProperties, columns: pa.Schema, rules: MergeRules) -> None:
    """Refuse tables whose log records could not be merged with their rows.

    Args:
        table: merge-on-read.
        columns: of the table.
        rules: how its records are merged.

    Raises:
        HudiPropertyUnsupported: an ordering column is nested, or a key that is not stored has a
            text that cannot be told from its columns (HUDI-M15).
    """
    names = set(columns.names)
    if names.issubset(META_COLUMNS):
        return  # Nothing was written yet that tells the columns.
    is_ordered = rules.mode is MergeMode.EVENT_TIME
    if is_ordered and not names.issuperset(table.ordering_fields):
        raise table.refusal(table.ordering_key, "columns of the table that are not nested")
    if table.has_meta_fields or not table.key_fields:
        return
    if not names.issuperset(table.key_fields):
        raise table.refusal(table.record_key, "columns of the table that are not nested")
    is_single = len(table.key_fields) == 1
    if is_single and table.names_lone_keys and table.version >= _COMPLEX_SINCE:
        expected = "several columns, or keys that are stored, because of their key generator"
        raise table.refusal(table.record_key, expected)
    for name in table.key_fields:
        kind = columns.field(name).type
        if not any(is_one(kind) for is_one in _SPELLED_ALIKE):
            expected = f"columns that have one spelling, because keys are not stored; '{name}' is"
            raise table.refusal(table.record_key, f"{expected} {kind}")
