"""Read the blocks of log files, and put their rows into the columns of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import SourceFileDamaged
from tidegate.read.open_piece import damage_named
from tidegate.source.hudi.logs.blocks import read_blocks
from tidegate.source.hudi.logs.native import native_block
from tidegate.source.hudi.slices.details import BLOCKS
from tidegate.source.hudi.slices.names import LogFile, parse_name
from tidegate.source.hudi.table.promotion import cast_to
from tidegate.source.named_columns import found_column
from tidegate.source.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tidegate.model.file_slice import Delta
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.logs.blocks import Block


class LogFiles:
    """The log files of a table.

    Args:
        files: of the table.
    """

    def __init__(self, files: TableFiles) -> None:
        self._files = files

    def blocks(self, logs: Sequence[Delta]) -> Iterator[Block]:
        """Walk over the blocks of logs, in their order.

        Raises:
            SourceFileDamaged: a log is shorter than planned, or longer although it is written once
                (HUDI-P4).
            SourceFileGone: a log is not there any more.
            NoLogFile, LogBlockUnreadable: see `read_blocks` and `native_block`.
        """
        for log in logs:
            with damage_named(log.path), self._opened(log) as file:
                if log.file_format == BLOCKS:
                    yield from read_blocks(file, log.path, log.file_bytes)
                else:
                    yield native_block(file, _named(log))

    def contents(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, bytes]]:
        """Read the contents of blocks; a file is opened once for blocks that follow each other."""
        path, file = "", None
        try:
            for block in blocks:
                with damage_named(block.path):
                    if block.path != path or file is None:
                        if file is not None:
                            file.close()
                        path = block.path
                        file = self._files.open(self._files.below(path))
                    file.seek(block.offset)
                    yield block, bytes(file.read(block.length))
        finally:
            if file is not None:
                file.close()

    def _opened(self, log: Delta) -> pa.NativeFile:
        file = self._files.open(self._files.below(log.path))
        found = file.size()
        is_appended = log.file_format == BLOCKS and found > log.file_bytes
        if found != log.file_bytes and not is_appended:
            file.close()
            problem = f"expected {log.file_bytes} bytes, found {found}"
            raise SourceFileDamaged(path=log.path, problem=problem)
        return file


def _named(log: Delta) -> LogFile:
    named = parse_name(log.path, log.file_bytes)
    assert isinstance(named, LogFile)
    return named


def conformed(decoded: pa.RecordBatch, wanted: Sequence[Wanted], path: str) -> pa.RecordBatch:
    """Return decoded rows with the columns and types that are wanted, found by name.

    Args:
        decoded: rows of a block.
        wanted: the columns; those that the block does not have are NULL.
        path: of the file, for errors.
    """
    found = [found_column(column) for column in decoded.schema]
    return Projection(wanted, found, {}, path, cast_to).apply(decoded, path)
