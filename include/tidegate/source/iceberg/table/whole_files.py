"""Open a data or delete file, and compare it with its manifest entry.

The number of rows decides, not the length: writers and tools are known to write wrong lengths to
manifests (ICE-10.4), and a truncated file has no footer or, in Avro, fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate import physical
from tidegate.errors import SourceFileDamaged, SourceUnreachable, UnsupportedFeature
from tidegate.source.iceberg.table.paths import open_location
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

    from tidegate.physical import PhysicalRows


@dataclass(frozen=True)
class ManifestSays:
    """The manifest entry of a file, as far as it is compared."""

    path: str
    file_format: str
    rows: int
    """The rows of the whole file, including deleted ones."""
    length: int


def open_whole(files: FileIO, said: ManifestSays, source: str) -> PhysicalRows:
    """Open a file that has all its rows.

    Args:
        files: where the table's files are.
        said: its manifest entry.
        source: the table, for errors.

    Raises:
        SourceFileGone: it was deleted after planning.
        SourceFileDamaged: it has no footer or header, or more or fewer rows.
        UnsupportedFeature: it uses something that cannot be read.
        SourceUnreachable: the store did not answer (Transient).
    """
    file = open_location(files, said.path, source)
    try:
        found_length = file.size()
    except OSError as silent:
        raise SourceUnreachable(source=source, problem=f"{said.path}: {silent}") from silent
    try:
        rows = physical.open_rows(file, said.file_format)
    except pa.ArrowNotImplementedError as unknown:
        raise UnsupportedFeature(source=source, feature=f"{said.path}: {unknown}") from unknown
    except (OSError, pa.ArrowException) as broken:
        problem = f"{broken}{_lengths(said.length, found_length)}"
        raise (
            silence_of(said.path, broken) or SourceFileDamaged(path=said.path, problem=problem)
        ) from broken
    if rows.rows != said.rows:
        counts = f"expected {said.rows} rows, found {rows.rows}"
        with rows:
            raise SourceFileDamaged(
                path=said.path, problem=f"{counts}{_lengths(said.length, found_length)}"
            )
    return rows


def _lengths(expected: int, found: int) -> str:
    return "" if expected == found else f" (expected {expected} bytes, found {found})"
