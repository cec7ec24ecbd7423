"""Read a part file of text, whose columns and number of rows nothing in the file tells."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from tidegate.physical.parts.types import guessed_bytes, stored_schema
from tidegate.physical.protocol import BATCH_ROWS, counted_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidegate.storage import PlacedFile


class TextRows:
    """See `PartRows`.

    Args:
        file: where it is.
        columns: those of its plan.
        parse: reads some of the columns of the file, at least one, from the beginning.
    """

    def __init__(
        self,
        file: PlacedFile,
        columns: pa.Schema,
        parse: Callable[[pa.Schema], Iterator[pa.RecordBatch]],
    ) -> None:
        with file.open() as opened:
            self._size = opened.size()
        self._schema = stored_schema(columns)
        self._parse = parse

    @property
    def schema(self) -> pa.Schema:
        """The columns that the reader was told."""
        return self._schema

    @cached_property
    def rows(self) -> int:
        """All rows, which are counted by reading one column."""
        return sum(batch.num_rows for batch in self._parse(self._schema_of([self._narrowest])))

    @property
    def column_bytes(self) -> Mapping[str, int]:
        """A guess from types and length."""
        return guessed_bytes(self._schema, self.rows, self._size)

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Decode all rows in their order."""
        wanted = self._schema_of(columns or [self._narrowest])
        for batch in self._parse(wanted):
            read: Any = batch if columns else counted_rows(batch.num_rows)
            for start in range(0, batch.num_rows, batch_rows):
                yield read.slice(start, batch_rows)

    @property
    def _narrowest(self) -> str:
        """The column that costs least to parse."""
        names: list[str] = self._schema.names
        plain = (name for name in names if not pa.types.is_nested(self._schema.field(name).type))
        return next(plain, names[0])

    def _schema_of(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in columns])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing: each reading opens and closes the file."""
