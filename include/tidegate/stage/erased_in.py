"""Find the erased rows of one file, and write it anew without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from tidegate.physical.arrays import no_rows
from tidegate.read.erased_rows import ErasedRows, untold
from tidegate.stage.part_file import PartFileWriter
from tidegate.stage.standing_rows import batch_rows, opened

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from tidegate.model.erasure import Erasure
    from tidegate.model.part_format import PartFormat
    from tidegate.storage import Storage


def erased_in(
    storage: Storage,
    path: str,
    form: PartFormat,
    erasures: Iterable[Erasure],
    columns: pa.Schema | None = None,
) -> int:
    """Count the rows of a file that are erased; only the columns that tell are read.

    Args:
        storage: that has the file.
        path: of it.
        form: how it was written.
        erasures: that name the rows.
        columns: of the file, as its plan had them; None: as the file says.

    Raises:
        StandingFileUnreadable: the file is missing or damaged.
    """
    with opened(storage, path, form, columns) as file:
        erased = ErasedRows(erasures, file.schema)
        if not erased.columns:
            return 0
        batches = file.batches(erased.columns, batch_rows(file, erased.columns))
        return sum(int(erased.mask(batch).sum()) for batch in batches)


def tells(
    storage: Storage, path: str, form: PartFormat, columns: pa.Schema | None, erasure: Erasure
) -> bool:
    """Return whether the columns of a file tell which of its rows an erasure names.

    Args:
        storage: that has the file.
        path: of it.
        form: how it was written.
        columns: of the file, as its plan had them; None: as the file says.
        erasure: that names rows.

    Raises:
        StandingFileUnreadable: the file is missing or damaged.
    """
    with opened(storage, path, form, columns) as file:
        return untold(erasure, file.schema) is None


def write_without(
    storage: Storage,
    path: str,
    to: BinaryIO,
    form: PartFormat,
    erasures: Iterable[Erasure],
    columns: pa.Schema | None = None,
) -> None:
    """Write the rows of a file that are not erased; a file without rows if all are.

    Args:
        storage: that has the file.
        path: of it.
        to: the new file, which is closed at the end.
        form: how the file was written, and the new one is.
        erasures: that name the rows.
        columns: of the file, as its plan had them; None: as the file says.

    Raises:
        StandingFileUnreadable: the file is missing or damaged.
        StorageFull: no space is left (Transient).
    """
    with opened(storage, path, form, columns) as file:
        names = file.schema.names
        erased = ErasedRows(erasures, file.schema)
        writer = PartFileWriter(to, no_rows(file.schema), form)
        try:
            for batch in file.batches(names, batch_rows(file, names)):
                left = erased.left(batch)
                if left.num_rows:
                    writer.write(left)
        except BaseException:
            writer.abandon()
            raise
    writer.close()
