"""Open files that stand, to write their rows anew."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import StandingFileUnreadable
from tidegate.physical import BATCH_BYTES, BATCH_ROWS
from tidegate.physical.parts import open_part
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts import PartRows
    from tidegate.storage import Storage


@contextmanager
def opened(
    storage: Storage, path: str, form: PartFormat, columns: pa.Schema | None = None
) -> Iterator[PartRows]:
    """Open a file.

    Args:
        storage: that has the file.
        path: of it.
        form: how it was written.
        columns: as its plan had them; None: as the file says.

    Raises:
        StandingFileUnreadable: it is missing or damaged; that may be found while it is read.
    """
    try:
        with open_part(path, form, columns, storage) as rows:
            yield rows
    except (OSError, pa.ArrowException) as broken:
        raise (
            silence_of(path, broken)
            or StandingFileUnreadable(path=path, problem=str(broken).strip())
        ) from broken


def batch_rows(file: PartRows, columns: Sequence[str]) -> int:
    """Return how many rows fit in `BATCH_BYTES`, which bounds memory for wide rows."""
    sizes = file.column_bytes
    size = sum(sizes.get(name, 0) for name in columns)
    return max(1, min(BATCH_ROWS, BATCH_BYTES * file.rows // max(size, 1)))
