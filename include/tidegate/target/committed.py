"""Open a published table as its markers list it, without pending or half-moved files."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from tidegate.config import OWNER_FILE, read_store, store_path, tables_around
from tidegate.errors import (
    CommittedFileMissing,
    MarkerInvalid,
    MarkerMissing,
    PartitionNotThere,
    PublishedInCatalog,
    PublishedTableMissing,
    tables_below,
)
from tidegate.model.part_format import PARQUET, form_of_name
from tidegate.model.partition import unescape
from tidegate.physical.parts import open_part, part_kind
from tidegate.storage import Stores, above, arrow_files, below
from tidegate.target.marker import StandingMarker, find_markers, is_seen_as_data
from tidegate.target.schema import unified
from tidegate.target.standing import check_keys, read_partition_path
from tidegate.target.told_columns import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts import PartRows
    from tidegate.storage import Storage

_THREADS = 8
_LARGEST_WITHOUT_ROWS = 1 << 12
"""Bytes; a header may be among them."""


def read_committed(
    path: str | Path,
    *,
    marker: str | None = None,
    partitions: str | Sequence[str] | None = None,
    at_revision: int | Mapping[str, int] | None = None,
    s3: Mapping[str, str] | None = None,
) -> ds.Dataset:
    """Open a published table as its markers list it, without pending or half-moved files.

    A marker is recognised by its content, whatever `commit.marker.name` is: it is a hidden file in
    the directory of its partition. A partition without a marker has no rows here. If the schemas of
    the files differ, because columns were added, dropped or widened, each column is read as the
    type that holds all of its types, with NULLs for files that lack it.

    Args:
        path: the table root: a directory, or the address of objects (`s3://bucket/prefix`).
        marker: the only name that a marker may have, for a table that has others beside it; by
            default any name.
        partitions: path of the partition to be read, such as `dt=2026-02-01`, or the beginning of
            several, or a list of such; the others are not even listed. By default all.
        at_revision: the revision to be read of every partition, or of those that are named by their
            paths, instead of the newest. Former ones stand only with `target.layout: revisions`,
            until `tidegate gc` removes them.
        s3: how a store is reached, with the keys that the section of a pipeline file has, as far as
            AWS's own variables and files do not say it. The dataset keeps the credentials of now.

    Returns:
        A dataset of exactly the files that the markers list; partition keys are text columns. Of
        JSON lines and Avro, which Arrow's datasets do not read, the rows are in memory.

    Raises:
        PublishedTableMissing: there is no directory at the path.
        PublishedTablesBelow: there are tables below it.
        PublishedInCatalog: it is the folder of an Iceberg table, or in one, and has no markers.
        MarkerInvalid: a file with a marker's name is not one of Tidegate's, or it lists files of
            CSV or JSON without their columns.
        MarkerMissing: there are data files, but not one marker (Transient).
        PartitionNotThere: one that is asked for has no marker, or no directory (Transient).
        PartitionPathInvalid: the table cannot have one that is asked for: it has other keys, or all
            of its times are spelled otherwise.
        ConfigInvalid: `s3` has a key or value that the section does not have.
        RevisionNotThere: one that is asked for does not stand; the error names those that do.
        PathEscapes: the path of a partition leads out of the table.
        CommittedFileMissing: a marker lists a file that does not exist.
        ColumnTypesDiffer: two files have types of one column that no type holds both of.

    Examples:
        >>> read_committed(published).count_rows()
        2
        >>> sorted(read_committed(published).to_table(columns=["dt", "id"]).to_pylist(), key=str)
        [{'dt': '2026-02-01', 'id': 1}, {'dt': '2026-02-01', 'id': 2}]
    """
    root = store_path(str(path))
    storage = Stores.of(read_store(s3))
    named_ones = (partitions,) if isinstance(partitions, str) else partitions
    wanted = _Wanted(storage, root, marker, named_ones, at_revision)
    wanted.check_is_table()
    markers, schemas = _opened(wanted)
    keys = dict.fromkeys(key for found in markers for key in _keys(found, root))
    stored = unified(schemas.items() if schemas else _told_without_files(markers))
    schema = pa.schema(
        [*stored, *(pa.field(key, pa.string()) for key in keys if key not in stored.names)]
    )
    format_ = _file_format(_forms(markers), stored)
    if format_ is None:
        return ds.dataset(_table(storage, markers, schemas, schema))
    files, named = arrow_files(storage, root)
    fragments = [
        format_.make_fragment(
            named(path), files, partition_expression=_values(found, schemas[path])
        )
        for found in markers
        for path in found.files
        if not _is_without_text(storage, path, found)
    ]
    return ds.FileSystemDataset(fragments, schema, format_, files)


@dataclass(frozen=True)
class _Wanted:
    """What is to be read of a table."""

    storage: Stores
    root: str
    marker: str | None
    partitions: Sequence[str] | None
    at_revision: int | Mapping[str, int] | None

    def check_is_table(self) -> None:
        """Check that there is a directory.

        Raises:
            PublishedTableMissing: there is none.
        """
        if self.storage.is_directory(self.root):
            return
        found = "a file" if self.storage.exists(self.root) else "nothing"
        raise PublishedTableMissing(root=self.root, found=found)

    def check_is_marked(self) -> None:
        """Check that a folder without markers is not that of a table in a catalog.

        Raises:
            PublishedInCatalog: it is.
        """
        for kind, table in tables_around((self.root, *above(self.root)), self.storage):
            raise PublishedInCatalog(root=self.root, table=table, kind=kind)

    def check_is_one(self, names: Sequence[str]) -> None:
        """Check that no file belongs to a table below.

        Raises:
            PublishedTablesBelow: there are tables below, whose rows are not those of one.
            PublishedInCatalog: the one below is that of a table of a catalog here.
        """
        below_ = sorted(name.removesuffix(f"/{OWNER_FILE}") for name in names if _is_owner(name))
        if below_:
            self.check_is_marked()
            raise tables_below(self.root, [f"{self.root}/{folder}" for folder in below_])

    def listed(self) -> list[str]:
        """List the files of the table, relative to it, as far as they are wanted."""
        if self.partitions is None:
            return self.storage.list_files(self.root)
        found: dict[str, None] = {}
        for path in self.partitions:
            names = self.storage.list_files(below(self.root, path.strip("/")))
            found |= dict.fromkeys(f"{path.strip('/')}/{name}" for name in names)
        return [*found]

    def revision(self, place: str) -> int | None:
        """Return the revision of a partition that is wanted; None: the newest."""
        if isinstance(self.at_revision, Mapping):
            return self.at_revision.get(place)
        return self.at_revision

    def check_there(self, markers: Sequence[StandingMarker]) -> None:
        """Check that everything that was named has a marker.

        Raises:
            PartitionNotThere: something has none (Transient).
            PartitionPathInvalid: the table cannot have it.
        """
        there = [found.folder.removeprefix(self.root).strip("/") for found in markers]
        at = self.at_revision if isinstance(self.at_revision, Mapping) else {}
        for path in (*(self.partitions or ()), *at):
            named = path.strip("/")
            if not any(f"{place}/".startswith(f"{named}/") for place in there):
                check_keys(self.storage, self.root, read_partition_path(named), is_beginning=True)
                raise PartitionNotThere(root=self.root, partition=named)


def _is_owner(name: str) -> bool:
    return name.endswith(f"/{OWNER_FILE}")


def _opened(
    wanted: _Wanted,
) -> tuple[tuple[StandingMarker, ...], dict[str, pa.Schema]]:
    """Return the markers, and the schemas of the files that they list.

    A commit may remove a file between the two; its new marker then lists other files.
    """
    markers = _markers(wanted)
    while True:
        try:
            files = [(path, found) for found in markers for path in found.files]
            return markers, _schemas(wanted.storage, files)
        except CommittedFileMissing:
            before, markers = markers, _markers(wanted)
            if markers == before:
                raise


def _markers(wanted: _Wanted) -> tuple[StandingMarker, ...]:
    before: list[str] = []
    while True:
        names = wanted.listed()
        wanted.check_is_one(names)
        try:
            markers = find_markers(
                wanted.storage, wanted.root, names, wanted.marker, wanted.revision
            )
            break
        except FileNotFoundError:
            # A directory that a later revision replaced was removed meanwhile.
            if names == before:
                raise
            before = names
    if not markers and (data := [name for name in names if is_seen_as_data(name)]):
        wanted.check_is_marked()
        raise MarkerMissing(root=wanted.root, file=data[0])
    wanted.check_there(markers)
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


def _schemas(storage: Storage, files: Sequence[tuple[str, StandingMarker]]) -> dict[str, pa.Schema]:
    """Read the schemas of files in parallel, because most of the time is waiting."""
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda file: _schema(storage, *file), files)
        return dict(zip((path for path, _ in files), read, strict=True))


def _schema(storage: Storage, path: str, found: StandingMarker) -> pa.Schema:
    try:
        with _part(storage, path, found) as file:
            return file.schema
    except FileNotFoundError as missing:
        raise CommittedFileMissing(path=path) from missing


def _told_without_files(markers: Sequence[StandingMarker]) -> list[tuple[str, pa.Schema]]:
    """Return the columns of a table that has no file; the markers of Parquet tell none."""
    return [(found.folder, told(found.told)[1]) for found in markers if found.told is not None]


def _is_without_text(storage: Storage, path: str, found: StandingMarker) -> bool:
    """Return whether a file of text has no rows, and perhaps no byte, which Arrow refuses."""
    if found.told is None or (storage.length(path) or 0) > _LARGEST_WITHOUT_ROWS:
        return False
    with _part(storage, path, found) as file:
        return file.rows == 0


def _part(storage: Storage, path: str, found: StandingMarker) -> PartRows:
    """Open a file with what its marker tells of it."""
    if found.told is None:
        return open_part(path, form_of_name(path), storage=storage)
    return open_part(path, *told(found.told), storage)


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
    storage: Storage,
    markers: Sequence[StandingMarker],
    schemas: Mapping[str, pa.Schema],
    schema: pa.Schema,
) -> pa.Table:
    """Read all rows of a table whose format Arrow's datasets do not know."""
    tables = [schema.empty_table()]
    for found in markers:
        for path in found.files:
            own = schemas[path]
            with _part(storage, path, found) as file:
                read = pa.Table.from_batches(file.batches(own.names), file.schema)
            columns = [
                read.column(field.name)
                if field.name in own.names
                else pa.repeat(pa.scalar(found.partition.get(field.name), field.type), len(read))
                for field in schema
            ]
            tables.append(pa.table(columns, names=schema.names).cast(schema))
    return pa.concat_tables(tables)


def _keys(found: StandingMarker, root: str) -> Iterator[str]:
    """Return the partition keys in the order of the path; a marker's JSON has them sorted."""
    place = found.folder.removeprefix(root).strip("/")
    for component in place.split("/") if place else ():
        yield unescape(component.partition("=")[0])


def _values(found: StandingMarker, stored: pa.Schema) -> Any:
    """Return the partition values of a file's rows, except for columns of the file itself."""
    known = ds.scalar(value=True)
    for key, text in found.partition.items():
        if key not in stored.names:
            known &= ds.field(key).is_null() if text is None else ds.field(key) == text
    return known
