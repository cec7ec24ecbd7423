"""Stage a source twice, copying what may be copied and reading everything, and compare."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow

from golden_iceberg import bag
from iceberg_writer import DATA, PATH_ID, POS_ID, POSITIONS, Entry
from small_iceberg import SmallIceberg
from small_lake import merged
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage, EventTimes
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from small_iceberg import Row
    from tidegate.model.message import PartFile
    from tidegate.pipeline import Pipeline

_NUMBERS = itertools.count()
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True)
class CountingStorage(LocalStorage):
    """A storage that remembers which files were copied."""

    copied: list[str] = field(default_factory=list, compare=False)

    def copy_new(self, source: str, target: str) -> None:
        """Copy and remember."""
        super().copy_new(source, target)
        self.copied.append(source)


@dataclass(frozen=True)
class Meanwhile(CountingStorage):
    """A storage that copies while something else happens."""

    happens: Callable[[], Any] = field(default=lambda: None, compare=False)
    behind: Callable[[str], None] = field(default=lambda _: None, compare=False)
    """Called with the path of the copy."""

    def copy_new(self, source: str, target: str) -> None:
        """Copy between both."""
        self.happens()
        super().copy_new(source, target)
        self.behind(target)


@dataclass(frozen=True)
class Staged:
    """What the tasks of one plan left."""

    rows: Mapping[str, Counter[str]]
    """Partition → its rows, each written out."""
    quarantined: Counter[str]
    said: Mapping[str, tuple[int, EventTimes]]
    """Partition → its rows and their bounds, as the messages say."""
    read: tuple[int, int, EventTimes]
    """Rows read, rows kept, bounds of all, as the messages say."""
    judged: tuple[Mapping[str, int], frozenset[Any]]
    """Hits of the row rules, and what is held."""
    schemas: Mapping[str, frozenset[str]]
    """Partition → the columns of its files, without what is held how in memory."""


@dataclass
class Twice:
    """A place where the same source is staged in both ways."""

    root: Path
    keys: dict[str, Any]
    """The pipeline file, without name and target path."""
    ledger: str
    """Shared by many, because to make one takes longer than to stage a file."""

    def both(self, **keys: Any) -> tuple[Staged, Staged, list[str]]:
        """Stage both ways.

        Returns:
            What copying left, what reading left, and the files that were copied.
        """
        storage = CountingStorage()
        copying = self.staged(storage, **keys)
        reading = self.staged(None, **merged(keys, {"target": {"copy_whole_files": "never"}}))
        return copying, reading, storage.copied

    def copied(self, **keys: Any) -> list[str]:
        """Stage both ways, compare, and give the files that were copied."""
        copying, reading, copied = self.both(**keys)
        assert copying == reading
        return copied

    def staged(self, storage: LocalStorage | None, /, **keys: Any) -> Staged:
        """Stage one window."""
        pipeline = self.pipeline(storage, **keys)
        planned = pipeline.plan(Run("run", "cli"), NOW)
        with LocalExecutor(2) as executor:
            for window in planned:
                pipeline.stage(window, executor)
        uris = [window.uri for window in planned]
        return _of([pair for uri in uris for pair in messages(pipeline, uri)])

    def pipeline(self, storage: LocalStorage | None = None, /, **keys: Any) -> Pipeline:
        """Open a pipeline of its own name."""
        name = f"copy-{next(_NUMBERS)}"
        whole = merged(
            merged(self.keys, keys), {"name": name, "target": {"path": f"{self.root}/{name}"}}
        )
        file = self.root / f"{name}.yaml"
        file.write_text(json.dumps(whole))
        return open_pipeline(file, ledger=self.ledger, storage=storage)


def messages(pipeline: Pipeline, uri: str) -> Iterable[tuple[str, CommitMessage]]:
    """Read the messages of a plan, with its place."""
    for split in read_splits(pipeline.storage, uri):
        for sub_split in split.sub_splits:
            path = layout.message_file(uri, sub_split.id)
            yield uri, CommitMessage.from_text(pipeline.storage.read_bytes(path))


def _of(found: Iterable[tuple[str, CommitMessage]]) -> Staged:
    rows: dict[str, Counter[str]] = {}
    schemas: dict[str, frozenset[str]] = {}
    said: dict[str, tuple[int, EventTimes]] = {}
    aside: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    held: set[Any] = set()
    read, kept, times = 0, 0, EventTimes()
    for uri, message in found:
        staged = message.staged
        read, kept = read + staged.rows_read, kept + staged.rows_kept
        times = times.merged(staged.event_times)
        hits.update(staged.rule_hits)
        held.update(item.partition for item in staged.held)
        for part in staged.parts:
            table, path = _rows_of(uri, part), part.partition.path
            rows.setdefault(path, Counter()).update(bag(table))
            shown = frozenset(str(each).replace("large_", "") for each in table.schema)
            schemas[path] = schemas.get(path, frozenset()) | shown
            count, bounds = said.get(path, (0, EventTimes()))
            said[path] = count + part.rows, bounds.merged(part.event_times)
        for part in staged.quarantined:
            aside.update(bag(_rows_of(uri, part)))
    return Staged(rows, aside, said, (read, kept, times), (dict(hits), frozenset(held)), schemas)


def _rows_of(uri: str, part: PartFile) -> pa.Table:
    """Read a part file, which has to be as its message says."""
    path = f"{uri}/{part.staged}"
    storage = LocalStorage()
    assert (storage.length(path), storage.sha256(path)) == (part.length, part.sha256)
    table = pq.read_table(path, partitioning=None)
    assert table.num_rows == part.rows
    return table


@dataclass
class WholeIceberg(SmallIceberg):
    """A small table whose Parquet files are written as this project writes them."""

    options: dict[str, Any] = field(default_factory=dict)
    """Of the writer, in place of the usual ones."""

    def write(self, rows: Sequence[Row], file_format: str) -> tuple[str, int]:
        """Write rows to a new file; its path and length."""
        if file_format != "parquet":
            return super().write(rows, file_format)
        schema = schema_to_pyarrow(self.schema, include_field_ids=True)
        return self.put(pa.Table.from_pylist(list(rows), schema))

    def put(self, table: pa.Table) -> tuple[str, int]:
        """Write a table to a new file as it is; its path and length."""
        name = self.files.name("data", "parquet")
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place, **{"compression": "zstd", **self.options})
        return self.files.path(name), place.stat().st_size

    def append_table(self, table: pa.Table, partition: tuple[Any, ...] = ()) -> str:
        """Add a data file that is not as the schema says; gives its path."""
        path, size = self.put(table)
        rows, spec = table.num_rows, self.spec.id
        return self.add("append", Entry(path, DATA, "parquet", rows, size, spec, partition), {})

    def delete_positions(self, path: str, *positions: int) -> str:
        """Delete rows of a file; gives the path of the delete file."""
        fields = [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH_ID)}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(POS_ID)}),
        ]
        columns = [[path] * len(positions), sorted(positions)]
        deletes, size = self.put(pa.table(columns, pa.schema(fields)))
        entry = Entry(deletes, POSITIONS, "parquet", len(positions), size)
        return self.add("delete", entry, {})
