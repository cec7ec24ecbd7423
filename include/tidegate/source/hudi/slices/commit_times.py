"""Find rows of a base file whose commit time is that of a service, not of a write (HUDI-W18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.physical import ParquetRows
from tidegate.source.hudi.table.columns import COMMIT_TIME

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidegate.physical import PhysicalRows


def rewriter(file: PhysicalRows, services: Collection[str]) -> str | None:
    """Return a service by whose own commit time rows of a base file are known; None: none is.

    The column is read only if the footer's bounds do not rule all services out.

    Args:
        file: the open base file.
        services: the requested times of services that may have written it, or a file before it.
    """
    possible = set(services)
    if isinstance(file, ParquetRows):
        # The rows of a service that keeps commit times are older than itself.
        bounds = file.text_bounds(COMMIT_TIME)
        if bounds is not None:
            possible = {it for it in possible if bounds[0] <= it <= bounds[1]}
    if not possible or COMMIT_TIME not in file.schema.names:
        return None
    for _, batch in file.batches([COMMIT_TIME], 0, file.rows):
        found = possible.intersection(batch.column(0).unique().to_pylist())
        if found:
            return min(found)
    return None
