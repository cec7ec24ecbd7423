"""Random Iceberg tables with every kind of delete, and the obvious answer to what is in them.

The answer asks of each row of each file whether one of the deletes takes it away, one by one; it
shares no code with the product.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceberg_writer import (
    ADDED,
    ARROW,
    DATA,
    DELETED,
    EXISTING,
    KEYS,
    PATH_ID,
    POS_ID,
    POSITIONS,
    ROW_ID,
    UPDATED_ID,
    Column,
    Entry,
    Files,
    Manifest,
    Spec,
    bound,
    new_uuid,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

Row = dict[int, Any]
LOCATION = "/random/table"
KEY_TYPES = {"int", "long", "string", "date", "boolean"}
NAMES = ("k", "c d", "ü", "Select", "a.b", "x", "y", "z")


@dataclass(frozen=True)
class DataFile:
    """A data file with its rows by field id; partition values count as columns."""

    entry: Entry
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Delete:
    """A delete file with what it says."""

    entry: Entry
    positions: frozenset[tuple[str, int]] = frozenset()
    keys: frozenset[tuple[Any, ...]] = frozenset()

    @property
    def is_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return self.entry.offset is not None


@dataclass(frozen=True)
class State:
    """A snapshot: what is live in it."""

    id: int
    parent: int | None
    sequence: int
    schema: int
    operation: str
    files: Mapping[str, DataFile]
    deletes: Mapping[tuple[str, int | None], Delete]
    manifests: tuple[Manifest, ...]
    added: tuple[DataFile, ...]
    json: Mapping[str, Any]


@dataclass
class Commit:
    """What one commit changes."""

    operation: str
    add: list[DataFile] = field(default_factory=list)
    remove: list[DataFile] = field(default_factory=list)
    add_deletes: list[Delete] = field(default_factory=list)
    remove_deletes: list[Delete] = field(default_factory=list)


class RandomTable:
    """One table that grows by random commits; the same for the same seed."""

    def __init__(self, root: Path, seed: int, version: int | None = None) -> None:
        """Make an empty table, of a random format version unless one is said."""
        self.draw = random.Random(seed)
        self.version = version or self.draw.choice([2, 2, 3])
        self.files = Files(root, LOCATION, self.version)
        self._uuid = new_uuid(seed)
        self.schemas = [self._first_schema()]
        self.specs = [Spec(0)]
        self._last_column = max(column.id for column in self.schemas[0])
        self.states: dict[int, State] = {}
        self.head: State | None = None
        self._sequence = 0
        self._next_row_id = 0
        if self.draw.random() < 0.6:
            self._evolve_spec()

    # What a reader is asked

    def config(self) -> dict[str, Any]:
        """Write the metadata and give a pipeline's `source`."""
        metadata = self.files.write_metadata(self._metadata())
        return {
            "kind": "iceberg",
            "metadata": str(metadata),
            "location_rewrite": {LOCATION: str(self.files.root)},
        }

    def rows(self, state: State, schema: int | None = None, *, lineage: bool = False) -> pa.Table:
        """The live rows of a snapshot in a schema, the current one by default."""
        columns = self.schemas[-1 if schema is None else schema]
        live = [
            (row, file, position)
            for file in state.files.values()
            for position, row in enumerate(file.rows)
            if not self._is_gone(state, file, position)
        ]
        return self._table(columns, live, lineage=lineage)

    def appended(self, states: Iterable[State]) -> pa.Table:
        """The rows of the commits among some that only append (ICE-3.7, 3.8)."""
        rows = [
            (row, file, position)
            for state in states
            if state.operation == "append"
            for file in state.added
            for position, row in enumerate(file.rows)
        ]
        return self._table(self.schemas[-1], rows)

    def lineage(self) -> list[State]:
        """The ancestors of the head, oldest first."""
        chain, state = [], self.head
        while state is not None:
            chain.append(state)
            state = self.states[state.parent] if state.parent is not None else None
        return chain[::-1]

    def _table(
        self,
        columns: Sequence[Column],
        live: Sequence[tuple[Row, DataFile, int]],
        *,
        lineage: bool = False,
    ) -> pa.Table:
        made = {
            column.name: pa.array(
                [row.get(column.id, column.default) for row, _, _ in live], ARROW[column.type]
            )
            for column in columns
        }
        if lineage:
            ids, updated = [], []
            for row, file, position in live:
                ids.append(self._row_id(row, file, position))
                updated.append(row.get(UPDATED_ID) or file.entry.sequence)
            made |= {"_row_id": pa.array(ids, pa.int64())}
            made |= {"_last_updated_sequence_number": pa.array(updated, pa.int64())}
        return pa.table(made)

    @staticmethod
    def _row_id(row: Row, file: DataFile, position: int) -> int:
        stored = row.get(ROW_ID)
        first = file.entry.first_row_id
        assert stored is not None or first is not None
        return stored if stored is not None else (first or 0) + position

    def _is_gone(self, state: State, file: DataFile, position: int) -> bool:
        place = (file.entry.path, position)
        vectors = [
            delete
            for delete in state.deletes.values()
            if delete.is_vector and delete.entry.referenced == file.entry.path
        ]
        for delete in vectors or state.deletes.values():
            if delete.entry.content != POSITIONS or place not in delete.positions:
                continue
            if delete.is_vector or self._reaches(delete.entry, file.entry, later=0):
                return True
        return any(
            self._key(file.rows[position], delete.entry.equality_ids) in delete.keys
            for delete in state.deletes.values()
            if delete.entry.content == KEYS
            and self._reaches(delete.entry, file.entry, later=1, everywhere=True)
        )

    def _reaches(self, delete: Entry, file: Entry, later: int, *, everywhere: bool = False) -> bool:
        if file.sequence + later > delete.sequence:
            return False
        if everywhere and not self.specs[delete.spec].fields:
            return True
        return (delete.spec, delete.partition) == (file.spec, file.partition)

    def _key(self, row: Row, ids: Sequence[int]) -> tuple[Any, ...]:
        defaults = {column.id: column.default for schema in self.schemas for column in schema}
        return tuple(row.get(number, defaults[number]) for number in ids)

    # How it grows

    def grow(self, commits: int) -> None:
        """Do random things until so many commits are made."""
        target = len(self.states) + commits
        while len(self.states) < target:
            if self.head is None or not self.head.files:
                self._append()
                continue
            chosen = self.draw.choices([step for step, _ in self._steps], self._weights)[0]
            chosen()

    @property
    def _steps(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._append, 6),
            (self._delete_positions, 6),
            (self._delete_keys, 6),
            (self._upsert, 4),
            (self._rewrite_rows, 3),
            (self._drop_files, 2),
            (self._compact, 3),
            (self._undelete, 1),
            (self._evolve_schema, 3),
            (self._evolve_spec, 1),
            (self._roll_back, 1),
            (self._rewrite_manifests, 1),
        ]

    @property
    def _weights(self) -> list[int]:
        return [weight for _, weight in self._steps]

    def _append(self) -> None:
        self._commit(Commit("append", add=self._new_files()))

    def _delete_positions(self) -> None:
        self._commit(self._with_positions(Commit("delete"), self._some_files(3)))

    def _delete_keys(self) -> None:
        self._commit(Commit("delete", add_deletes=[self._new_key_delete()]))

    def _upsert(self) -> None:
        """Delete keys, add rows, and delete some of the added rows again, as Flink does."""
        commit = Commit("overwrite", add=self._new_files())
        commit.add_deletes.append(self._new_key_delete())
        if self.version == 2 and self.draw.random() < 0.5:
            self._with_positions(commit, commit.add[:1])
        self._commit(commit)

    def _rewrite_rows(self) -> None:
        """Copy on write: a file again, some of its rows changed, the row ids kept."""
        file = self._some_files(1)[0]
        kept = self._live_rows(file)
        for row in kept:
            if self.draw.random() < 0.3:
                row.pop(UPDATED_ID, None)
                self._change(row, file)
        added = [self._write_file(kept, file.entry.spec, keep_lineage=True)] if kept else []
        self._commit(self._without_files(Commit("overwrite", add=added), [file]))

    def _drop_files(self) -> None:
        self._commit(self._without_files(Commit("delete"), self._some_files(2)))

    def _compact(self) -> None:
        assert self.head
        groups = defaultdict(list)
        for file in self.head.files.values():
            groups[file.entry.spec, file.entry.partition].append(file)
        (spec, _), files = self.draw.choice(sorted(groups.items(), key=str))
        rows = [row for file in files for row in self._live_rows(file)]
        added = [self._write_file(rows, spec, keep_lineage=True)] if rows else []
        if added and self.draw.random() < 0.5:
            # The rows are as old as the state they were read from (`use-starting-sequence-number`).
            old = replace(added[0].entry, sequence=self.head.sequence)
            added = [replace(added[0], entry=old)]
        self._commit(self._without_files(Commit("replace", add=added), files))

    def _undelete(self) -> None:
        assert self.head
        deletes = sorted(self.head.deletes.values(), key=str)
        if deletes:
            gone = [self.draw.choice(deletes)]
            self._commit(Commit("overwrite", remove_deletes=gone))

    def _rewrite_manifests(self) -> None:
        self._commit(Commit("replace"), merge=True)

    def _roll_back(self) -> None:
        self.head = self.draw.choice(self.lineage())

    def _evolve_schema(self) -> None:
        columns = list(self.schemas[-1])
        steps = [self._add_column, self._rename_column, self._drop_column, self._promote_column]
        self.draw.choice(steps)(columns)
        if self.draw.random() < 0.3:
            self.draw.shuffle(columns)
        self.schemas.append(tuple(columns))

    def _add_column(self, columns: list[Column]) -> None:
        free = [name for name in NAMES if name not in {column.name for column in columns}]
        if not free:
            return
        self._last_column += 1
        kind = self.draw.choice(sorted(ARROW))
        default = self._value(kind) if self.version >= 3 and self.draw.random() < 0.5 else None
        columns.append(Column(self._last_column, self.draw.choice(free), kind, default))

    def _rename_column(self, columns: list[Column]) -> None:
        free = [name for name in NAMES if name not in {column.name for column in columns}]
        if free:
            at = self.draw.randrange(len(columns))
            columns[at] = replace(columns[at], name=self.draw.choice(free))

    def _drop_column(self, columns: list[Column]) -> None:
        sources = {int(source) for spec in self.specs for _, source, _, _ in spec.fields}
        droppable = [column for column in columns if column.id not in sources | {1}]
        if droppable:
            columns.remove(self.draw.choice(droppable))

    def _promote_column(self, columns: list[Column]) -> None:
        for at, column in enumerate(columns):
            if column.type == "int":
                columns[at] = replace(column, type="long")
                return

    def _evolve_spec(self) -> None:
        """Partition by another column, by none, or by a void field."""
        allowed = [
            column for column in self.schemas[-1] if column.type in {"int", "string", "date"}
        ]
        number = 1000 + sum(len(spec.fields) for spec in self.specs)
        chosen: tuple[tuple[int, str, str, str], ...] = ()
        if allowed and self.draw.random() < 0.8:
            column = self.draw.choice(allowed)
            chosen = ((number, str(column.id), "identity", column.type),)
        self.specs.append(Spec(len(self.specs), chosen))

    # Parts of commits

    def _some_files(self, most: int) -> list[DataFile]:
        assert self.head
        files = sorted(self.head.files.values(), key=lambda file: file.entry.path)
        return self.draw.sample(files, min(len(files), self.draw.randint(1, most)))

    def _live_rows(self, file: DataFile) -> list[Row]:
        """Copies of the rows of a file that are live at the head, with their lineage."""
        assert self.head
        live = []
        for position, row in enumerate(file.rows):
            if self._is_gone(self.head, file, position):
                continue
            copy = dict(row)
            if self.version >= 3:
                copy[ROW_ID] = self._row_id(row, file, position)
                copy[UPDATED_ID] = row.get(UPDATED_ID) or file.entry.sequence
            live.append(copy)
        return live

    def _change(self, row: Row, file: DataFile) -> None:
        sources = {int(source) for _, source, _, _ in self.specs[file.entry.spec].fields}
        column = self.draw.choice(self.schemas[-1])
        if column.id not in sources:
            row[column.id] = self._value(column.type)

    def _without_files(self, commit: Commit, files: Sequence[DataFile]) -> Commit:
        """Remove data files, and their vectors with them."""
        assert self.head
        paths = {file.entry.path for file in files}
        commit.remove += files
        commit.remove_deletes += [
            delete
            for delete in self.head.deletes.values()
            if delete.is_vector and delete.entry.referenced in paths
        ]
        return commit

    def _with_positions(self, commit: Commit, files: Sequence[DataFile]) -> Commit:
        chosen = {
            file.entry.path: set(
                self.draw.sample(range(len(file.rows)), self.draw.randint(1, len(file.rows)))
            )
            for file in files
        }
        if self.version >= 3:
            return self._with_vectors(commit, files, chosen)
        groups = defaultdict(list)
        for file in files:
            groups[file.entry.spec, file.entry.partition].append(file)
        for (spec, partition), members in groups.items():
            places = [
                (file.entry.path, position)
                for file in members
                for position in chosen[file.entry.path]
            ]
            commit.add_deletes.append(self._write_positions(places, spec, partition))
        return commit

    def _write_positions(
        self, places: list[tuple[str, int]], spec: int, partition: tuple[Any, ...]
    ) -> Delete:
        said = list(places)
        if self.draw.random() < 0.4:  # places that no file has are ignored (ICE-4.10)
            said += [(places[0][0], 10_000), (f"{LOCATION}/data/nowhere.parquet", 0), said[0]]
        self.draw.shuffle(said)
        columns = [Column(PATH_ID, "file_path", "string"), Column(POS_ID, "pos", "long")]
        rows = [{PATH_ID: path, POS_ID: position} for path, position in said]
        kind = self._file_format()
        path, size = self.files.write_rows("data", kind, columns, rows)
        only = {path for path, _ in said}
        referenced = only.pop() if len(only) == 1 and self.draw.random() < 0.5 else None
        entry = Entry(
            path, POSITIONS, kind, len(said), size, spec, partition, referenced=referenced
        )
        return Delete(entry, frozenset(places))

    def _with_vectors(
        self, commit: Commit, files: Sequence[DataFile], chosen: Mapping[str, set[int]]
    ) -> Commit:
        assert self.head
        old = {
            delete.entry.referenced: delete
            for delete in self.head.deletes.values()
            if delete.is_vector
        }
        wanted = {}
        for file in files:
            before = old.get(file.entry.path)
            wanted[file.entry.path] = chosen[file.entry.path] | (
                {position for _, position in before.positions} if before else set()
            )
            commit.remove_deletes += [before] if before else []
        entries = {file.entry.path: file.entry for file in files}
        for path, puffin, offset, length in self.files.write_vectors(wanted):
            entry = Entry(
                puffin,
                POSITIONS,
                "puffin",
                len(wanted[path]),
                (self.files.root / puffin.removeprefix(f"{LOCATION}/")).stat().st_size,
                entries[path].spec,
                entries[path].partition,
                referenced=path,
                offset=offset,
                length=length,
            )
            places = frozenset((path, position) for position in wanted[path])
            commit.add_deletes.append(Delete(entry, places))
        return commit

    def _new_key_delete(self) -> Delete:
        """Delete by one or two columns: keys that exist, and some that do not."""
        assert self.head
        spec, partition = self._scope()
        allowed = [column for column in self.schemas[-1] if column.type in KEY_TYPES]
        columns = self.draw.sample(allowed, min(len(allowed), self.draw.randint(1, 2)))
        ids = tuple(column.id for column in columns)
        rows = [row for file in self.head.files.values() for row in file.rows]
        found = self.draw.sample(rows, min(len(rows), self.draw.randint(1, 3)))
        keys = [self._key(row, ids) for row in found]
        keys += [tuple(self._value(column.type) for column in columns)]
        written = [dict(zip(ids, key, strict=True)) for key in keys]
        others = [column for column in self.schemas[-1] if column not in columns]
        extra = self.draw.sample(others, min(len(others), 1)) if self.draw.random() < 0.3 else []
        kind = self._file_format()
        path, size = self.files.write_rows("data", kind, [*columns, *extra], written)
        entry = Entry(path, KEYS, kind, len(keys), size, spec, partition, equality_ids=ids)
        return Delete(self._measured(entry, columns, written), keys=frozenset(keys))

    def _scope(self) -> tuple[int, tuple[Any, ...]]:
        """The partition of a live file, or a spec without fields: everywhere."""
        free = [spec.id for spec in self.specs if not spec.fields]
        if free and self.draw.random() < 0.5:
            return self.draw.choice(free), ()
        entry = self._some_files(1)[0].entry
        return entry.spec, entry.partition

    def _new_files(self) -> list[DataFile]:
        spec = self.specs[-1]
        rows = [
            {column.id: self._value(column.type) for column in self.schemas[-1]}
            for _ in range(self.draw.randint(1, 12))
        ]
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in rows:
            groups[tuple(row[int(source)] for _, source, _, _ in spec.fields)].append(row)
        return [self._write_file(group, spec.id) for group in groups.values()]

    def _write_file(
        self, rows: Sequence[Row], spec: int, *, keep_lineage: bool = False
    ) -> DataFile:
        sources = {int(source) for _, source, _, _ in self.specs[spec].fields}
        columns = list(self.schemas[-1])
        known = {column.id for column in columns}
        rows = [
            {number: item for number, item in row.items() if number in known | {ROW_ID, UPDATED_ID}}
            for row in rows
        ]
        for row in rows:
            for column in columns:
                row.setdefault(column.id, column.default)
        written = columns
        if self.draw.random() < 0.2:  # identity columns may be absent from the file (ICE-6.13)
            written = [column for column in columns if column.id not in sources] or columns
        if keep_lineage and self.version >= 3:
            lineage = [Column(ROW_ID, "_row_id", "long")]
            lineage.append(Column(UPDATED_ID, "_last_updated_sequence_number", "long"))
            written = [*written, *lineage]
        kind = self._file_format()
        path, size = self.files.write_rows("data", kind, written, rows)
        partition = tuple(rows[0][int(source)] for _, source, _, _ in self.specs[spec].fields)
        entry = Entry(path, DATA, kind, len(rows), size, spec, partition)
        return DataFile(self._measured(entry, columns, rows), tuple(rows))

    def _measured(self, entry: Entry, columns: Sequence[Column], rows: Sequence[Row]) -> Entry:
        """Add metrics, or leave them out as some writers do."""
        if self.draw.random() < 0.3:
            return entry
        nulls, bounds = {}, {}
        for column in columns:
            values = [row[column.id] for row in rows if row[column.id] is not None]
            nulls[column.id] = len(rows) - len(values)
            if values and column.type not in {"double", "boolean"}:
                low, high = bound(column.type, min(values)), bound(column.type, max(values))
                assert low is not None
                assert high is not None
                bounds[column.id] = (low, high)
        return replace(entry, nulls=nulls, bounds=bounds)

    def _file_format(self) -> str:
        return self.draw.choice(["parquet", "parquet", "parquet", "avro"])

    def _value(self, kind: str) -> Any:
        if self.draw.random() < 0.15:
            return None
        return {
            "int": lambda: self.draw.randint(-3, 9),
            "long": lambda: self.draw.choice([self.draw.randint(-3, 9), 2**40]),
            "string": lambda: self.draw.choice(["", "a", "b", "ü", "a/b=c"]),
            "double": lambda: self.draw.choice([0.0, 1.5, -2.25]),
            "boolean": lambda: self.draw.random() < 0.5,
            "date": lambda: date(1970, 1, 1) + timedelta(days=self.draw.randint(-2, 3)),
        }[kind]()

    def _first_schema(self) -> tuple[Column, ...]:
        kinds = ["int", *self.draw.choices(sorted(ARROW), k=self.draw.randint(1, 3))]
        return tuple(Column(number + 1, NAMES[number], kind) for number, kind in enumerate(kinds))

    # How a commit stands in files

    def _commit(self, commit: Commit, *, merge: bool = False) -> None:
        self._sequence += 1
        snapshot = self.draw.getrandbits(62)
        first_row_id = self._next_row_id
        manifests = self._kept_manifests(commit, snapshot, merge=merge)
        added = self._added_manifests(commit, snapshot)
        rows = {file.entry.path: file.rows for file in commit.add}
        files = dict(self.head.files) if self.head else {}
        deletes = dict(self.head.deletes) if self.head else {}
        for file in commit.remove:
            del files[file.entry.path]
        for delete in commit.remove_deletes:
            del deletes[delete.entry.path, delete.entry.offset]
        said = {(item.entry.path, item.entry.offset): item for item in commit.add_deletes}
        made = []
        for entry in [entry for manifest in added for entry in manifest.live]:
            if entry.content == DATA:
                file = DataFile(entry, rows[entry.path])
                files[entry.path] = file
                made.append(file)
            else:
                place = (entry.path, entry.offset)
                deletes[place] = replace(said[place], entry=entry)
        self.head = State(
            snapshot,
            self.head.id if self.head else None,
            self._sequence,
            len(self.schemas) - 1,
            commit.operation,
            files,
            deletes,
            (*manifests, *added),
            tuple(made),
            self._snapshot_json(snapshot, commit.operation, (*manifests, *added), first_row_id),
        )
        self.states[snapshot] = self.head

    def _kept_manifests(self, commit: Commit, snapshot: int, *, merge: bool) -> list[Manifest]:
        gone = {(item.entry.path, item.entry.offset) for item in commit.remove}
        gone |= {(item.entry.path, item.entry.offset) for item in commit.remove_deletes}
        kept = []
        for manifest in self.head.manifests if self.head else ():
            live = manifest.live
            if not live:
                continue
            if not merge and not any((entry.path, entry.offset) in gone for entry in live):
                kept.append(manifest)
                continue
            entries = [
                (DELETED, replace(entry, snapshot=snapshot))
                if (entry.path, entry.offset) in gone
                else (EXISTING, entry)
                for entry in live
            ]
            kept.append(self._write_manifest(manifest.content, manifest.spec.id, entries, snapshot))
        return kept

    def _added_manifests(self, commit: Commit, snapshot: int) -> list[Manifest]:
        groups: dict[tuple[bool, int], list[tuple[int, Entry]]] = defaultdict(list)
        for item in [*commit.add, *commit.add_deletes]:
            numbered = replace(
                item.entry,
                sequence=item.entry.sequence or self._sequence,
                file_sequence=self._sequence,
                snapshot=snapshot,
            )
            groups[item.entry.content == DATA, item.entry.spec].append((ADDED, numbered))
        return [
            self._write_manifest(DATA if data else POSITIONS, spec, entries, snapshot)
            for (data, spec), entries in groups.items()
        ]

    def _write_manifest(
        self, content: int, spec: int, entries: list[tuple[int, Entry]], snapshot: int
    ) -> Manifest:
        manifest = Manifest(content, self._typed(spec), entries, snapshot, self._sequence)
        inherit = self.draw.random() < 0.8
        if content == DATA and self.version >= 3:
            # Ids are given out here; an added entry finds its own from the manifest's (ICE-8.1).
            manifest.first_row_id = running = self._next_row_id
            for at, (status, entry) in enumerate(entries):
                if status == ADDED:
                    entries[at] = (status, replace(entry, first_row_id=running))
                    running += entry.rows
            _, added = manifest.count(ADDED)
            _, existing = manifest.count(EXISTING)
            self._next_row_id += added + existing
            inherit = True
        self.files.write_manifest(manifest, self._schema_json(-1), inherit=inherit)
        return manifest

    def _typed(self, spec: int) -> Spec:
        """A spec whose values have the present types of their columns."""
        kinds = {column.id: column.type for schema in self.schemas for column in schema}
        fields = self.specs[spec].fields
        return Spec(
            spec,
            tuple(
                (number, source, transform, kinds[int(source)])
                for number, source, transform, _ in fields
            ),
        )

    def _snapshot_json(
        self, snapshot: int, operation: str, manifests: Sequence[Manifest], first_row_id: int
    ) -> dict[str, Any]:
        made = {
            "snapshot-id": snapshot,
            "sequence-number": self._sequence,
            "timestamp-ms": 1_700_000_000_000 + self._sequence * 60_000,
            "manifest-list": self.files.write_list(snapshot, manifests),
            "summary": {"operation": operation},
            "schema-id": len(self.schemas) - 1,
        }
        if self.head is not None:
            made["parent-snapshot-id"] = self.head.id
        if self.version >= 3:
            made |= {"first-row-id": first_row_id, "added-rows": self._next_row_id - first_row_id}
        return made

    def _schema_json(self, number: int) -> dict[str, Any]:
        columns = self.schemas[number]
        fields = []
        for column in columns:
            made = {"id": column.id, "name": column.name, "type": column.type, "required": False}
            if column.default is not None:
                given = column.default
                text = given.isoformat() if isinstance(given, date) else given
                made |= {"initial-default": text, "write-default": text}
            fields.append(made)
        place = number if number >= 0 else len(self.schemas) + number
        return {"type": "struct", "schema-id": place, "fields": fields}

    def _metadata(self) -> dict[str, Any]:
        snapshots = [state.json for state in self.states.values()]
        head = self.head
        made = {
            "format-version": self.version,
            "table-uuid": self._uuid,
            "location": LOCATION,
            "last-sequence-number": self._sequence,
            "last-updated-ms": 1_700_000_000_000 + self._sequence * 60_000,
            "last-column-id": self._last_column,
            "schemas": [self._schema_json(number) for number in range(len(self.schemas))],
            "current-schema-id": len(self.schemas) - 1,
            "partition-specs": [spec.to_json() for spec in self.specs],
            "default-spec-id": len(self.specs) - 1,
            "last-partition-id": 1000 + sum(len(spec.fields) for spec in self.specs),
            "properties": {},
            "current-snapshot-id": head.id if head else -1,
            "snapshots": snapshots,
            "snapshot-log": [
                {"snapshot-id": item["snapshot-id"], "timestamp-ms": item["timestamp-ms"]}
                for item in snapshots
            ],
            "metadata-log": [],
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "refs": {"main": {"snapshot-id": head.id, "type": "branch"}} if head else {},
        }
        if self.version >= 3:
            made["next-row-id"] = self._next_row_id
        return made
