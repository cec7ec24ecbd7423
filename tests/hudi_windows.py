"""Read states and windows of small written Hudi tables, by the requested times of their writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from golden_hudi import Golden
from tidegate.model.instant import InstantRange
from tidegate.predicate import Predicate
from tidegate.read.merge import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hudi_writer import HudiTable
    from tidegate.model.plan import Piece, Pin

KIND, ORDINAL, LACKING = "_change_type", "_change_ordinal", "_partial"
ADDED = {"with_deletes": (KIND,), "changelog": (KIND, ORDINAL, LACKING)}


def opened(table: HudiTable, mode: str, columns: Sequence[str] = (), **keys: Any) -> Golden:
    """The table as it is now, in one read mode."""
    names = [*(columns or table.columns), *ADDED.get(mode, ())]
    read = {"columns": names, **keys.pop("read", {})}
    return Golden("written", mode, table.root, read=read, **keys)


def between(found: Golden, start: str | None, end: str | None) -> InstantRange:
    """The window after one write up to another; None: from the beginning, up to the head."""
    known = {it.id.partition("_")[0]: it for it in found.writes}
    assert found.pin.head is not None
    return InstantRange(known[start] if start else None, known[end] if end else found.pin.head)


def planned(found: Golden, window: InstantRange) -> tuple[Pin, tuple[Piece, ...]]:
    """The pin and the pieces of a window."""
    pin = found.source.timeline.at(found.pin, window.end_inclusive)
    return pin, tuple(found.source.slicing.units(pin, window))


def rows(
    table: HudiTable,
    mode: str = "snapshot",
    start: str | None = None,
    end: str | None = None,
    columns: Sequence[str] = (),
    *,
    passing: str = "",
) -> list[tuple[Any, ...]]:
    """The rows of a window as sorted tuples of the columns, those of changes at the end.

    `passing` is a filter.
    """
    found = opened(table, mode, columns)
    pin, pieces = planned(found, between(found, start, end))
    reader = found.source.reading.reader(pin)
    condition = Predicate.parse(passing, reader.schema, "a test") if passing else None
    options = ReadOptions(filter=condition)
    read = pa.Table.from_batches(reader.batches(pieces, options), reader.schema)
    return sorted((tuple(row.values()) for row in read.to_pylist()), key=repr)


def state(table: HudiTable, end: str | None = None) -> list[tuple[Any, ...]]:
    """The rows of a state."""
    return rows(table, end=end)
