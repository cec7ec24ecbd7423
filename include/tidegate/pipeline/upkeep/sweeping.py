"""Find files that are no longer needed, and delete them (PC-F40, PC-O69).

They are in the work directory, and in directories of former revisions.
"""

from __future__ import annotations

import contextlib
import itertools
import posixpath
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate.errors import PartitionBusy, WindowOpen
from tidegate.ledger.holder import Holder
from tidegate.metastore.agreement import same_place
from tidegate.model.message import CommitMessage
from tidegate.model.publication import CommitPlan
from tidegate.model.revision_folder import revision_of
from tidegate.pipeline.state.abandoned import abandoned_plans
from tidegate.pipeline.state.holders import process_owner
from tidegate.pipeline.state.records import Records
from tidegate.pipeline.state.sent import sent_parts
from tidegate.pipeline.state.work import check_identity, check_owner
from tidegate.pipeline.upkeep.needed import Needs
from tidegate.stage import layout
from tidegate.stage.stored import read_stored
from tidegate.storage import normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import KnownPartition, RevisionEntry, WindowState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import PublishedFile
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.former_revisions import FormerRevisions
    from tidegate.storage import Storage, Unfinished

    _Sent = Mapping[str, Sequence[Unfinished]]
    """Digest of a plan → what was sent to the target, and not completed."""

_SWEPT = (layout.MESSAGES, layout.EXCHANGE, layout.QUARANTINE, layout.STAGED)
"""In this order, after the file that announces a plan: an interrupted sweep leaves no file that
refers to deleted ones."""
_SWEEPER = "gc"
_WRITING = timedelta(hours=1)
"""A younger temporary file may belong to a running process."""
_UPLOADING = "being uploaded when its process died"
_ABANDONED = "of a window that was abandoned"
_PUT_ASIDE = "rows that a rule put aside, kept as long as `retention.quarantine` says"


@dataclass(frozen=True)
class Garbage:
    """A file that may be deleted, or the directory of a revision."""

    path: str
    bytes: int
    reason: str
    window: int | None = None
    """The window of its plan: checked again before the file is deleted."""
    upload: str | None = None
    """The id of an upload of the file; None: there is a file."""
    begun: datetime | None = None
    """When this upload was begun."""


@dataclass(frozen=True)
class Sweeper:
    """Deletes garbage in one pipeline's work directory, and directories of former revisions.

    Runs on: one process. Called: by a person or a timer.
    Failure: an interrupted sweep leaves some garbage, which the next one deletes.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    watch: Watch
    former: FormerRevisions
    listed: Callable[[Partition], str | None]
    """Returns the directory to which a metastore sends the readers of a partition."""
    life_of: Callable[[str], Life]
    """Returns the state of the run that holds a window."""

    def garbage(self, now: datetime, older_than: timedelta) -> tuple[Garbage, ...]:
        """Return files that no window, publication or hold needs and that are old enough (PC-F40).

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost: the files belong to
                another pipeline.
            LedgerBehind: the ledger does not know which files are needed.
            MetastoreSilent, MetastoreRefused: a directory may be one that readers are sent to
                (Transient).
        """
        check_identity(self.config, self.roots, self.ledger, self.storage)
        check_owner(self.roots, self.ledger, self.storage)
        self.watch.check_all_windows()
        cutoff = now - older_than
        young = min(cutoff, now - _WRITING)
        kept_for = self.config.retention.quarantine
        put_aside = now - kept_for if kept_for is not None else cutoff
        sent = self._sent()
        return (
            *self._replaced(cutoff),
            *self._retired(cutoff),
            *(item for item in self._assembled() if self._is_older(item.path, young)),
            *(
                item
                for item in self._left_over(cutoff, sent)
                if self._is_old(item, put_aside if item.reason == _PUT_ASIDE else cutoff)
            ),
            *(item for item in self._temporary() if self._is_older(item.path, young)),
            *(
                _of_upload(found)
                for found in (*self.storage.unfinished(self.roots.work), *self._unknown(sent))
                if found.begun < young
            ),
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
        """Leave out files that a proposal has found made since, or makes a revision of."""
        units, retired = (f"{self.roots.work}/{it}/" for it in (layout.UNITS, layout.RETIRED))
        kept: set[str] = set()
        if any(item.path.startswith(units) for item in garbage):
            free = {item.path for item in self._assembled()}
            made = {item.path for item in garbage if item.path.startswith(units)}
            kept |= made - free
        if not self.roots.layout.is_shared:
            apart = {item.path for item in garbage if revision_of(item.path) is not None}
            kept |= apart - {folder for _, folder in self._former()} if apart else apart
        if any(item.path.startswith(retired) for item in garbage):
            kept = kept.union(*map(self._ingredients, self.ledger.known_partitions()))
        return [item for item in garbage if item.path not in kept]

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
                abandoned = self._abandoned(sequence, self._sent())
                return self._delete(_still(garbage, abandoned))
            if not self._is_free(state):
                return ()
            if state.owner is not None:
                state = self._taken(state)
            # Before what is needed is read: it may be more meanwhile, and is not given up then.
            sent = self._sent()
            found = self._free(state, self._needs(), sent).values()
            deleted = self._delete(_still(garbage, itertools.chain.from_iterable(found)))
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
        files = [item for item in garbage if item.upload is None]
        for folder, items in itertools.groupby(files, lambda item: posixpath.dirname(item.path)):
            names = [posixpath.basename(item.path) for item in items]
            for name in names:
                if revision_of(f"{folder}/{name}") is not None:
                    self.former.remove(f"{folder}/{name}")
                else:
                    self.storage.delete(f"{folder}/{name}")
            if posixpath.basename(folder) == layout.MESSAGES or any(
                map(layout.is_sealed_file, names)
            ):
                # A power failure must not bring back a file that refers to deleted ones.
                self.storage.sync(folder)
        # After the messages that name them.
        for item in garbage:
            if item.upload is not None:
                self.storage.give_up(item.path, item.upload)
        return garbage

    def _replaced(self, cutoff: datetime) -> Iterator[Garbage]:
        """Yield the directories of revisions that later ones replaced long enough ago."""
        for following, folder in self._former():
            if self._replaced_at(following) < cutoff:
                names = self.storage.list_names(folder)
                size = sum(self.storage.length(f"{folder}/{name}") or 0 for name in names)
                yield Garbage(folder, size, "directory of a revision that a later one replaced")

    def _former(self) -> Iterator[tuple[RevisionEntry, str]]:
        """Yield the directories to which no reader is sent, each after what replaced it."""
        for state in self.ledger.partitions.all():
            oldest_kept = state.revision - self.config.target.kept_directories + 1
            found = [
                (following, folder)
                for made, following, folder in self.former.of(state.partition)
                if made.revision < oldest_kept
            ]
            listed = self.listed(state.partition) if found else None
            for following, folder in found:
                if listed is None or not same_place(listed, folder):
                    yield following, folder

    def _retired(self, cutoff: datetime) -> Iterator[Garbage]:
        """Yield files that a revision replaced long enough ago, and that no kept revision has.

        A reader may have opened the old revision just before, however old its files are. What a
        revision removed, the one before it has; whatever is kept is one of the newest.
        """
        for known in self.ledger.known_partitions():
            partition = known.state.partition
            folder = layout.retired_root(self.roots.work, partition)
            if not self.storage.exists(folder):
                continue
            oldest_kept = known.state.revision - self.config.retention.revisions + 1
            needed = self._ingredients(known)
            for made in self.ledger.publications.revisions(partition):
                if made.revision <= oldest_kept and self._replaced_at(made) < cutoff:
                    for name in self.storage.list_files(f"{folder}/{made.revision}"):
                        path = f"{folder}/{made.revision}/{name}"
                        if path not in needed:
                            yield self._garbage(path, "replaced by a later revision")

    def _ingredients(self, known: KnownPartition) -> set[str]:
        """Return the files that a joined file of a partition is taken apart to (design §4a)."""
        waiting = [entry for entry in (known.proposed, known.begun) if entry is not None]
        coming = [file for entry in waiting for file in entry.publication.adds]
        standing: Sequence[PublishedFile] = ()
        if known.newest is not None:
            path = f"{self.roots.work}/{known.newest.commit_plan}"
            standing = read_stored(self.storage, path, CommitPlan).publication.content
        parts = [part for file in (*coming, *standing) for part in file.made_of]
        return {normal(f"{self.roots.work}/{item.staged}") for item in (*coming, *parts)}

    def _assembled(self) -> Iterator[Garbage]:
        """Yield files that were assembled for revisions that nobody will commit."""
        root = self.roots.work
        for known in self.ledger.known_partitions():
            if known.state.owner is not None:
                # Somebody may be assembling files right now, however long that takes.
                continue
            waiting = (known.proposed, known.begun)
            needed = {
                normal(f"{root}/{file.staged}")
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

    def _left_over(self, cutoff: datetime, sent: _Sent) -> Iterator[Garbage]:
        """Yield attempts that lost, and plans that were replaced, abandoned or never announced."""
        windows = self.ledger.windows.all()
        known = {state.window.sequence for state in windows}
        for sequence in Records(self.roots, self.storage).windows():
            if sequence not in known:
                yield from self._abandoned(sequence, sent)
        needs = self._needs()
        for state in filter(self._is_free, windows):
            for plan_digest, items in self._free(state, needs, sent).items():
                # All or nothing: a replay would trust a message whose files were deleted.
                if plan_digest == state.plan_digest or all(
                    self._is_old(item, cutoff) for item in items
                ):
                    yield from items

    def _abandoned(self, sequence: int, sent: _Sent) -> Iterator[Garbage]:
        """Yield what was staged by the abandoned plans of a window that the ledger dropped."""
        for record in abandoned_plans(self.storage, self.roots.work, sequence):
            uri = layout.plan_root(self.roots.work, sequence, record.plan_digest)
            names = self.storage.list_files(uri)
            swept = [name for kind in _SWEPT for name in names if name.startswith(f"{kind}/")]
            for name in [*filter(layout.is_sealed_file, names), *swept]:
                yield self._garbage(f"{uri}/{name}", _ABANDONED, sequence)
            for it in sent.get(record.plan_digest, ()):
                yield replace(_of_upload(it), reason=_ABANDONED, window=sequence)

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

    def _needs(self) -> Needs:
        return Needs.of(self.ledger.known_partitions())

    def _free(
        self, state: WindowState, needs: Needs, sent: _Sent
    ) -> Mapping[str, Sequence[Garbage]]:
        """Return the files of each plan of a free window that are not needed, of any age."""
        needed, put_aside, wanted = self._needed(state, needs)
        free: dict[str, list[Garbage]] = {}
        for plan_digest, paths in self._swept_by_plan(state).items():
            in_effect = plan_digest == state.plan_digest
            reason = "of a plan that is not in effect"
            if in_effect:
                reason = "of an attempt that lost, or of rows that were read again since"
            free[plan_digest] = [
                self._garbage(
                    path, _PUT_ASIDE if path in put_aside else reason, state.window.sequence
                )
                for path in paths
                if path not in needed
            ]
            free[plan_digest] += [
                replace(_of_upload(it), reason=reason, window=state.window.sequence)
                for it in sent.get(plan_digest, ())
                if (it.path, it.id) not in wanted
            ]
        return free

    def _sent(self) -> _Sent:
        """Return what was sent to the target and not completed, by the digest of its plan."""
        found: dict[str, list[Unfinished]] = {}
        for it in sent_parts(self.storage, self.roots):
            found.setdefault(layout.digest_of_part(it.path) or "", []).append(it)
        return found

    def _unknown(self, sent: _Sent) -> Iterator[Unfinished]:
        """Yield what was sent by plans that are in no window, such as those of a lost ledger."""
        known = Records(self.roots, self.storage).plans() if sent else {}
        for plan_digest in sent.keys() - known.keys():
            yield from sent[plan_digest]

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
            found[plan_digest] = [f"{root}/{plan_digest}/{name}" for name in swept]
        return found

    def _needed(
        self, state: WindowState, needs: Needs
    ) -> tuple[set[str], set[str], set[tuple[str, str]]]:
        """Return which files of a window have to stay, and which are rows that a rule put aside.

        The latter are kept for as long as they may be, and while somebody may decide on them.
        The uploads that have to stay are the third.
        """
        needed = {f"{self.roots.work}/{staged}" for staged in needs.moving}
        put_aside = set[str]()
        wanted = {(upload.path, upload.id) for upload in needs.completed}
        if state.plan_digest is None:
            return needed, put_aside, wanted
        sequence = state.window.sequence
        ends = self.config.retention.quarantine is not None and sequence not in needs.waiting
        root = layout.plan_root(self.roots.work, sequence, state.plan_digest)
        for name in self.storage.list_files(layout.messages_root(root)):
            if name.startswith("."):
                continue
            path = f"{layout.messages_root(root)}/{name}"
            staged = read_stored(self.storage, path, CommitMessage).staged
            parts = needs.parts(sequence, staged)
            needed |= {f"{root}/{part.staged}" for part in parts}
            wanted |= {(it.upload.path, it.upload.id) for it in parts if it.upload is not None}
            aside = {f"{root}/{part.staged}" for part in staged.quarantined}
            if ends:
                put_aside |= aside
            else:
                needed |= aside
        # Rows that came too late are kept for whoever looks for them (PC-L06).
        late = f"{root}/{layout.LATE_QUARANTINE}"
        needed |= {f"{late}/{name}" for name in self.storage.list_files(late)}
        return needed, put_aside, wanted

    def _garbage(self, path: str, reason: str, window: int | None = None) -> Garbage:
        return Garbage(path, self.storage.length(path) or 0, reason, window)

    def _is_old(self, item: Garbage, than: datetime) -> bool:
        return self._is_older(item.path, than) if item.begun is None else item.begun < than

    def _is_older(self, path: str, than: datetime) -> bool:
        changed = self.storage.modified(path)
        return changed is not None and changed < than


def _still(garbage: Sequence[Garbage], found: Iterable[Garbage]) -> Sequence[Garbage]:
    """Return what is garbage still."""
    free = {(item.path, item.upload) for item in found}
    return [item for item in garbage if (item.path, item.upload) in free]


def _of_upload(found: Unfinished) -> Garbage:
    return Garbage(found.path, 0, _UPLOADING, upload=found.id, begun=found.begun)
