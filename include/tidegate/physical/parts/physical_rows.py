"""Read a part file through the reader of its format, with the types that its plan had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tidegate.physical.parts.types import guessed_bytes, stored
from tidegate.physical.protocol import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidegate.physical.protocol import PhysicalRows
    from tidegate.storage import PlacedFile


class PhysicalPartRows:
    """See `PartRows`.

    Args:
        opened: the reader of the format.
        placed: where the file is.
        columns: what they are read as; None: as the file has them.
    """

    def __init__(
        self,
        opened: Callable[[pa.NativeFile], PhysicalRows],
        placed: PlacedFile,
        columns: pa.Schema | None,
    ) -> None:
        file = placed.open()
        self._size = file.size()
        try:
            self._rows = opened(file)
            self._schema = _told(self._rows.schema, columns)
        except BaseException:
            file.close()
            raise

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file, with the types that they are read as."""
        return self._schema

    @property
    def rows(self) -> int:
        """All rows, from the metadata of the file."""
        return self._rows.rows

    @property
    def column_bytes(self) -> Mapping[str, int]:
        """A guess from types and length."""
        return guessed_bytes(self._schema, self.rows, self._size)

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Decode all rows in their order."""
        wanted = pa.schema([self._schema.field(name) for name in columns])
        for _, batch in self._rows.batches(columns, 0, self.rows, batch_rows):
            yield batch.select(list(columns)).cast(wanted) if columns else batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._rows.__exit__(*exception)


def _told(found: pa.Schema, columns: pa.Schema | None) -> pa.Schema:
    """Return the columns of a file with the types that they were planned with."""
    told = {field.name: stored(field.type) for field in columns or ()}
    return pa.schema([pa.field(field.name, told.get(field.name, field.type)) for field in found])
