"""Open a published table as its markers list it, without pending or half-moved files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from tidegate.errors import (
    CommittedFileMissing,
    MarkerInvalid,
    MarkerMissing,
    PublishedTableMissing,
)
from tidegate.model.part_format import PARQUET, form_of_name
from tidegate.model.partition import unescape
from tidegate.physical.parts import open_part, part_kind
from tidegate.storage import LocalStorage
from tidegate.target.marker import StandingMarker, find_markers, is_hidden
from tidegate.target.schema import unified
from tidegate.target.told_columns import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts import PartRows

_THREADS = 8
_LARGEST_WITHOUT_ROWS = 1 << 12
"""Bytes; a header may be among them."""
_FILES = pafs.LocalFileSystem()


def read_committed(path: str | Path, *, marker: str | None = None) -> ds.Dataset:
    """Open a published table as its markers list it, without pending or half-moved files.

    A marker is recognised by its content, whatever `commit.marker.name` is: it is a hidden file in
    the directory of its partition. A partition without a marker has no rows here. If the schemas of
    the files differ, because columns were added, dropped or widened, each column is read as the
    type that holds all of its types, with NULLs for files that lack it.

    Args:
        path: the table root.
        marker: the only name that a marker may have, for a table that has others beside it; by
            default any name.

    Returns:
        A dataset of exactly the files that the markers list; partition keys are text columns. Of
        JSON lines and Avro, which Arrow's datasets do not read, the rows are in memory.

    Raises:
        PublishedTableMissing: there is no directory at the path.
        MarkerInvalid: a file with a marker's name is not one of Tidegate's, or it lists files of
            CSV or JSON without their columns.
        MarkerMissing: there are data files, but not one marker (Transient).
        CommittedFileMissing: a marker lists a file that does not exist.
        ColumnTypesDiffer: two files have types of one column that no type holds both of.

    Examples:
        >>> read_committed(published).count_rows()
        2
        >>> sorted(read_committed(published).to_table(columns=["dt", "id"]).to_pylist(), key=str)
        [{'dt': '2026-02-01', 'id': 1}, {'dt': '2026-02-01', 'id': 2}]
    """
    root = Path(path).absolute()
    if not root.is_dir():
        found = "a file" if root.exists() else "nothing"
        raise PublishedTableMissing(root=str(root), found=found)
    markers, schemas = _opened(root, marker)
    keys = dict.fromkeys(key for found in markers for key in _keys(found, root))
    stored = unified(schemas.items() if schemas else _told_without_files(markers))
    schema = pa.schema(
        [*stored, *(pa.field(key, pa.string()) for key in keys if key not in stored.names)]
    )
    format_ = _file_format(_forms(markers), stored)
    if format_ is None:
        return ds.dataset(_table(markers, schemas, schema))
    fragments = [
        format_.make_fragment(path, _FILES, partition_expression=_values(found, schemas[path]))
        for found in markers
        for path in found.files
        if not _is_without_text(path, found)
    ]
    return ds.FileSystemDataset(fragments, schema, format_, _FILES)


def _opened(
    root: Path, marker: str | None
) -> tuple[tuple[StandingMarker, ...], dict[str, pa.Schema]]:
    """Return the markers, and the schemas of the files that they list.

    A commit may remove a file between the two; its new marker then lists other files.
    """
    markers = _markers(root, marker)
    while True:
        try:
            return markers, _schemas([(path, found) for found in markers for path in found.files])
        except CommittedFileMissing:
            before, markers = markers, _markers(root, marker)
            if markers == before:
                raise


def _markers(root: Path, marker: str | None) -> tuple[StandingMarker, ...]:
    names = LocalStorage().list_files(str(root))
    markers = find_markers(root, names, marker)
    if not markers and (data := [name for name in names if not is_hidden(name)]):
        raise MarkerMissing(root=str(root), file=data[0])
    for found in markers:
        _check_told(found)
    return markers


def _check_told(found: StandingMarker) -> None:
    """Check that a marker tells the columns of files that do not tell them themselves."""
    if found.told is not None and found.told.get("columns"):
        return
    # Of a partition without files, there is nothing to be read.
    if not all(form_of_name(path).kind.has_columns for path in found.files):
        problem = "one that tells no columns of its files, which are CSV or JSON"
        raise MarkerInvalid(path=f"{found.folder}/{found.name}", found=problem)


def _schemas(files: Sequence[tuple[str, StandingMarker]]) -> dict[str, pa.Schema]:
    """Read the schemas of files in parallel, because most of the time is waiting."""
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda file: _schema(*file), files)
        return dict(zip((path for path, _ in files), read, strict=True))


def _schema(path: str, found: StandingMarker) -> pa.Schema:
    try:
        with _part(path, found) as file:
            return file.schema
    except FileNotFoundError as missing:
        raise CommittedFileMissing(path=path) from missing


def _told_without_files(markers: Sequence[StandingMarker]) -> list[tuple[str, pa.Schema]]:
    """Return the columns of a table that has no file; the markers of Parquet tell none."""
    return [(found.folder, told(found.told)[1]) for found in markers if found.told is not None]


def _is_without_text(path: str, found: StandingMarker) -> bool:
    """Return whether a file of text has no rows, and perhaps no byte, which Arrow refuses."""
    if found.told is None or Path(path).stat().st_size > _LARGEST_WITHOUT_ROWS:
        return False
    with _part(path, found) as file:
        return file.rows == 0


def _part(path: str, found: StandingMarker) -> PartRows:
    """Open a file with what its marker tells of it."""
    if found.told is None:
        return open_part(path, form_of_name(path))
    return open_part(path, *told(found.told))


def _forms(markers: Sequence[StandingMarker]) -> list[PartFormat]:
    """Return how the files of a table are written; as Parquet if there are none."""
    found = {
        form_of_name(path) if marker.told is None else told(marker.told)[0].of_file(path): None
        for marker in markers
        for path in marker.files
    }
    return [*found] or [PARQUET]


def _file_format(forms: Sequence[PartFormat], columns: pa.Schema) -> ds.FileFormat | None:
    """Return how Arrow's datasets read files of all these forms; None if they cannot."""
    formats = [part_kind(form.name).dataset_format(form, columns) for form in forms]
    # Forms differ in compression at most, which Arrow takes from each file's name.
    return formats[0] if all(found is not None for found in formats) else None


def _table(
    markers: Sequence[StandingMarker], schemas: Mapping[str, pa.Schema], schema: pa.Schema
) -> pa.Table:
    """Read all rows of a table whose format Arrow's datasets do not know."""
    tables = [schema.empty_table()]
    for found in markers:
        for path in found.files:
            own = schemas[path]
            with _part(path, found) as file:
                read = pa.Table.from_batches(file.batches(own.names), file.schema)
            columns = [
                read.column(field.name)
                if field.name in own.names
                else pa.repeat(pa.scalar(found.partition.get(field.name), field.type), len(read))
                for field in schema
            ]
            tables.append(pa.table(columns, names=schema.names).cast(schema))
    return pa.concat_tables(tables)


def _keys(found: StandingMarker, root: Path) -> Iterator[str]:
    """Return the partition keys in the order of the path; a marker's JSON has them sorted."""
    for component in Path(found.folder).relative_to(root).parts:
        yield unescape(component.partition("=")[0])


def _values(found: StandingMarker, stored: pa.Schema) -> Any:
    """Return the partition values of a file's rows, except for columns of the file itself."""
    known = ds.scalar(value=True)
    for key, text in found.partition.items():
        if key not in stored.names:
            known &= ds.field(key).is_null() if text is None else ds.field(key) == text
    return known
