"""Rewrite a pipeline's part of a ledger from work directory and target (design §4).

Every announce, commit, verdict and decision left a file with a number that the ledger had assigned.
Repeating them in the order of these numbers yields the ledger that was lost, except for claims and
for windows that were not announced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.restoring import fence_off, replace_rows
from tidegate.model.wire import pretty
from tidegate.pipeline.state.left import forget_ended
from tidegate.pipeline.state.work import (
    await_movers,
    check_identity,
    check_owner,
    owner_to_restore,
)
from tidegate.pipeline.upkeep.lost_announces import LostAnnounces
from tidegate.pipeline.upkeep.lost_plans import LostPlans
from tidegate.pipeline.upkeep.past import PastReader
from tidegate.pipeline.upkeep.repeating import Repetition
from tidegate.pipeline.upkeep.taken_back import taken_back
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger.restoring import Fenced
    from tidegate.model.ledger_rows import PartitionState, PublicationEntry
    from tidegate.model.partition import Partition
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.past import Past
    from tidegate.pipeline.upkeep.repeating import Restored
    from tidegate.pipeline.upkeep.taken_back import TakenBack
    from tidegate.storage import Storage

_MEMORY = "sqlite://"


@dataclass(frozen=True)
class Restorer:
    """Restores one pipeline's rows in a ledger, whether it knows the pipeline or not.

    Runs on: one process; others that work on the pipeline lose their fences. Called: by a person.
    Failure: the rows are replaced in one transaction; a call that dies before it has changed only
    fences. May be repeated at any time.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch

    def restore(self) -> Restored:
        """Restore the ledger.

        Raises:
            WorkUnknown: there is no work directory of this pipeline.
            TargetOwned, WorkUnfit, WorkOwned: target and work directory belong to another pipeline.
            WorkGone: the work directory has nothing of what the ledger in use knows.
            PartitionBusy: a process is moving files of a partition (Transient).
            StateFileLost: a window that was announced is in no file; nothing was changed.
            StateFileDamaged: a record cannot be read; nothing was changed.
            PipelineChanged: the newest announce was made by a different pipeline file; if there is
                no announce, the ledger in use has registered a different one.
            LedgerMoved: another run recorded something in the meantime (Transient).
            TargetRegistered: the ledger in use has the target registered for another pipeline,
                which has not ended.
        """
        owner = owner_to_restore(self.roots, self.ledger, self.storage)
        if self._is_its_own(owner.ledger):
            check_owner(self.roots, self.ledger, self.storage)
        reader = self._reader(owner.ledger)
        # A restoration that is refused takes nobody's fence.
        if not reader.read().announces.files:
            check_identity(self.config, self.roots, self.ledger, self.storage)
        before = fence_off(self.ledger)
        await_movers(self.roots, self.storage)
        made = Repetition(
            self.config,
            self.roots,
            Ledger(open_engine(_MEMORY), self.config.name),
            self.storage,
            self.contents,
        )
        past = reader.read()
        for plan in past.lost_plans:
            path = f"{self.roots.work}/{plan.path}"
            self.storage.write_once(path, pretty(plan.plan.to_json()))
        for item in past.lost_announces:
            path = layout.sealed_file(item.plan_uri)
            self.storage.write_once(path, pretty(item.sealed.to_json()))
        restored = made.restore(owner.ledger, past)
        states = [] if past.overtaken else self.ledger.partitions.all()
        gone = tuple(self._taken_back(made.ledger, past, states))
        told = {*_decided_since(past, before), *(item.partition for item in gone)}
        undecided = tuple(self._undecided(made.ledger, told, states))
        restored = replace(restored, undecided=undecided, taken_back=gone)
        if before is not None:
            made.keep(before.state)
        forget_ended(self.roots, self.ledger, self.storage)
        replace_rows(self.ledger, made.ledger, before, past.newest_number)
        return restored

    def _reader(self, ledger_id: str) -> PastReader:
        is_its_own = self._is_its_own(ledger_id)
        plans = LostPlans(
            self.config, self.roots, self.ledger, self.storage, self.contents, self.watch
        )
        announces = LostAnnounces(self.roots, self.ledger, self.storage)
        return PastReader(
            self.roots,
            self.ledger,
            self.storage,
            self.watch,
            plans.told if is_its_own else tuple,
            announces.told if is_its_own else tuple,
        )

    def _is_its_own(self, ledger_id: str) -> bool:
        """Return whether the ledger in use belongs to the target and knows its content."""
        state = self.ledger.pipeline.find()
        return state is not None and state.ledger_id == ledger_id

    def _taken_back(
        self, made: Ledger, past: Past, states: Sequence[PartitionState]
    ) -> Iterator[TakenBack]:
        """Yield the erasures and undos of which ledger or work directory know, and not the target.

        Args:
            made: the restored ledger.
            past: what the files say.
            states: the partitions of the ledger in use.
        """
        known = [(item.plan.publication, item.plan.approval) for item in past.plans]
        for state in states:
            for entry in self.ledger.publications.revisions(state.partition):
                committed = self.ledger.publications.find(state.partition, entry.digest)
                known += [(committed.publication, committed.approval)] if committed else []
        stands = {}
        for state in made.partitions.all():
            begun = made.publications.unrecorded(state.partition)
            stands[state.partition.path] = begun.publication.revision if begun else state.revision
        return taken_back(known, {path: revision for path, revision in stands.items() if revision})

    def _undecided(
        self, made: Ledger, told: Collection[Partition], states: Sequence[PartitionState]
    ) -> Iterator[str]:
        """Yield the partitions with a decision in the ledger in use that is not restored.

        Args:
            made: the restored ledger.
            told: those of which a file tells what was set aside and released since, or which are
                named for another reason.
            states: the partitions of the ledger in use.
        """
        for state in states:
            known, now = self._decided(state), made.partitions.find(state.partition)
            if known is not None:
                found = made.publications.find(state.partition, known.publication.digest)
                is_told = found is not None and _is_decided(found)
                # Files that are ahead of the ledger are newer than its decision.
                has_passed = now is not None and now.revision >= known.publication.revision
                if not is_told and not has_passed:
                    yield str(state.partition)
                    continue
            is_behind = now is not None and now.revision > state.revision
            if not is_behind and state.partition not in told and self._differs(state, made):
                yield str(state.partition)

    def _differs(self, state: PartitionState, made: Ledger) -> bool:
        """Return whether other rows of a partition are set aside than in the ledger in use."""
        known = self.ledger.contributions.to(state.partition)
        now = {item.window: item for item in made.contributions.to(state.partition)}
        return any(
            item.window in now
            and item.plan_digest == now[item.window].plan_digest
            and item.aside is not now[item.window].aside
            for item in known
        )

    def _decided(self, state: PartitionState) -> PublicationEntry | None:
        """Return the newest publication of a partition on which a person decided."""
        waiting = self.ledger.publications.proposed(state.partition)
        if waiting is not None and _is_decided(waiting):
            return waiting
        revisions = self.ledger.publications.revisions(state.partition)[-1:]
        stood = [self.ledger.publications.find(state.partition, item.digest) for item in revisions]
        return next((item for item in stood if item is not None and _is_decided(item)), None)


def _is_decided(entry: PublicationEntry) -> bool:
    """Return whether a person said something on what the gate or the trigger did not let pass."""
    said = entry.approval
    if entry.publication.undone is not None or (said is not None and said.erases is not None):
        # Nothing waits for it: a person made the revision itself.
        return False
    return entry.approval is not None or entry.override is not None


def _decided_since(past: Past, before: Fenced | None) -> Collection[Partition]:
    """Return the partitions with a decision that is newer than the ledger in use."""
    known = 0 if before is None else before.state.next_number
    return {item.partition for item in past.decisions if item.number >= known}
