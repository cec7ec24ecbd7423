"""Erase rows for good: of what stands, what waits, what is kept of earlier, and what comes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import posixpath
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.config import PipelineConfig
from tidegate.errors import (
    ErasureInvalid,
    PredicateInvalid,
    StandingFileUnreadable,
    StateFileDamaged,
    StateFileLost,
    TidegateError,
)
from tidegate.errors.commands import command
from tidegate.model.counting import counting, set_aside
from tidegate.model.erasure import ErasedFile, Erasure, ErasureReport, Fingerprint
from tidegate.model.message import CommitMessage
from tidegate.model.part_format import form_of_name
from tidegate.model.wire import pretty
from tidegate.pipeline.publish.erasing import WITHOUT
from tidegate.pipeline.state.erasures import erasures
from tidegate.pipeline.state.places import Roots
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.predicate import Predicate, equalities, named_columns
from tidegate.read.erased_rows import erasable_problem, fingerprints
from tidegate.stage import layout
from tidegate.stage.erased_in import erased_in, write_without
from tidegate.stage.stored import read_stored
from tidegate.target.late_root import late_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import KnownPartition
    from tidegate.model.message import Contribution
    from tidegate.model.part_format import PartFormat
    from tidegate.model.publication import Approval, PublishedFile
    from tidegate.pipeline.publish.committer import Committer
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.erasing import StandingRows
    from tidegate.storage import Storage

    ReadAgain = Callable[[int], None]
    """Reads a window again, with the erasures as they are now."""

_DELETED = "deleted"
_UNREAD = "deleted although it could not be read"
_READ_AGAIN = "its window was read again without them"
_NEW = ".erased"
"""The end of the hidden name of a file that takes the place of another one."""


@dataclass(frozen=True)
class Eraser:
    """Erases rows in one pipeline's target and work directory.

    Runs on: one process. Called: by a person, again until nothing is left.
    Failure: rows are left somewhere, and the next call goes on.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    standing: StandingRows
    committer: Committer

    def named(
        self,
        where: str | None,
        by: str,
        now: datetime,
        comment: str = "",
        instead: Sequence[int] = (),
    ) -> Erasure:
        """Return the erasure that a condition describes: a new one, or the one that it was before.

        Args:
            where: such as `customer_id in (17, 18)`; None: only that others are replaced.
            by: who asks.
            now: the clock.
            comment: why.
            instead: numbers of earlier ones whose columns later windows need not have any more.

        Raises:
            ErasureInvalid: an earlier one does not exist, or the condition does not name values of
                columns in the published files.
        """
        known = erasures(self.storage, self.roots.work)
        # The same salt in all of them tells an erasure that was named before.
        salt = known[0].salt if known else os.urandom(16).hex()
        missing = sorted({*instead} - {item.number for item in known})
        if missing:
            problem = f"no erasure {missing[0]}; there are {len(known) or 'none'}"
            raise ErasureInvalid(where=where or "", problem=problem)
        columns, is_past = self._values(where) if where is not None else ({}, True)
        rows = _combined(columns, salt)
        told = (is_past or None, tuple(instead) or None)
        number = len(known) + 1
        made = Erasure(number, tuple(columns), salt, rows, by, now, comment, *told)
        return next((item for item in known if _said(item) == _said(made)), made)

    def _values(self, where: str) -> tuple[dict[str, pa.Array], bool]:
        """Return column → values, in the order of the columns' names.

        And whether the newest window lacks one of them.
        """
        import pyarrow as pa

        newest, schema = self._schemas(where)
        for name in sorted(set(schema.names).intersection(_named(where))):
            problem = _problem(schema, name)
            if problem is not None:
                raise ErasureInvalid(where=where, problem=f"in column '{name}': {problem}")
        try:
            found = equalities(Predicate.parse(where, schema, "--where"))
        except PredicateInvalid as refused:
            raise ErasureInvalid(where=where, problem=refused.problem) from refused
        if found is None:
            raise ErasureInvalid(where=where, problem="a condition that names no values")
        arrays = {}
        for name in sorted(found):
            kind = schema.field(name).type
            try:
                arrays[name] = found[name].unique(maintain_order=True).to_arrow().cast(kind)
            except pa.ArrowException as unfit:
                problem = f"in column '{name}': a value that one of type {kind} cannot have"
                raise ErasureInvalid(where=where, problem=problem) from unfit
        is_past = not all(
            name in newest.names and erasable_problem(newest.field(name).type) is None
            for name in arrays
        )
        return arrays, is_past

    def _schemas(self, where: str) -> tuple[pa.Schema, pa.Schema]:
        """Return the columns of the newest window, and those among which a condition names some.

        A column that only earlier windows had is taken from the newest of them.
        """
        import pyarrow as pa

        newest, found = None, pa.schema([])
        wanted = _named(where)
        for state in reversed(self.ledger.windows.all()):
            if not state.sealed or state.plan_digest is None:
                continue
            columns = self.contents.columns_of_plan(state.window.sequence, state.plan_digest)
            if columns is None:
                continue
            newest = columns if newest is None else newest
            fits = [it for it in columns if it.name not in found.names or _is_better(it, found)]
            others = [it for it in found if it.name not in {fit.name for fit in fits}]
            found = pa.schema([*others, *fits])
            if all(it in found.names and not _problem(found, it) for it in wanted):
                break
        if newest is None:
            raise ErasureInvalid(where=where, problem="no columns, because nothing was loaded yet")
        return newest, found

    def record(self, erasure: Erasure) -> Erasure:
        """Write an erasure down: no plan that is made from now on has its rows.

        Returns:
            It, with the number that it got.
        """
        while True:
            path = layout.erasure_file(self.roots.work, erasure.number)
            if self.storage.write_once(path, pretty(erasure.to_json())):
                return erasure
            stored = read_stored(self.storage, path, Erasure)
            if _said(stored) == _said(erasure):
                return stored
            # Another process took the number.
            erasure = replace(erasure, number=erasure.number + 1)

    def look(self, named: Sequence[Erasure]) -> tuple[ErasedFile, ...]:
        """Return the published files that have erased rows, and the staged ones."""
        known = self.ledger.known_partitions()
        found: list[ErasedFile] = []
        for item in known:
            # A file that cannot be read is told when rows are erased.
            with contextlib.suppress(TidegateError):
                found += self.standing.found(item.state.partition, named)
        return (*found, *self._waiting(known, named, []))

    def lacking(self, erasure: Erasure) -> dict[str, int]:
        """Return partition → its published files without a column that an erasure names.

        They may have its rows under another name of the column.
        """
        found = {}
        for item in self.ledger.known_partitions():
            # A file that cannot be read is told when rows are erased.
            with contextlib.suppress(TidegateError):
                found[str(item.state.partition)] = self.standing.lacking(
                    item.state.partition, erasure
                )
        return {name: files for name, files in found.items() if files}

    def erase(
        self,
        named: Sequence[Erasure],
        said: Approval,
        owner: str,
        read_again: ReadAgain,
        told: Callable[[str], None],
    ) -> ErasureReport:
        """Erase rows everywhere, as far as that is possible now.

        Args:
            named: all erasures that are written down.
            said: who erases them.
            owner: the run.
            read_again: reads a window again.
            told: called with what is being done.

        Returns:
            What was erased, and what was not.
        """
        left: list[ErasedFile] = []
        files: list[ErasedFile] = []
        files += self._from_standing(named, said, owner, told, left)
        files += self._replayed(named, read_again, left, owner, said.at)
        # A commit may have begun before its windows were read again; none can from now on.
        files += self._from_standing(named, said, owner, told, left)
        told("looking through files that are kept")
        files += self._swept(named, left)
        numbers = tuple(item.number for item in named)
        report = ErasureReport(numbers, tuple(files), tuple(left), said.at)
        if not left:
            at = f"{said.at:%Y%m%dT%H%M%S%f}"
            path = layout.erasure_report(self.roots.work, numbers[-1], at)
            self.storage.write_once(path, pretty(report.to_json()))
        return report

    def _from_standing(
        self,
        named: Sequence[Erasure],
        said: Approval,
        owner: str,
        told: Callable[[str], None],
        left: list[ErasedFile],
    ) -> Iterator[ErasedFile]:
        """Take erased rows out of every current revision."""
        failed = {file.partition for file in left}
        for item in self.ledger.known_partitions():
            partition = item.state.partition
            if str(partition) in failed:
                continue
            told(f"looking through {partition}")
            try:
                # Without a claim, which would stop a run that publishes other rows.
                if item.begun is not None or self.standing.found(partition, named):
                    yield from self.standing.erase(partition, named, said, owner, said.at)
            except TidegateError as refused:
                place = self.roots.partition(partition)
                left.append(ErasedFile(place, 0, str(refused), str(partition)))

    def _waiting(
        self,
        known: Sequence[KnownPartition],
        named: Sequence[Erasure],
        left: list[ErasedFile],
    ) -> Iterator[ErasedFile]:
        """Yield staged files with erased rows that a later revision may have."""
        for item in known:
            for brought in _coming(item):
                try:
                    yield from self._staged(brought, named)
                except TidegateError as refused:
                    root = layout.plan_root(self.roots.work, brought.window, brought.plan_digest)
                    left.append(ErasedFile(root, 0, str(refused), str(brought.partition)))

    def _staged(self, brought: Contribution, named: Sequence[Erasure]) -> Iterator[ErasedFile]:
        for part in self.contents.parts_of(brought):
            path = f"{self.roots.work}/{part.staged}"
            if not self.storage.exists(path):
                continue
            form, columns = self._told(path)
            rows = erased_in(path, form, named, columns)
            if rows:
                yield ErasedFile(path, rows, _READ_AGAIN, str(brought.partition))

    def _replayed(
        self,
        named: Sequence[Erasure],
        read_again: ReadAgain,
        left: list[ErasedFile],
        owner: str,
        now: datetime,
    ) -> Iterator[ErasedFile]:
        """Read windows again whose staged files somebody may still publish."""
        known = self.ledger.known_partitions()
        waiting = tuple(self._waiting(known, named, left))
        by_window: dict[int, list[ErasedFile]] = {}
        for file in waiting:
            by_window.setdefault(layout.window_of(file.path) or 0, []).append(file)
        for window, files in sorted(by_window.items()):
            try:
                read_again(window)
            except TidegateError as refused:
                left += [replace(file, done=str(refused)) for file in files]
            else:
                yield from files
        for item in known if by_window else ():
            if any(brought.late for brought in set_aside(item.contributions)):
                try:
                    self.committer.file_late(item.state.partition, owner, now)
                except TidegateError as refused:
                    partition = item.state.partition
                    place = self.roots.partition(partition)
                    left.append(ErasedFile(place, 0, str(refused), str(partition)))

    def _kept(self, left: Sequence[ErasedFile]) -> set[str]:
        """Return files that must not go, because something that is published later has them."""
        kept = {file.path for file in left}
        for item in self.ledger.known_partitions():
            begun = item.begun.publication.adds if item.begun is not None else ()
            # Those with erased rows have been dealt with.
            coming: list[PublishedFile] = []
            for brought in _coming(item):
                with contextlib.suppress(StateFileLost, StateFileDamaged):
                    coming += self.contents.parts_of(brought)
            kept |= {f"{self.roots.work}/{file.staged}" for file in (*begun, *coming)}
            standing = self.contents.standing(item.state.partition)
            for file in standing.content if standing else ():
                kept |= {f"{self.roots.work}/{part.staged}" for part in file.made_of}
        return {posixpath.normpath(path) for path in kept}

    def _swept(self, named: Sequence[Erasure], left: list[ErasedFile]) -> Iterator[ErasedFile]:
        """Take erased rows out of everything that is kept, and that no revision needs."""
        work = self.roots.work
        names = [
            name
            for name in self.storage.list_files(work)
            if name.split("/")[0] in layout.TREES and _has_rows(name)
        ]
        # What is listed and needed is known afterwards, whatever happens meanwhile.
        busy, kept, aside = self._loading(named, left), self._kept(left), self._put_aside()
        # What could not be looked through is not to be taken for something that nobody needs.
        places = tuple(f"{it.path}/" for it in left) + ((busy,) if busy is not None else ())
        for name in names:
            path = f"{work}/{name}"
            if path.startswith(places):
                continue
            if posixpath.basename(name).startswith("."):
                if path.endswith(_NEW):
                    self._put_in_place(path)
                continue
            if path in kept:
                continue
            if path in aside:
                yield from self._written_anew(path, named, left)
            else:
                yield from self._deleted(path, named)
        for root in self._late_roots():
            for name in late_files(self.storage, root, self.config.name):
                if _has_rows(name):
                    yield from self._written_anew(f"{root}/{name}", named, left)

    def _loading(self, named: Sequence[Erasure], left: list[ErasedFile]) -> str | None:
        """Return the directory of the window that a run is loading; None if there is none."""
        state = self.ledger.windows.open()
        if state is None:
            return None
        sequence = state.window.sequence
        root = layout.window_root(self.roots.work, sequence)
        uri = self.ledger.plans.uri(sequence)
        try:
            leaves_out = uri is not None and read_plan(self.storage, uri).erased
        except (StateFileLost, StateFileDamaged):
            leaves_out = None
        if leaves_out != named[-1].number:
            load = command("load", self.config.name)
            run = f"window {sequence} is being loaded; finish it with `{load}`"
            left.append(ErasedFile(root, 0, run))
        return f"{root}/"

    def _late_roots(self) -> list[str]:
        """Return the late roots that the pipeline has, and had when its windows were loaded."""
        found = {self.roots.late: None} if self.roots.late is not None else {}
        seen = []
        for state in self.ledger.windows.all():
            uri = self.ledger.plans.uri(state.window.sequence)
            try:
                said = {} if uri is None else read_plan(self.storage, uri).config
            except (StateFileLost, StateFileDamaged):
                continue
            late_data = said.get("commit", {}).get("late_data")
            if late_data not in seen:
                seen.append(late_data)
                with contextlib.suppress(TidegateError, ValueError):
                    late = Roots.of(PipelineConfig.from_resolved(said)).late
                    found |= {late: None} if late is not None else {}
        return list(found)

    def _put_aside(self) -> set[str]:
        """Return the quarantined rows of plans in effect, for which people look."""
        found: set[str] = set()
        for state in self.ledger.windows.all():
            if state.plan_digest is None:
                continue
            root = layout.plan_root(self.roots.work, state.window.sequence, state.plan_digest)
            for name in self.storage.list_names(layout.messages_root(root)):
                path = f"{layout.messages_root(root)}/{name}"
                try:
                    staged = read_stored(self.storage, path, CommitMessage).staged
                except (StateFileLost, StateFileDamaged):
                    continue
                found |= {f"{root}/{part.staged}" for part in staged.quarantined}
            late = f"{root}/{layout.LATE_QUARANTINE}"
            found |= {f"{late}/{name}" for name in self.storage.list_files(late)}
        return found

    def _deleted(self, path: str, named: Sequence[Erasure]) -> Iterator[ErasedFile]:
        """Delete a file that nothing needs if it has erased rows, or may have some."""
        form, columns = self._told(path)
        rows, done = None, _DELETED
        try:
            if columns is not None or form.kind.has_columns:
                rows = erased_in(path, form, named, columns)
        except StandingFileUnreadable:
            # Half a file of a process that died, or one of rows on their way between tasks.
            pass
        if rows == 0:
            return
        if rows is None:
            done = _UNREAD
        self.storage.delete(path)
        self.storage.sync(posixpath.dirname(path))
        yield ErasedFile(path, rows or 0, done)

    def _told(self, path: str) -> tuple[PartFormat, pa.Schema | None]:
        """Return how a file is written, and its columns if it does not say them itself."""
        form = form_of_name(path)
        if form.kind.has_columns:
            return form, None
        digest = layout.digest_of_part(path)
        columns = None if digest is None else self._columns_of(digest)
        return self.config.target.part_format.of_file(path), columns

    @cached_property
    def _columns_of(self) -> Callable[[str], pa.Schema | None]:
        """Looks for each plan once, whose files are many."""
        return functools.cache(self._planned_columns)

    def _planned_columns(self, digest: str) -> pa.Schema | None:
        """Return the columns of the files that a plan writes; None if it is lost."""
        for state in self.ledger.windows.all():
            window = state.window.sequence
            if self.storage.exists(layout.plan_root(self.roots.work, window, digest)):
                return self.contents.columns_of_plan(window, digest)
        return None

    def _written_anew(
        self, path: str, named: Sequence[Erasure], left: list[ErasedFile]
    ) -> Iterator[ErasedFile]:
        """Write a file that nobody publishes without erased rows, under its name."""
        form, columns = self._told(path)
        try:
            rows = erased_in(path, form, named, columns)
            if not rows:
                return
            folder, name = posixpath.split(path)
            new = f"{folder}/.{name}{_NEW}"
            self.storage.delete(new)
            write_without(path, self.storage.open_new(new), form, named, columns)
            self.storage.sync(new)
            self.storage.delete(path)
            self._put_in_place(new)
        except StandingFileUnreadable as refused:
            done = f"it cannot be read: {refused.problem}. Delete it, or put back a copy of it"
            left.append(ErasedFile(path, 0, done))
            return
        except TidegateError as refused:
            left.append(ErasedFile(path, 0, str(refused)))
            return
        yield ErasedFile(path, rows, WITHOUT)

    def _put_in_place(self, new: str) -> None:
        """Give a file that was written anew its name, unless that was not to be yet."""
        folder, name = posixpath.split(new)
        path = f"{folder}/{name.removeprefix('.').removesuffix(_NEW)}"
        if not self.storage.exists(path):
            self.storage.link_new(new, path)
            self.storage.sync(folder)
        self.storage.delete(new)


def _coming(item: KnownPartition) -> Iterator[Contribution]:
    """Yield what a later revision of a partition may have that the current one has not."""
    stood = item.newest.contributions if item.newest else {}
    for brought in counting(item.contributions):
        if stood.get(str(brought.window)) != brought.plan_digest:
            yield brought
    yield from set_aside(item.contributions)


def _combined(columns: Mapping[str, pa.Array], salt: str) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of every combination of values, in an order that tells nothing."""
    import pyarrow as pa

    if not columns:
        return ()
    rows = list(itertools.product(*(values.to_pylist() for values in columns.values())))
    kinds = [values.type for values in columns.values()]
    arrays = [
        pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    return tuple(sorted(fingerprints(arrays, salt), key=lambda row: row.digest))


def _said(erasure: Erasure) -> tuple[object, ...]:
    """Return what an erasure says, whoever said it."""
    return erasure.columns, erasure.salt, erasure.rows, erasure.is_past, erasure.instead


def _named(where: str) -> set[str]:
    """Return the columns that a condition names; none if it does not parse."""
    try:
        return set(named_columns(where, "--where"))
    except PredicateInvalid:
        return set()


def _problem(schema: pa.Schema, name: str) -> str | None:
    return erasable_problem(schema.field(name).type)


def _is_better(column: pa.Field, known: pa.Schema) -> bool:
    """Return whether rows are named by a column of an earlier type, but not by the later one."""
    return _problem(known, column.name) is not None and erasable_problem(column.type) is None


def _has_rows(name: str) -> bool:
    """Return whether a file has rows: part files, those in the place of one, and exchanged rows."""
    plain = posixpath.basename(name).removesuffix(_NEW).removeprefix(".")
    return layout.is_part_file(plain) or name.endswith(".arrow")
