"""Open the states of golden Iceberg tables, as planning does, and make manifest entries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from pyiceberg.types import LongType

from tidegate.source.iceberg.changes.states import StateReader
from tidegate.source.iceberg.deletes.rules import delete_rules
from tidegate.source.iceberg.manifests.decode import ManifestReader
from tidegate.source.iceberg.manifests.entries import Content, Entry
from tidegate.source.iceberg.manifests.metrics import ColumnMetrics, Metrics
from tidegate.source.iceberg.manifests.pruning import Pruning

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import PrimitiveType

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
    table = golden.source()._access.opener.open()
    pruning = Pruning(table.schema(), table.specs(), text)
    rules = delete_rules(golden.case, table.metadata, path_match)
    return Opened(table, StateReader(ManifestReader(table.io, golden.case), pruning, rules))


NAMES = count()
_LONG = LongType()


def metrics_of(
    bounds: dict[int, tuple[bytes, bytes]],
    nulls: dict[int, int],
    rows: int = 10,
    kind: PrimitiveType = _LONG,
) -> Metrics:
    """Make column metrics: field id → bounds, and → number of NULLs; all columns of one type."""
    ids = sorted({*bounds, *nulls})
    columns = []
    for field in ids:
        values = rows if field in nulls else None
        columns.append(ColumnMetrics(values, nulls.get(field), None, *bounds.get(field, ())))
    places = {field: place for place, field in enumerate(ids)}
    return Metrics(rows, places, tuple(columns), dict.fromkeys(ids, kind))


def entry_of(**values: Any) -> Entry:
    """Make a manifest entry, by default of an unpartitioned data file."""
    found: dict[str, Any] = {
        "status": 1,
        "snapshot_id": 1,
        "sequence_number": 1,
        "file_sequence_number": 1,
        "spec_id": 0,
        "content": Content.ROWS,
        "path": f"s3://lake/data/{next(NAMES)}.parquet",
        "file_format": "parquet",
        "partition": (),
        "rows": 10,
        "size_bytes": 100,
        "encrypted": False,
        "split_offsets": (),
        "first_row_id": None,
        "equality_ids": (),
        "referenced": None,
        "content_offset": None,
        "content_size": None,
        "metrics": None,
    }
    return Entry(**(found | values))
