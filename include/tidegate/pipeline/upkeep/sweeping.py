"""Find files in a work directory that are no longer needed, and delete them (PC-F40)."""

from __future__ import annotations

import contextlib
import itertools
import posixpath
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate.errors import PartitionBusy, WindowOpen
from tidegate.ledger.holder import Holder
from tidegate.model.counting import counting, set_aside
from tidegate.model.message import CommitMessage
from tidegate.pipeline.state.abandoned import abandoned_plans
from tidegate.pipeline.state.holders import process_owner
from tidegate.pipeline.state.records import Records
from tidegate.pipeline.state.work import check_identity, check_owner
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import KnownPartition, RevisionEntry, WindowState
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage

_SWEPT = (layout.MESSAGES, layout.EXCHANGE, layout.QUARANTINE, layout.STAGED)
"""In this order, after the file that announces a plan: an interrupted sweep leaves no file that
refers to deleted ones."""
_SWEEPER = "gc"
_WRITING = timedelta(hours=1)
"""A younger temporary file may belong to a running process."""


@dataclass(frozen=True)
class Garbage:
    """A file that may be deleted."""

    path: str
    bytes: int
    reason: str
    window: int | None = None
    """The window of its plan: checked again before the file is deleted."""


@dataclass(frozen=True)
class Sweeper:
    """Deletes garbage in one pipeline's work directory, and nothing else.

    Runs on: one process. Called: by a person or a timer.
    Failure: an interrupted sweep leaves some garbage, which the next one deletes.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    watch: Watch
    life_of: Callable[[str], Life]
    """Returns the state of the run that holds a window."""

    def garbage(self, now: datetime, older_than: timedelta) -> tuple[Garbage, ...]:
        """Return files that no window, publication or hold needs and that are old enough (PC-F40).

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost: the files belong to
                another pipeline.
            LedgerBehind: the ledger does not know which files are needed.
        """
        check_identity(self.config, self.roots, self.ledger, self.storage)
        check_owner(self.roots, self.ledger, self.storage)
        self.watch.check_all_windows()
        cutoff = now - older_than
        young = min(cutoff, now - _WRITING)
        return (
            *self._retired(cutoff),
            *(item for item in self._assembled() if self._is_older(item.path, young)),
            *(item for item in self._left_over(cutoff) if self._is_older(item.path, cutoff)),
            *(item for item in self._temporary() if self._is_older(item.path, young)),
        )

    def sweep(self, garbage: tuple[Garbage, ...]) -> tuple[Garbage, ...]:
        """Delete the result of `garbage`, except files needed since, in that order.

        Returns:
            The deleted files. The files of a window that a run works on are kept.
        """
        swept: list[Garbage] = []
        for sequence, items in itertools.groupby(garbage, lambda item: item.window):
            if sequence is None:
                swept += self._delete(self._unneeded(tuple(items)))
            else:
                with contextlib.suppress(PartitionBusy, WindowOpen):
                    swept += self._sweep_window(sequence, tuple(items))
        return tuple(swept)

    def _unneeded(self, garbage: Sequence[Garbage]) -> Sequence[Garbage]:
        """Leave out files that a proposal has found made since."""
        units = f"{self.roots.work}/{layout.UNITS}/"
        if not any(item.path.startswith(units) for item in garbage):
            return garbage
        free = {item.path for item in self._assembled()}
        return [it for it in garbage if not it.path.startswith(units) or it.path in free]

    def _sweep_window(self, sequence: int, garbage: Sequence[Garbage]) -> Sequence[Garbage]:
        """Delete files of one window's plans, unless a run has taken the window.

        A replay may reuse a plan that was never announced. It takes the window first and then waits
        for this lock, so that it finds either all of the plan or what is left of it.

        Raises:
            PartitionBusy: a run is examining its plan, or another sweep is running.
            WindowOpen: a run took the window in the meantime.
        """
        with self.storage.lock(layout.window_lock(self.roots.work, sequence), _SWEEPER):
            state = self.ledger.windows.find(sequence)
            if state is None:
                given_up = {item.path for item in self._abandoned(sequence)}
                return self._delete([item for item in garbage if item.path in given_up])
            if not self._is_free(state):
                return ()
            if state.owner is not None:
                state = self._taken(state)
            free = {item.path for items in self._free(state).values() for item in items}
            deleted = self._delete([item for item in garbage if item.path in free])
            self.ledger.windows.give_back(sequence, state.attempt)
            return deleted

    def _taken(self, state: WindowState) -> WindowState:
        """Take a window from an ended run, which must not announce deleted files if it resumes.

        Raises:
            WindowOpen: another run took it in the meantime (Transient).
        """
        holder = self._holder(state)
        return self.ledger.windows.resume(state.window.sequence, holder, None)

    def _delete(self, garbage: Sequence[Garbage]) -> Sequence[Garbage]:
        for folder, items in itertools.groupby(garbage, lambda item: posixpath.dirname(item.path)):
            names = [posixpath.basename(item.path) for item in items]
            for name in names:
                self.storage.delete(f"{folder}/{name}")
            if posixpath.basename(folder) == layout.MESSAGES or any(
                map(layout.is_sealed_file, names)
            ):
                # A power failure must not bring back a file that refers to deleted ones.
                self.storage.sync(folder)
        return garbage

    def _retired(self, cutoff: datetime) -> Iterator[Garbage]:
        """Yield files that a revision replaced long enough ago.

        A reader may have opened the old revision just before, however old its files are.
        """
        for partition in (state.partition for state in self.ledger.partitions.all()):
            folder = layout.retired_root(self.roots.work, partition)
            if not self.storage.exists(folder):
                continue
            for made in self.ledger.publications.revisions(partition):
                if self._replaced_at(made) < cutoff:
                    for name in self.storage.list_files(f"{folder}/{made.revision}"):
                        path = f"{folder}/{made.revision}/{name}"
                        yield self._garbage(path, "replaced by a later revision")

    def _assembled(self) -> Iterator[Garbage]:
        """Yield files that were assembled for revisions that nobody will commit."""
        root = self.roots.work
        for known in self.ledger.known_partitions():
            waiting = (known.proposed, known.begun)
            needed = {
                posixpath.normpath(f"{root}/{file.staged}")
                for entry in waiting
                if entry is not None
                for file in entry.publication.adds
            }
            units = layout.units_root(root, known.state.partition)
            for digest in self.storage.list_names(units):
                names = self.storage.list_files(f"{units}/{digest}")
                paths = [f"{units}/{digest}/{name}" for name in names]
                if not needed.intersection(paths):
                    for path in paths:
                        yield self._garbage(path, "assembled for a revision that was not committed")

    def _replaced_at(self, made: RevisionEntry) -> datetime:
        """Return when a revision replaced the one before.

        The commit's clock is that of the command, which may have been publishing for hours; the
        plan was written just before the files moved, but may have been carried out much later.
        """
        planned = self.storage.modified(f"{self.roots.work}/{made.commit_plan}")
        return max(made.committed_at, planned or made.committed_at)

    def _temporary(self) -> Iterator[Garbage]:
        for name in self.storage.list_files(self.roots.work):
            if name.rpartition("/")[2].startswith("."):
                path = f"{self.roots.work}/{name}"
                yield self._garbage(path, "being written when its process died")

    def _left_over(self, cutoff: datetime) -> Iterator[Garbage]:
        """Yield attempts that lost, and plans that were replaced, abandoned or never announced."""
        known = {state.window.sequence for state in self.ledger.windows.all()}
        for sequence in Records(self.roots, self.storage).windows():
            if sequence not in known:
                yield from self._abandoned(sequence)
        for state in filter(self._is_free, self.ledger.windows.all()):
            for plan_digest, items in self._free(state).items():
                # All or nothing: a replay would trust a message whose files were deleted.
                if plan_digest == state.plan_digest or all(
                    self._is_older(item.path, cutoff) for item in items
                ):
                    yield from items

    def _abandoned(self, sequence: int) -> Iterator[Garbage]:
        """Yield what was staged by the abandoned plans of a window that the ledger dropped."""
        for record in abandoned_plans(self.storage, self.roots.work, sequence):
            uri = layout.plan_root(self.roots.work, sequence, record.plan_digest)
            names = self.storage.list_files(uri)
            swept = [name for kind in _SWEPT for name in names if name.startswith(f"{kind}/")]
            for name in [*filter(layout.is_sealed_file, names), *swept]:
                yield self._garbage(f"{uri}/{name}", "of a window that was abandoned", sequence)

    def _is_free(self, state: WindowState) -> bool:
        """Return whether no run works on a window or will continue it.

        An open window is finished by the next load, whichever run left it.
        """
        sequence = state.window.sequence
        return state.sealed and (
            state.owner is None or self.ledger.windows.is_free(sequence, self._holder(state))
        )

    def _holder(self, state: WindowState) -> Holder:
        # Taking a window again records no time.
        timeout = self.config.execute.claim_timeout
        return Holder(process_owner(_SWEEPER), state.taken_at, timeout, self.life_of)

    def _free(self, state: WindowState) -> Mapping[str, Sequence[Garbage]]:
        """Return the files of each plan of a free window that are not needed, of any age."""
        needed = self._needed(state)
        free: dict[str, list[Garbage]] = {}
        for plan_digest, paths in self._swept_by_plan(state).items():
            in_effect = plan_digest == state.plan_digest
            reason = "of a plan that is not in effect"
            if in_effect:
                reason = "of an attempt that lost, or of rows that were read again since"
            free[plan_digest] = [
                self._garbage(path, reason, state.window.sequence)
                for path in paths
                if path not in needed
            ]
        return free

    def _swept_by_plan(self, state: WindowState) -> dict[str, list[str]]:
        """Return the deletable files of each plan of a window in some state, in their order.

        The file that announces a plan is kept if the ledger knows the announce, and so are the
        messages of the plan in effect.
        """
        root = layout.window_root(self.roots.work, state.window.sequence)
        found: dict[str, list[str]] = {}
        for plan_digest in self.storage.list_names(root):
            names = self.storage.list_files(f"{root}/{plan_digest}")
            kinds = _SWEPT[1:] if plan_digest == state.plan_digest else _SWEPT
            swept = [name for kind in kinds for name in names if name.startswith(f"{kind}/")]
            if not self.ledger.plans.was_announced(state.window.sequence, plan_digest):
                swept = [*filter(layout.is_sealed_file, names), *swept]
            if swept:
                found[plan_digest] = [f"{root}/{plan_digest}/{name}" for name in swept]
        return found

    def _needed(self, state: WindowState) -> set[str]:
        """Return a window's quarantine, and the staged files that a publication may still move."""
        needed: set[str] = set()
        if state.plan_digest is None:
            return needed
        known = self.ledger.known_partitions()
        replaced = {item.state.partition.path for item in known if _has_replaced(item, state)}
        root = layout.plan_root(self.roots.work, state.window.sequence, state.plan_digest)
        for name in self.storage.list_files(layout.messages_root(root)):
            if name.startswith("."):
                continue
            path = f"{layout.messages_root(root)}/{name}"
            staged = read_stored(self.storage, path, CommitMessage).staged
            # Rows that are set aside count again when a person or a threshold says so (PC-L07).
            counted = [part for part in staged.parts if part.partition.path not in replaced]
            needed |= {f"{root}/{part.staged}" for part in (*counted, *staged.quarantined)}
        late = f"{root}/{layout.LATE_QUARANTINE}"
        needed |= {f"{late}/{name}" for name in self.storage.list_files(late)}
        for begun in (item.begun for item in known if item.begun is not None):
            needed |= {f"{self.roots.work}/{file.staged}" for file in begun.publication.adds}
        return needed

    def _garbage(self, path: str, reason: str, window: int | None = None) -> Garbage:
        return Garbage(path, self.storage.length(path) or 0, reason, window)

    def _is_older(self, path: str, than: datetime) -> bool:
        changed = self.storage.modified(path)
        return changed is not None and changed < than


def _has_replaced(item: KnownPartition, state: WindowState) -> bool:
    """Return whether a revision stands that reset what a window brought to a partition."""
    kept = (*counting(item.contributions), *set_aside(item.contributions))
    counted = {str(found.window) for found in kept}
    return item.state.pending == "none" and str(state.window.sequence) not in counted
