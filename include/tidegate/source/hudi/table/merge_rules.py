"""How the records of a key are merged: the merge mode, and which records are deletes (HUDI-M7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tidegate.source.hudi.table.properties import DeleteMarker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.source.hudi.table.properties import TableProperties

_MODE = "hoodie.record.merge.mode"
_STRATEGIES = ("hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy")
_PAYLOADS = (
    "hoodie.compaction.payload.class",
    "hoodie.datasource.write.payload.class",
    "hoodie.table.legacy.payload.class",
)
_STRATEGY_FIRST = 8
"""From this version on the strategy's id decides before the payload class."""


class MergeMode(StrEnum):
    """Which of two records of a key wins."""

    COMMIT_TIME = "commit_time"
    """The later one (HUDI-M8)."""
    EVENT_TIME = "event_time"
    """The one with the greater ordering value; of equal ones the later one (HUDI-M9)."""


class Filling(StrEnum):
    """Which values of the winner are taken from the loser (HUDI-M13)."""

    NOTHING = "nothing"
    DEFAULTS = "defaults"
    """NULL: tables whose columns have other defaults are refused."""
    UNAVAILABLE = "unavailable"
    """Texts that stand for a value that the database did not send."""


@dataclass(frozen=True)
class MergeRules:
    """How the records of one table are merged."""

    mode: MergeMode
    marker: DeleteMarker | None = None
    filling: Filling = Filling.NOTHING


_BY_STRATEGY: Mapping[str, MergeMode] = {
    "ce9acb64-bde0-424c-9b91-f6ebba25356d": MergeMode.COMMIT_TIME,
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5": MergeMode.EVENT_TIME,
}
_BY_PAYLOAD_CLASS = "00000000-0000-0000-0000-000000000000"
"""The strategy that leaves the merge to the payload class."""
_BY_MODE: Mapping[str, MergeMode] = {
    "COMMIT_TIME_ORDERING": MergeMode.COMMIT_TIME,
    "EVENT_TIME_ORDERING": MergeMode.EVENT_TIME,
}
_PAYLOAD_RULES: Mapping[str, MergeRules] = {
    "OverwriteWithLatestAvroPayload": MergeRules(MergeMode.COMMIT_TIME),
    "DefaultHoodieRecordPayload": MergeRules(MergeMode.EVENT_TIME),
    "EventTimeAvroPayload": MergeRules(MergeMode.EVENT_TIME),
    "OverwriteNonDefaultsWithLatestAvroPayload": MergeRules(
        MergeMode.COMMIT_TIME, filling=Filling.DEFAULTS
    ),
    "PartialUpdateAvroPayload": MergeRules(MergeMode.EVENT_TIME, filling=Filling.DEFAULTS),
    "AWSDmsAvroPayload": MergeRules(MergeMode.COMMIT_TIME, DeleteMarker("Op", "D")),
    # Below version 9 values that the database did not send are not filled, as the engine answers.
    "PostgresDebeziumAvroPayload": MergeRules(
        MergeMode.EVENT_TIME, DeleteMarker("_change_operation_type", "d")
    ),
}
"""Payload class → the rules that it stands for; from version 9 on the table itself names them.

The payload of MySQL is not among them: it compares the numbers within a text.
"""
_FILLING: Mapping[str, Filling] = {
    "": Filling.NOTHING,
    "IGNORE_DEFAULTS": Filling.DEFAULTS,
    "FILL_UNAVAILABLE": Filling.UNAVAILABLE,
}


def merge_rules(table: TableProperties) -> MergeRules:
    """Return how the records of a table are merged.

    Raises:
        HudiPropertyUnsupported: by code of the writer's, which cannot be run here (HUDI-S3).
    """
    partial = "hoodie.table.partial.update.mode"
    said = table.raw.get(partial, "")
    if said not in _FILLING:
        raise table.refusal(partial, "IGNORE_DEFAULTS or FILL_UNAVAILABLE")
    implied = _rules(table)
    filling = _FILLING[said]
    return MergeRules(
        implied.mode,
        table.delete_marker or implied.marker,
        implied.filling if filling is Filling.NOTHING else filling,
    )


def _rules(table: TableProperties) -> MergeRules:
    strategy, payload = _first(table, _STRATEGIES), _first(table, _PAYLOADS)
    named = table.raw.get(_MODE)
    if named is not None and named in _BY_MODE:
        return MergeRules(_BY_MODE[named])
    if named and (strategy is None or table.raw[strategy] != _BY_PAYLOAD_CLASS):
        raise table.refusal(_MODE, " or ".join(_BY_MODE))
    if strategy is None and payload is None:
        mode = MergeMode.EVENT_TIME if table.ordering_fields else MergeMode.COMMIT_TIME
        return MergeRules(mode)
    keys = [key for key in (strategy, payload) if key is not None]
    if table.version < _STRATEGY_FIRST or named:
        keys.reverse()
    found = table.raw[keys[0]]
    if found in _BY_STRATEGY:
        return MergeRules(_BY_STRATEGY[found])
    rules = _PAYLOAD_RULES.get(found.rpartition(".")[2])
    if rules is None:
        raise table.refusal(keys[0], "a merge by commit time or event time")
    return rules


def _first(table: TableProperties, keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if table.raw.get(key)), None)
