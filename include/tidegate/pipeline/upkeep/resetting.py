"""Drop what a pipeline published and staged, so that it begins again from nothing."""

from __future__ import annotations

import contextlib
import functools
import posixpath
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tidegate.commit.policies import shown_table
from tidegate.errors import LedgerMoved, StateFileDamaged, StateFileLost, WorkUnfit
from tidegate.errors.commands import command
from tidegate.ledger.holder import Holder, Way
from tidegate.ledger.restoring import clear_rows, fence_off
from tidegate.model.revision_folder import partition_of, revision_folders
from tidegate.model.wire import Value, pretty
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.behind import Watch
from tidegate.pipeline.state.copied import refuse_copied
from tidegate.pipeline.state.left import forget_ended, has_ended
from tidegate.pipeline.state.moved import (
    as_followed,
    follow_move,
    target_was_moved,
    were_moved,
)
from tidegate.pipeline.state.places import Roots, is_same_place, worked_in
from tidegate.pipeline.state.sent import sent_parts
from tidegate.pipeline.state.work import await_movers, check_not_retired
from tidegate.stage import layout
from tidegate.stored import as_stored, read_content
from tidegate.target.late_root import late_files
from tidegate.target.marker import marked_by
from tidegate.target.retired import retirement_of, retirements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Standing(Value):
    """What a pipeline has published and staged."""

    target: str
    work: str
    partitions: int
    """Partitions that are published."""
    rows: int
    """Rows in them."""
    files: int
    """Part files and markers in the target."""
    bytes: int
    pending: int
    """Partitions with rows that are not published."""


@dataclass(frozen=True)
class Begun(Value):
    """The content of `reset.json`."""

    pipeline: str
    ledger: str
    """Id that the ledger assigned to the pipeline."""


@dataclass(frozen=True)
class Resetter:
    """Drops the target and the work directory of one pipeline, and what its ledger knows of them.

    Runs on: one process; a run that is alive is left to end. Called: by a person.
    Failure: `reset.json` stands in the work directory from before the first file is deleted until
    all is done, and everything else of the pipeline is refused meanwhile; the next call finishes,
    even if the ledger was lost in between.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a window."""

    def standing(self) -> Standing | None:
        """Return what a reset would drop; None if the ledger does not know the pipeline.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own.
            LedgerCopied: the ledger is a copy, and names those of the original.
        """
        roots = self.own_roots() if self._begun_before() is None else self.roots
        if roots is None:
            return None
        known = self.ledger.partitions.all()
        markers, parts = self._files(roots)
        names = [*markers, *parts]
        sizes = (self.storage.length(f"{roots.target}/{name}") or 0 for name in names)
        return Standing(
            target=roots.target,
            work=roots.work,
            partitions=sum(item.revision > 0 for item in known),
            rows=sum(item.rows for item in known),
            files=len(names),
            bytes=sum(sizes),
            pending=sum(item.pending != "none" for item in known),
        )

    def drop(self, owner: str, now: datetime) -> None:
        """Drop everything; the next load begins at `source.start`, and window numbers go on.

        The pipeline is registered as its file says now: its source, partitioning and target may be
        others than before. Files that Tidegate did not write stay in the target.

        Args:
            owner: the process that drops.
            now: its clock.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own; nothing was dropped.
            LedgerCopied: the ledger is a copy, and names those of the original; nothing was
                dropped.
            LedgerBehind: the work directory knows more than the ledger; nothing was dropped.
            PipelineRetired: the pipeline was ended.
            WindowOpen, PartitionBusy: a run is at work, or a process is moving files; nothing was
                dropped (Transient).
        """
        before = self._begun_before()
        if before is not None:
            target = self.storage.real_path(self.roots.target)
            self.ledger.pipeline.register(self.config.identity(), target, now, before.ledger)
        roots = self.own_roots()
        if roots is None:
            return
        follow_move(self.roots, self.ledger, self.storage)
        forget_ended(self.roots, self.ledger, self.storage)
        check_not_retired(self.roots, self.config.name, self.storage)
        words = ("reset", self.config.name, "--drop-target")
        self.check_idle(owner, now, Way(words, "goes on"))
        await_movers(roots, self.storage)
        if before is None and not self.storage.exists(layout.reset_file(roots.work)):
            self._check_not_behind(roots)
        # Once the reset has begun, everything else is refused until it is finished.
        begun = Begun(self.config.name, self.ledger.pipeline.get().ledger_id)
        self.storage.write_once(layout.reset_file(roots.work), pretty(begun.to_json()))
        again_if(LedgerMoved, functools.partial(self._drop, roots))
        self.storage.delete(layout.reset_file(roots.work))

    def _check_not_behind(self, roots: Roots) -> None:
        """Check that the ledger knows all that is dropped.

        Markers are not compared: of a table that was put back from before another reset, only this
        one takes them away. Nor is what cannot be read, for which there may be no other way out,
        nor a work directory that no longer says that it is of this ledger.

        Raises:
            LedgerBehind: the work directory knows more.
        """
        if roots.grounds(self.storage).read().work is None:
            return
        with contextlib.suppress(StateFileDamaged, StateFileLost):
            Watch(self.config, roots, self.ledger, self.storage).check_work()

    def _begun_before(self) -> Begun | None:
        """Return the reset that began before the ledger was lost; None if the ledger is there.

        There is nothing left to restore such a ledger from, and what remains is to be deleted.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own.
            StateFileDamaged: `reset.json` cannot be read.
        """
        path = layout.reset_file(self.roots.work)
        if self.ledger.pipeline.find() is not None or not self.storage.exists(path):
            return None
        content = read_content(self.storage, path, self._restoring)
        begun = as_stored(path, lambda: Begun.from_text(content), self._restoring)
        if begun.pipeline != self.config.name:
            return None
        self._check_own(self.roots, begun.ledger)
        return begun

    def _restoring(self) -> str:
        return f"restore the ledger with `{command('fsck', self.config.name, '--rebuild')}`"

    def own_roots(self) -> Roots | None:
        """Return the directories that the pipeline used; None if the ledger does not know it.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: they are not the pipeline's own.
            LedgerCopied: they are those of another pipeline, from whose ledger this one was copied.
            PipelineRetired: they were, and it has left them.
        """
        state = self.ledger.pipeline.find()
        if self.has_ended():
            check_not_retired(self.stood(), self.config.name, self.storage)
        if state is None and retirement_of(self.storage, self.roots.target, self.config.name):
            # Its target may have a new owner already.
            return None
        roots = self.roots if state is None else self.stood()
        self._check_own(roots, state.ledger_id if state else None)
        return None if state is None else roots

    def has_ended(self) -> bool:
        """Return whether the pipeline was retired, and only the ledger does not know it."""
        state = self.ledger.pipeline.find()
        return state is not None and has_ended(state, self.stood(), self.storage)

    def stood(self) -> Roots:
        """Return the directories that the pipeline used, which its file may have changed."""
        target = self.ledger.pipeline.get().target
        is_same = is_same_place(self.storage, target, self.roots.target)
        if is_same or target_was_moved(self.roots, self.ledger, self.storage):
            return self.roots
        work = worked_in(self.ledger) or self.roots.work
        return Roots(target, work, layout=self.roots.layout)

    def _check_own(self, roots: Roots, ledger_id: str | None) -> None:
        """Check the owner; that files are missing is no reason against dropping the others."""
        grounds, known = roots.grounds(self.storage), worked_in(self.ledger)
        claims = grounds.read()
        if were_moved(roots, claims, self.ledger, self.storage):
            claims = as_followed(roots, claims)
        grounds.check(self.config.name, ledger_id, claims, known, was_published=False)
        if ledger_id is not None:
            refuse_copied(roots, self.ledger, self.storage)
        if claims.work is None and known is not None and self._stands_elsewhere(known):
            raise WorkUnfit(
                pipeline=self.config.name, target=roots.target, work=roots.work, fits=known
            )

    def _stands_elsewhere(self, work: str) -> bool:
        """Return whether the target was moved without its work directory."""
        return self.storage.exists(layout.owner_file(work)) and target_was_moved(
            self.roots, self.ledger, self.storage
        )

    def check_idle(self, owner: str, now: datetime, asked: Way) -> None:
        """Check that no run is alive.

        Args:
            owner: the process that asks.
            now: its clock.
            asked: the command that goes on once there is none.

        Raises:
            WindowOpen: one is (Transient).
        """
        timeout = self.config.execute.claim_timeout
        holder = Holder(owner, now, timeout, self.life_of)
        held = self.ledger.windows.open()
        if held is not None and not self.ledger.windows.is_free(held.window.sequence, holder):
            release = ("release", self.config.name, held.window.sequence)
            holder = replace(holder, asked=replace(asked, release=release))
            # Raises the error that names its holder.
            self.ledger.windows.resume(held.window.sequence, holder, None, still_open=True)

    def _drop(self, roots: Roots) -> None:
        """Delete all files, and forget them if nobody worked on one meanwhile.

        The ledger forgets last, because it knows which directories the pipeline used.
        """
        before = fence_off(self.ledger)
        if before is None:
            return
        await_movers(roots, self.storage)
        markers, parts = self._files(roots)
        table = shown_table(self.config.target)
        if table is None:
            self._delete_parts(roots.target, (*markers, *parts))
        else:
            # Older snapshots name the files, which the table's own maintenance deletes.
            self._delete_parts(roots.target, markers)
            table.release(self.config.name)
            for state in self.ledger.partitions.all():
                if state.revision or self.ledger.publications.unrecorded(state.partition):
                    table.clear(self.config.name, state.partition, roots.partition(state.partition))
        late = self.roots.late
        if late is not None:
            for name in filter(
                layout.is_part_file, late_files(self.storage, late, self.config.name)
            ):
                self.storage.delete(f"{late}/{name}")
        self.drop_work(roots)
        if roots != self.roots:
            self._keep_erasures(roots)
            roots.grounds(self.storage).give_up()
        target = self.storage.real_path(self.roots.target)
        clear_rows(self.ledger, before, self.config.identity(), target)

    def _keep_erasures(self, roots: Roots) -> None:
        """Let the work directory of now know what was erased while the pipeline used another."""
        before = layout.erasures_root(roots.work)
        for name in self.storage.list_names(before):
            path = f"{layout.erasures_root(self.roots.work)}/{name}"
            self.storage.write_once(path, self.storage.read_bytes(f"{before}/{name}"))

    def _delete_parts(self, target: str, names: Sequence[str]) -> None:
        for name in names:
            self.storage.delete(f"{target}/{name}")
        self._drop_empty(target, filter(layout.is_part_file, names))

    def _drop_empty(self, target: str, names: Iterable[str]) -> None:
        """Remove the directories of the pipeline's partitions in which nothing is left.

        Those that the ledger knows are among them, because a reset that was killed may have deleted
        their files.
        """
        known = self.ledger.partitions.all()
        places = {state.partition.path for state in known if state.revision}
        for place in [*places]:
            apart = revision_folders(self.storage, posixpath.join(target, place).rstrip("/"))
            places.update(posixpath.relpath(folder, target) for folder in apart)
        folders = {
            str(folder)
            for place in places.union(map(posixpath.dirname, names))
            for folder in (PurePosixPath(place), *PurePosixPath(place).parents)
        }
        # What is inside another has the longer name.
        for folder in sorted(folders - {"."}, key=len, reverse=True):
            if not self.storage.list_names(f"{target}/{folder}"):
                self.storage.delete_tree(f"{target}/{folder}")

    def drop_work(self, roots: Roots) -> None:
        """Delete what the work directory has, but for the files that name owner and reset.

        Locks stay, because a process may be waiting for one.
        """
        for name in layout.TREES:
            self.storage.delete_tree(f"{roots.work}/{name}")
        for found in (*self.storage.unfinished(roots.work), *sent_parts(self.storage, roots)):
            self.storage.give_up(found.path, found.id)
        for name in filter(layout.is_start_file, self.storage.list_names(roots.work)):
            self.storage.delete(f"{roots.work}/{name}")

    def _files(self, roots: Roots) -> tuple[list[str], list[str]]:
        """List the markers and the part files that the pipeline wrote into its target."""
        names = self.storage.list_files(roots.target)
        mine = self.config.name
        markers = [name for name in names if marked_by(self.storage, roots.target, name) == mine]
        left = self._left(roots)
        parts = filter(layout.is_part_file, names)
        return markers, [it for it in parts if partition_of(posixpath.dirname(it)) not in left]

    def _left(self, roots: Roots) -> set[str]:
        """Return the paths of partitions that retired pipelines left, and that still are theirs."""
        ended = retirements(self.storage, roots.target)
        left = {path for item in ended for path in item.partitions}
        # Where this pipeline published, or began to, their files had been taken away.
        return left - {
            state.partition.path
            for state in (self.ledger.partitions.all() if left else ())
            if state.partition.path in left
            and (state.revision or self.ledger.publications.unrecorded(state.partition) is not None)
        }
