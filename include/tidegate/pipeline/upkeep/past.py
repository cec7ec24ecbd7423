"""Read a pipeline's past from its files, and refuse one with missing parts.

Changes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import AnnounceOutdated, LedgerBehind, StateFileDamaged, StateFileLost
from tidegate.errors.commands import command
from tidegate.pipeline.state.abandoned import all_abandoned_plans
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.pipeline.state.records import Records
from tidegate.pipeline.upkeep.announces import tell, turn_of
from tidegate.stage import layout
from tidegate.stage.stored import lost_commit_plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.abandoned import AbandonedPlan
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import DecisionRecord, GateRecord, Publication
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.state.records import CommitFile, SealedFile
    from tidegate.pipeline.upkeep.announces import Announces
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Past:
    """The announces, commits, verdicts and decisions of a pipeline."""

    announces: Announces
    plans: Sequence[CommitFile]
    verdicts: Sequence[GateRecord]
    decisions: Sequence[DecisionRecord]
    lost_plans: Sequence[CommitFile]
    """The plans that the work directory lost and that the ledger in use still has."""
    lost_announces: Sequence[SealedFile]
    """The same for announces."""
    abandoned: Sequence[AbandonedPlan]
    """The plans of windows that were given up: their numbers are used up."""
    newest_number: int
    """The greatest number of a record, including announces that never took effect; 0 if none."""
    overtaken: bool
    """Whether the ledger in use is not believed: it is of before a reset, or was replaced."""


@dataclass(frozen=True)
class PastReader:
    """Reads the past of one pipeline."""

    roots: Roots
    ledger: Ledger
    """The ledger in use: the files have to match it, and it helps if they are incomplete."""
    storage: Storage
    watch: Watch
    lost_plans: Callable[[], Sequence[CommitFile]]
    """Returns the commit plans that the ledger in use knows and the work directory lost."""
    lost_announces: Callable[[], Sequence[SealedFile]]
    """The same for announces."""
    believes: bool = True
    """Whether what the ledger in use knows has to be in the files."""

    def read(self) -> Past:
        """Read all records.

        A ledger of before a reset, or one that was used on after another one was restored, is not
        believed: nothing of what it alone knows is in effect.

        Raises:
            StateFileLost: a window that was announced is in no file, or has no plan; a marker names
                a commit that has no plan.
            StateFileDamaged: a record cannot be read.
        """
        # In this order: what one of them knows is in those that are read after it.
        windows, records = self._announced(), Records(self.roots, self.storage)
        known = plans_in_effect(windows)
        lost = self.lost_plans() if self.believes else ()
        lost_announces = self.lost_announces() if self.believes else ()
        plans = [*records.commits(), *lost]
        sealed = [*lost_announces, *self._sealed(records, known)]
        verdicts, decisions = list(records.verdicts()), list(records.decisions())
        abandoned = list(all_abandoned_plans(self.storage, self.roots.work))
        announces = tell(
            item
            for item in sealed
            if not self._came_too_late(item) and not self._was_replaced(item, sealed)
        )
        if announces.overtook(windows):
            return replace(self, believes=False).read()
        too_late = {
            item.sealed.window.sequence: item for item in sealed if self._came_too_late(item)
        }
        self._check_whole(announces, plans, known, too_late)
        self._check_plans(announces, known)
        self._check_commits(announces, plans, lost)
        numbers = (
            *(item.sealed.number for item in sealed),
            *(item.plan.number for item in plans),
            *(item.number for item in verdicts),
            *(item.number for item in decisions),
            *(item.number for item in abandoned),
        )
        newest = max(numbers, default=0)
        return Past(
            announces=announces,
            plans=plans,
            verdicts=verdicts,
            decisions=decisions,
            lost_plans=lost,
            lost_announces=lost_announces,
            abandoned=abandoned,
            newest_number=newest,
            overtaken=not self.believes,
        )

    def _announced(self) -> Sequence[WindowState]:
        return announced(self.ledger) if self.believes else ()

    def _sealed(self, records: Records, known: Mapping[int, str]) -> Iterator[SealedFile]:
        for sequence in records.windows():
            with self._naming(sequence, known):
                yield from records.sealed(sequence)

    def _came_too_late(self, item: SealedFile) -> bool:
        """Return whether a file was written after a restoration had read all files.

        Its process had lost its fence by then: its number is below all fences.
        """
        state = self.ledger.pipeline.find()
        return (
            state is not None
            and item.sealed.number < state.first_fence
            and not self.ledger.plans.was_announced(
                item.sealed.window.sequence, item.sealed.plan_digest
            )
        )

    def _was_replaced(self, item: SealedFile, sealed: Sequence[SealedFile]) -> bool:
        """Return whether an announce lost its plan and was replaced by a replay."""
        sequence, turn = item.sealed.window.sequence, turn_of(item)
        return any(
            each.sealed.window.sequence == sequence and turn_of(each) > turn for each in sealed
        ) and not self.storage.exists(layout.plan_file(item.plan_uri))

    def _check_plans(self, announces: Announces, known: Mapping[int, str]) -> None:
        for item in announces.files:
            with self._naming(item.sealed.window.sequence, known):
                read_plan(self.storage, item.plan_uri)

    def _check_commits(
        self, announces: Announces, plans: Sequence[CommitFile], lost: Sequence[CommitFile]
    ) -> None:
        """Compare the marker of each partition, which names a commit, with the newest plan."""
        told = {item.path: item.plan.publication for item in lost}
        known = {item.partition for file in announces.files for item in file.sealed.contributions}
        known |= {item.plan.publication.partition for item in plans}
        known |= {state.partition for state in self.ledger.partitions.all()}
        without: dict[str, list[str]] = {}
        for partition in sorted(known, key=lambda item: item.path):
            # The marker first: it is written after the plan.
            marker = self.watch.standing_marker(partition)
            path = marker and self._lost_plan(partition, marker["revision"], told)
            if path:
                without[path] = self.watch.own_markers(partition)
        if without:
            raise lost_commit_plans(without)

    def _lost_plan(
        self, partition: Partition, revision: int, told: Mapping[str, Publication]
    ) -> str | None:
        """Return the plan of the commit of the current marker, unless it is there or reconstructed.

        A plan that was written since the others were read is accepted: its writer has lost its
        fence, or recorded something, which is noticed.
        """
        work = self.roots.work
        recorded = self.ledger.publications.revisions(partition) if self.believes else ()
        if recorded and recorded[-1].revision == revision:
            path = f"{work}/{recorded[-1].commit_plan}"
            if recorded[-1].commit_plan not in told and not self.storage.exists(path):
                return path
        newest = Records(self.roots, self.storage).newest_commit(partition)
        known = [item.revision for item in told.values() if item.partition == partition]
        if max([*known, newest.publication.revision if newest else 0]) < revision:
            return layout.publication_file(work, partition, revision, "*")
        return None

    @contextmanager
    def _naming(self, sequence: int, known: Mapping[int, str]) -> Iterator[None]:
        """Name the remedy if a file is lost of a window that the ledger in use does not know."""
        try:
            yield
        except (StateFileLost, StateFileDamaged) as broken:
            if self._may_be_replayed(sequence, known):
                raise
            is_lost = isinstance(broken, StateFileLost)
            remedy = self._anew(sequence) if is_lost else f"let {self._rebuild} find what stands"
            raise type(broken)(**{**broken.values, "remedy": remedy}) from broken

    def _check_whole(
        self,
        announces: Announces,
        plans: Sequence[CommitFile],
        known: Mapping[int, str],
        too_late: Mapping[int, SealedFile],
    ) -> None:
        lacking = announces.lacks(known, plans)
        for sequence in (announces.missing, lacking[0] if lacking else None):
            if sequence is not None and sequence in too_late:
                path = layout.sealed_file(too_late[sequence].plan_uri)
                raise AnnounceOutdated(pipeline=self.ledger.name, path=path, window=sequence)
        if announces.missing is not None:
            digest = known.get(announces.missing)
            self._refuse(announces.missing, digest, known)
        if lacking is not None:
            self._refuse(*lacking, known)

    def _refuse(self, sequence: int, digest: str | None, known: Mapping[int, str]) -> None:
        if self._may_be_replayed(sequence, known):
            remedy = f"{_written_by_replay(self.ledger, sequence)}, then go on with {self._rebuild}"
        else:
            remedy = self._anew(sequence)
        raise StateFileLost(path=_sealed_path(self.roots, sequence, digest), remedy=remedy)

    def _may_be_replayed(self, sequence: int, known: Mapping[int, str]) -> bool:
        """Return whether the ledger in use allows a window to be read again."""
        try:
            self.watch.check_newest_window()
        except LedgerBehind:
            return False
        except StateFileDamaged:
            pass
        return sequence in known

    def _is_behind(self) -> bool:
        """Return whether a reset would refuse the ledger in use."""
        try:
            self.watch.check_work()
        except LedgerBehind:
            return True
        except (StateFileDamaged, StateFileLost):
            pass
        return False

    def _anew(self, sequence: int) -> str:
        nothing = f"nothing else tells what window {sequence} brought, and nothing was restored"
        if self.ledger.pipeline.find() is None:
            return f"start a new pipeline with a new name and a new target: {nothing}"
        reset = command("reset", self.ledger.name, "--drop-target")
        anew = f"delete what was published and begin again with `{reset}`: {nothing}"
        if self._is_behind():
            # A reset compares what the ledger knows only with a directory of this ledger.
            return f"move {layout.owner_file(self.roots.work)} away, then {anew}"
        return anew

    @property
    def _rebuild(self) -> str:
        return f"`{command('fsck', self.ledger.name, '--rebuild')}`"


def announced(ledger: Ledger) -> Sequence[WindowState]:
    """Return the windows that a ledger knows as announced."""
    return [state for state in ledger.windows.all() if state.sealed]


def plans_in_effect(windows: Sequence[WindowState]) -> dict[int, str]:
    """Return the plan in effect of each window that is announced."""
    return {state.window.sequence: str(state.plan_digest) for state in windows}


def lost_announce(
    roots: Roots, ledger: Ledger, sequence: int, digest: str, *, is_told: bool
) -> StateFileLost:
    """Return the error for a window that the ledger knows as announced and that is in no file.

    Args:
        roots: the directories of the pipeline.
        ledger: the one in use.
        sequence: the sequence of the window.
        digest: the digest of its plan in effect.
        is_told: whether the window can be reconstructed from ledger, plan and messages.
    """
    remedy = _written_by_replay(ledger, sequence)
    if is_told:
        remedy = f"write it anew with `{command('fsck', ledger.name, '--rebuild')}`"
    return StateFileLost(path=_sealed_path(roots, sequence, digest), remedy=remedy)


def _written_by_replay(ledger: Ledger, sequence: int) -> str:
    return f"write it anew with `{command('replay', ledger.name, sequence)}`"


def _sealed_path(roots: Roots, sequence: int, digest: str | None) -> str:
    """Return the path of the file of a window's announce, as far as its plan is known."""
    return layout.sealed_file(layout.plan_root(roots.work, sequence, digest or "*"))
