"""Random histories of a Hudi table: written file by file, and told again by plain dictionaries.

A group is a dictionary of rows and a list of records above it. What a state has, what a window
changed, and what each write wrote follows from these, and from nothing of the reader's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_writer import TIME, Columns, Deletes, HudiTable, Rollback, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from hudi_writer import Content, Write

COLUMNS: Columns = {
    "k": ("string", pa.string()),
    "ts": ("long", pa.int64()),
    "v": ("string", pa.string()),
    "_hoodie_is_deleted": ("boolean", pa.bool_()),
}
KEYS = "abcdef"
FOLDERS = ("p", "q")
Place = tuple[str, str]
"""Folder and file group."""
Change = tuple[int, str, str, int | None, str | None]
"""Number of the write in its window, kind, key, ordering value, value."""


@dataclass(frozen=True)
class Record:
    """What was logged of a key, or stands of it."""

    key: str
    ts: int | None
    value: str | None
    instant: str
    deleted: bool = False
    in_rows: bool = True
    """Whether a delete stands in a data block."""

    @property
    def row(self) -> dict[str, object]:
        """As it is written."""
        told = {"k": self.key, "ts": self.ts, "v": self.value, TIME: self.instant}
        return {**told, "_hoodie_is_deleted": self.deleted}


@dataclass
class Group:
    """A file group as it stands."""

    base: dict[str, Record] = field(default_factory=dict)
    base_instant: str | None = None
    logs: list[tuple[str, str, list[Record]]] = field(default_factory=list)
    """Requested and completion time, records."""

    def copy(self) -> Group:
        """The same, to be kept."""
        return Group(dict(self.base), self.base_instant, list(self.logs))

    def records(self, only: Sequence[str] | None = None) -> list[Record]:
        """The log records in the order of requests."""
        return [
            record
            for requested, _, records in sorted(self.logs, key=lambda log: log[0])
            for record in records
            if only is None or requested in only
        ]


def beats(new: Record, old: Record, *, by_event: bool) -> bool:
    """Whether a record wins over an older one; NULL of a column that is no int is no order."""
    return not by_event or new.ts is None or old.ts is None or new.ts >= old.ts


def newest(records: Iterable[Record], *, by_event: bool) -> dict[str, Record]:
    """The record of each key that wins among records."""
    found: dict[str, Record] = {}
    for record in records:
        old = found.get(record.key)
        if old is None or beats(record, old, by_event=by_event):
            found[record.key] = record
    return found


def merged(
    base: Mapping[str, Record], records: Iterable[Record], *, by_event: bool
) -> dict[str, Record]:
    """The rows that stand after records were applied to rows."""
    found = dict(base)
    for key, record in newest(records, by_event=by_event).items():
        if key in base and not beats(record, base[key], by_event=by_event):
            continue
        if record.deleted:
            found.pop(key, None)
        else:
            found[key] = record
    return found


@dataclass
class Told:
    """What is known of the table after a write."""

    instant: str
    state: dict[tuple[str, str], Record]
    groups: dict[Place, Group]
    touched: set[tuple[str, str]]
    changes: list[tuple[str, Record]]


class History:
    """Writes a table step by step."""

    def __init__(
        self, root: Path, version: int, kind: str, dice: Random, *, by_event: bool
    ) -> None:
        self.by_event = by_event
        self.dice = dice
        ordering = "ts" if by_event else ""
        self.table = HudiTable(root, version, kind, dict(COLUMNS), ordering)
        self.is_cow = kind == "COPY_ON_WRITE"
        self.groups: dict[Place, Group] = {}
        self.told: list[Told] = []
        self._made = 0
        self._late: list[tuple[Write, dict[Place, list[Record]]]] = []
        self._compacting: list[tuple[Write, Place, dict[str, Record]]] = []

    def run(self, steps: int) -> None:
        """Take steps, and finish what was begun."""
        kinds = ["write"] * 6 + ["overwrite", "cluster"]
        if not self.is_cow:
            kinds += ["compact", "compact", "log_compact", "roll_back"]
            if self.table.has_times:
                kinds += ["begin_late", "end_late"]
            if not self.by_event:
                kinds += ["plan", "end_plan"]
        self.write()
        for _ in range(steps):
            getattr(self, self.dice.choice(kinds))()
        while self._late:
            self.end_late()

    # ── Steps ──

    def write(self) -> None:
        """Insert, update and delete keys, in base files or logs."""
        write = self.table.begin()
        found: dict[Place, list[Record]] = {}
        rewritten: dict[Place, dict[str, Record]] = {}
        for place, records in self._chosen(write.requested).items():
            group = self.groups.get(place)
            if self.is_cow or (group is None and self.dice.random() < 0.5):
                before = group.base if group else {}
                rewritten[place] = merged(before, records, by_event=False)
                deletes = len(before.keys() - rewritten[place].keys())
                previous = group.base_instant if group and group.base_instant else "null"
                rows = [it.row for it in rewritten[place].values()]
                write.base(
                    place[1],
                    rows,
                    partition=place[0],
                    previous=previous,
                    deletes=deletes,
                    row_group_size=self.dice.choice([1, 2, 100]),
                )
                records = [
                    *(it for it in rewritten[place].values() if it.instant == write.requested),
                    *(
                        Record(key, None, None, write.requested, deleted=True)
                        for key in before.keys() - rewritten[place].keys()
                    ),
                ]
            else:
                write.log(place[1], *self._content(records), partition=place[0])
            found[place] = records
        requested = write.done()
        completed = self._completed(requested)
        for place, records in found.items():
            group = self.groups.setdefault(place, Group())
            if place in rewritten:
                group.base, group.base_instant = rewritten[place], requested
            else:
                group.logs.append((requested, completed, records))
        self._tell(requested, found)

    def overwrite(self) -> None:
        """Replace a folder's groups by a new one."""
        folder = self.dice.choice(FOLDERS)
        old = [place for place in self.groups if place[0] == folder]
        if not old or self._late or self._compacting or self.dice.random() < 0.5:
            return
        write = self.table.begin("replacecommit")
        keys = self.dice.sample(KEYS, self.dice.randrange(3))
        rows = {key: self._record(key, write.requested, deleted=False) for key in keys}
        write.replaced[folder] = [group for _, group in old]
        changes: dict[Place, list[Record]] = {}
        for place in old:
            changes[place] = [
                Record(key, None, None, write.requested, deleted=True)
                for key in self._rows(self.groups[place])
            ]
            del self.groups[place]
        if rows:
            place = folder, self._name()
            write.base(place[1], [it.row for it in rows.values()], partition=folder)
            self.groups[place] = Group(rows, write.requested)
            changes[place] = list(rows.values())
        write.done("INSERT_OVERWRITE")
        self._tell(write.requested, changes)

    def compact(self) -> None:
        """Compact a group at once."""
        self.plan()
        self.end_plan()

    def plan(self) -> None:
        """Plan the compaction of a group."""
        busy = {place for _, place, _ in self._compacting}
        places = [place for place, group in self.groups.items() if group.logs and place not in busy]
        if not places or (self._late and not self.table.has_times):
            return
        place = self.dice.choice(places)
        write = self.table.pending("compaction", place[1], partition=place[0])
        self._compacting.append((write, place, self._rows(self.groups[place])))

    def end_plan(self) -> None:
        """Finish a planned compaction."""
        if not self._compacting:
            return
        write, place, rows = self._compacting.pop(0)
        if self.by_event and not rows:
            self.table.forget(write.requested)
            return
        write.base(place[1], [it.row for it in rows.values()], partition=place[0])
        write.done("COMPACT")
        found = [self.groups[place]]
        if not self.table.has_times:
            # It is done when it was requested, as far as the timeline shows.
            found += [it.groups[place] for it in self.told if it.instant > write.requested]
        for group in found:
            group.base, group.base_instant = rows, write.requested
            group.logs = [it for it in group.logs if it[1] > write.requested]
        self._also_in_state()

    def cluster(self) -> None:
        """Put the rows of a folder's groups into a new one."""
        folder = self.dice.choice(FOLDERS)
        old = [place for place in self.groups if place[0] == folder]
        if not old or self._late or self._compacting:
            return
        old = self.dice.sample(old, self.dice.randrange(1, len(old) + 1))
        rows: dict[str, Record] = {}
        for place in old:
            rows |= self._rows(self.groups.pop(place))
        name = self._name()
        self.table.cluster(
            [group for _, group in old], name, [it.row for it in rows.values()], folder
        )
        self.groups[folder, name] = Group(rows, self.table.times[-1])
        self._also_in_state()

    def log_compact(self) -> None:
        """Write the first logs of a group again as one."""
        busy = {place for _, place, _ in self._compacting}
        places = [
            place
            for place, group in self.groups.items()
            if len(group.logs) > 1 and place not in busy
        ]
        if not places or self._late:
            return
        place = self.dice.choice(places)
        logs = sorted(self.groups[place].logs)[: self.dice.randrange(2, 4)]
        stand = newest((it for log in logs for it in log[2]), by_event=self.by_event)
        rows = [it.row for it in stand.values() if not it.deleted]
        deletes = [it for it in stand.values() if it.deleted]
        service = self.table.begin("logcompaction")
        content: list[Content] = [Rows(rows, compacted=[log[0] for log in logs])]
        content += [self._deletes(deletes)] if deletes else []
        service.log(place[1], *content, partition=place[0])
        service.done("LOG_COMPACT")
        self._also_in_state()

    def roll_back(self) -> None:
        """Write something, and take it back."""
        places = list(self.groups)
        if not places or self._compacting:
            return
        write = self.table.begin()
        place = self.dice.choice(places)
        records = [self._record(key, write.requested) for key in self.dice.sample(KEYS, 2)]
        path = write.log(place[1], *self._content(records), partition=place[0])
        rollback = self.table.begin("rollback")
        if self.table.has_times:
            path.unlink()
        else:
            append = path if self.dice.random() < 0.5 else None
            rollback.log(place[1], Rollback(write.requested), partition=place[0], append=append)
        self.table.forget(write.requested)
        rollback.done("UNKNOWN")

    def begin_late(self) -> None:
        """Begin a write that is done after others."""
        if not self.groups or self._compacting or self._late:
            return
        write = self.table.begin()
        place = self.dice.choice(list(self.groups))
        own = [key for key in KEYS if self._home(place[0], key) in {place, None}]
        if not own:
            self.table.forget(write.requested)
            return
        records = [self._record(key, write.requested) for key in own[:2]]
        write.log(place[1], *self._content(records), partition=place[0])
        self._late.append((write, {place: records}))

    def end_late(self) -> None:
        """Finish such a write."""
        if not self._late:
            return
        write, found = self._late.pop(0)
        requested = write.done()
        completed = self._completed(requested)
        for place, records in found.items():
            self.groups[place].logs.append((requested, completed, records))
        self._tell(requested, found)

    # ── What the steps are made of ──

    def _chosen(self, instant: str) -> dict[Place, list[Record]]:
        found: dict[Place, list[Record]] = {}
        for _ in range(self.dice.randrange(1, 6)):
            folder, key = self.dice.choice(FOLDERS), self.dice.choice(KEYS)
            place = self._home(folder, key)
            if place is None and any(
                it.key == key
                for it_place in found
                if it_place[0] == folder
                for it in found[it_place]
            ):
                continue
            if place is None:
                groups = [it for it in self.groups if it[0] == folder]
                is_new = not groups or self.dice.random() < 0.3
                place = (folder, self._name()) if is_new else self.dice.choice(groups)
            found.setdefault(place, []).append(self._record(key, instant))
        return found

    def _home(self, folder: str, key: str) -> Place | None:
        """The group that has a key; a late write may bring it there."""
        for place, group in self.groups.items():
            late = [it for _, found in self._late for it in found.get(place, [])]
            if place[0] == folder and (
                key in self._rows(group) or any(it.key == key for it in late)
            ):
                return place
        return None

    def _record(self, key: str, instant: str, *, deleted: bool | None = None) -> Record:
        dice = self.dice
        gone = dice.random() < 0.3 if deleted is None else deleted
        ts = None if dice.random() < 0.15 else dice.randrange(-2, 9)
        self._made += 1
        value = None if gone else f"{key}{self._made}"
        return Record(key, ts, value, instant, gone, in_rows=dice.random() < 0.5)

    def _content(self, records: Sequence[Record]) -> list[Content]:
        """Cut records into blocks, in their order."""
        blocks: list[list[Record]] = []
        for record in records:
            is_delete = record.deleted and not record.in_rows
            last = blocks[-1][-1] if blocks else None
            alike = last is not None and (last.deleted and not last.in_rows) == is_delete
            if alike and self.dice.random() < 0.7:
                blocks[-1].append(record)
            else:
                blocks.append([record])
        return [
            self._deletes(block)
            if block[0].deleted and not block[0].in_rows
            else Rows([it.row for it in block], parquet=self.dice.random() < 0.3)
            for block in blocks
        ]

    def _deletes(self, records: Sequence[Record]) -> Deletes:
        return Deletes([(it.key, None if it.ts is None else ("Long", it.ts)) for it in records])

    def _rows(self, group: Group) -> dict[str, Record]:
        return merged(group.base, group.records(), by_event=self.by_event)

    def _state(self) -> dict[tuple[str, str], Record]:
        found: dict[tuple[str, str], Record] = {}
        for (folder, _), group in self.groups.items():
            found |= {(folder, key): record for key, record in self._rows(group).items()}
        return found

    def _completed(self, requested: str) -> str:
        return self.table._metadata[requested][0]

    def _name(self) -> str:
        self._made += 1
        return f"{self._made:08}-group-0"

    def _tell(self, instant: str, found: Mapping[Place, Sequence[Record]]) -> None:
        touched = {(place[0], it.key) for place, records in found.items() for it in records}
        changes = [(place[0], it) for place, records in found.items() for it in records]
        groups = {place: group.copy() for place, group in self.groups.items()}
        self.told.append(Told(instant, self._state(), groups, touched, changes))

    def _also_in_state(self) -> None:
        """Keep what a service did to the state after the last write."""
        if self.told:
            self.told[-1] = replace(self.told[-1], state=self._state())
