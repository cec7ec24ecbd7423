"""Open the states of golden Iceberg tables, as planning does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.source.iceberg.delete_rules import delete_rules
from tidegate.source.iceberg.manifests import ManifestReader
from tidegate.source.iceberg.pruning import Pruning
from tidegate.source.iceberg.states import StateReader

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from golden_iceberg import Golden


@dataclass(frozen=True)
class Opened:
    """A golden table and a reader of its states."""

    table: Table
    states: StateReader

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Give a retained snapshot."""
        found = self.table.metadata.snapshot_by_id(snapshot_id)
        assert found
        return found


def opened(
    golden: Golden, text: str | None = None, path_match: str = "scheme_insensitive"
) -> Opened:
    """Open a golden table, perhaps with a filter."""
    table = golden.source()._opener.open()
    pruning = Pruning(table.schema(), table.specs(), text)
    rules = delete_rules(golden.case, table.metadata, path_match)
    return Opened(table, StateReader(ManifestReader(table.io, golden.case), pruning, rules))
