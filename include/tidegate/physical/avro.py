"""Read Avro files: blocks are the atoms (ICE-6.20), found without decoding any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tidegate.physical.avro_container import AvroContainer, Block
from tidegate.physical.avro_decoder import AvroDecoder
from tidegate.physical.avro_types import with_zones
from tidegate.physical.protocol import BATCH_BYTES, BATCH_ROWS, RowGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.physical.protocol import Joinable, Passing

# Blocks are read compressed; a quarter leaves room for their decompressed size.
_READ_BYTES = BATCH_BYTES // 4


class AvroRows:
    """See `PhysicalRows`. The blocks of one batch are decoded at a time.

    Args:
        file: open for random reads; closed with this.
        instants: whether timestamps that do not say it have a zone, as Avro defines them; by
            default they have none, as Iceberg's readers read them.

    Raises:
        OSError, pa.ArrowException: it is not an Avro file, or is incomplete.
    """

    def __init__(self, file: pa.NativeFile, *, instants: bool = False) -> None:
        self._file = file
        self._container = AvroContainer(file)
        schema = self._container.schema
        self._decoder = AvroDecoder(with_zones(schema) if instants else schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns, with the types of their logical types."""
        return self._decoder.schema

    @property
    def rows(self) -> int:
        """All rows, from the counts before the blocks."""
        return sum(block.rows for block in self._container.blocks)

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The blocks, many and small."""
        return tuple(block.row_group for block in self._container.blocks)

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Decode the blocks that overlap the range, and slice off rows outside it."""
        for first, blocks in self._bundles(start, end, batch_rows):
            rows = sum(block.rows for block in blocks)
            batch = self._decode(blocks, rows, columns)
            low, high = max(start, first), min(end, first + rows)
            for position in range(low, high, batch_rows):
                length = min(batch_rows, high - position)
                yield position, batch.slice(position - first, length)

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Return None: Avro is not decoded and filtered in one step."""
        del columns, start, end, passing, batch_rows
        return None

    def joinable(self, columns: Sequence[str]) -> None:
        """Return None: Avro files are not decoded together."""
        del columns

    def joining(self, first: Joinable) -> None:
        """See `joinable`."""
        del first

    def _bundles(self, start: int, end: int, most_rows: int) -> Iterator[tuple[int, list[Block]]]:
        """Yield adjacent blocks of the range to decode together, with their first position."""
        bundle: list[Block] = []
        rows = size_bytes = first = position = 0
        for block in self._container.blocks:
            if position < end and position + block.rows > start:
                length = block.end - block.start
                if bundle and (rows + block.rows > most_rows or size_bytes + length > _READ_BYTES):
                    yield first, bundle
                    bundle, rows, size_bytes = [], 0, 0
                first = first if bundle else position
                bundle.append(block)
                rows, size_bytes = rows + block.rows, size_bytes + length
            position += block.rows
        if bundle:
            yield first, bundle

    def _decode(self, blocks: list[Block], rows: int, columns: Sequence[str]) -> pa.RecordBatch:
        encoded = self._container.rows_of(blocks)
        try:
            return self._decoder.decode(encoded, rows, columns)
        except pa.ArrowInvalid as damaged:
            problem = f"Avro block at byte {blocks[0].offset}: {damaged}"
            raise pa.ArrowInvalid(problem) from damaged

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._file.close()
