"""Report the state of a pipeline and of each of its partitions, with the reason.

Changes nothing except the `why` that the ledger keeps for a waiting partition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.config import PipelineConfig
from tidegate.errors.commands import command
from tidegate.ledger.holder import Life
from tidegate.model.aside import Aside
from tidegate.model.counting import rows_pending, set_aside
from tidegate.model.file_sizes import FileSizes
from tidegate.model.ledger_rows import KnownPartition, state_name
from tidegate.model.publication import CommitPlan
from tidegate.model.report import PartitionExplanation, PartitionReport, PipelineReport
from tidegate.pipeline.state.passed_over import PassedOver
from tidegate.pipeline.state.plan_files import has_plan, read_plan
from tidegate.stage import layout
from tidegate.stage.stored import read_stored
from tidegate.target.content import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PublicationEntry, RevisionEntry, WindowState
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Verdict
    from tidegate.model.watermark import Evaluation
    from tidegate.pipeline.publish.evaluating import Evaluator
    from tidegate.pipeline.state.load_failure import LoadFailure
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


LATE_RULE = "late"
"""The rule that late rows in quarantine failed (PC-L06)."""
_MOST_NAMED = 50
"""More partitions than these are not typed in one command."""


@dataclass(frozen=True)
class Reporter:
    """Answers `status` and `explain` from the ledger and the work directory."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    evaluator: Evaluator
    failure: LoadFailure
    life_of: Callable[[str], Life]

    def status(self, now: datetime) -> PipelineReport | None:
        """Report on the pipeline; None if it never ran."""
        state = self.ledger.pipeline.find()
        if state is None:
            return None
        windows = self.ledger.windows.all()
        known = self.ledger.known_partitions()
        whys = self.evaluator.evaluate_pending(known, now)
        passing = PassedOver(self.config, windows)
        reports = [self._report(item, whys.get(item.state.partition), passing) for item in known]
        return PipelineReport(
            pipeline=replace(state, watermark=state.watermark_in(self.config.watermark_basis)),
            partitions=tuple(reports),
            windows=windows,
            notes=(*self._notes(windows), *self._passed_over(passing, reports)),
        )

    def file_sizes(self, small_below: int, target_size: int) -> tuple[FileSizes, ...]:
        """Count the files of every published partition, from its commit plan (PC-O38).

        Args:
            small_below: a file with fewer bytes is small.
            target_size: bytes of a file that small ones are joined to.

        Raises:
            StateFileLost, StateFileDamaged: a commit plan cannot be read.
        """
        found = []
        for newest in filter(None, (item.newest for item in self.ledger.known_partitions())):
            path = f"{self.roots.work}/{newest.commit_plan}"
            content = read_stored(self.storage, path, CommitPlan).publication.content
            lengths = [file.length for file in content]
            found.append(FileSizes.of(newest.partition, lengths, small_below, target_size))
        return tuple(found)

    def to_rebuild(self) -> tuple[Partition, ...]:
        """Return the partitions that passed over commits may have changed.

        Where they only removed rows, it is those that are to be published.
        """
        passing = PassedOver(self.config, self.ledger.windows.all())
        if passing.is_empty:
            return ()
        known = self.ledger.known_partitions()
        unknown = passing.unknown(item.state.partition for item in known)
        found = [(item.state, passing.of(item)) for item in known]
        # A row that moved is in one partition only if both of them are read again together.
        moving = set(unknown.values()) | {
            number
            for state, numbers in found
            for number in numbers
            if passing.brought(number, state.partition)
        }
        due = [
            state.partition
            for state, numbers in found
            if numbers and (state.pending != "none" or moving.intersection(numbers))
        ]
        return (*due, *unknown)

    def _passed_over(
        self, passing: PassedOver, reports: Sequence[PartitionReport]
    ) -> Iterator[str]:
        """Yield a sentence on the partitions that passed over commits may have changed."""
        unknown = passing.unknown(item.state.partition for item in reports)
        found = [item for item in reports if item.passed_over]
        if not found and not unknown:
            return
        telling = {each for item in found for each in item.passed_over} | set(unknown.values())
        partitions = [*(item.state.partition for item in found), *unknown]
        # All of them may be days that the source removed for good, more every day.
        shown = partitions if len(partitions) <= _MOST_NAMED else ["PARTITION"]
        again = command("rebuild", self.config.name, *shown)
        publishing = command("publish", self.config.name)
        yield (
            f"{'window' if len(telling) == 1 else 'windows'} {', '.join(map(str, sorted(telling)))}"
            f" passed over commits that changed rows: {len(partitions)} "
            f"{'partition' if len(partitions) == 1 else 'partitions'} may have rows that were "
            "removed, or lack rows that were added. To publish what the source has now instead, "
            f"run `{again}`, then `{publishing}`"
        )

    def explain(self, partition: Partition, now: datetime) -> PartitionExplanation:
        """Report on one partition.

        Raises:
            PartitionNotFound: no window ever touched it.
        """
        state = self.ledger.partitions.get(partition)
        evaluation = self.evaluator.evaluate(partition, now)
        pipeline = self.ledger.pipeline.find()
        step = pipeline.watermark_step if pipeline else None
        contributions = self.ledger.contributions.to(partition)
        quarantined = self._quarantines(contributions)
        revisions = self.ledger.publications.revisions(partition)
        known = KnownPartition(
            state=state,
            contributions=contributions,
            newest=revisions[-1] if revisions else None,
            begun=self.ledger.publications.unrecorded(partition),
            proposed=self.ledger.publications.proposed(partition),
            approved=self.ledger.publications.approved(partition),
        )
        return PartitionExplanation(
            report=self._report(
                known, evaluation, PassedOver(self.config, self.ledger.windows.all())
            ),
            evaluation=evaluation,
            contributions=contributions,
            proposed=_waiting(known),
            revisions=revisions,
            watermark=step.to_json() if step else None,
            quarantined=tuple(quarantined),
            quarantined_by={path: rules for path, rules in quarantined.items() if rules},
            load_failed=self.failure.said(),
            verdict=self._verdict(partition, known.newest),
        )

    def _verdict(self, partition: Partition, newest: RevisionEntry | None) -> Verdict | None:
        """Return the verdict of a revision."""
        entry = self.ledger.publications.find(partition, newest.digest) if newest else None
        return entry.verdict if entry else None

    def _report(
        self, known: KnownPartition, evaluation: Evaluation | None, passing: PassedOver
    ) -> PartitionReport:
        state, newest = known.state, known.newest
        proposed = _waiting(known)
        return PartitionReport(
            state=state,
            name=state_name(
                state.pending,
                state.revision,
                is_late=_has_new_window(known),
                is_missing=state.alarm is not None,
            ),
            why=evaluation if state.pending == "pending" else state.why,
            rows_pending=_rows_pending(known),
            windows=counted(newest.contributions, known.contributions) if newest else (),
            proposed_digest=proposed.publication.digest if proposed else None,
            passed_over=passing.of(known),
            rows_aside=_rows_aside(known.contributions),
            commit_begun=known.begun is not None,
        )

    def _notes(self, windows: Sequence[WindowState]) -> list[str]:
        failed = self.failure.said()
        notes = [f"the last load failed {failed}"] if failed else []
        for item in windows:
            if item.sealed:
                continue
            notes.append(f"window {item.window.sequence} {item.window.range} {self._held(item)}")
            notes += self._changed_since(item)
        return notes

    def _held(self, item: WindowState) -> str:
        """Return who works on an open window, or that nobody does."""
        if item.owner is None:
            return f"was given back by {item.window.run}: the next load goes on with it"
        if self.life_of(item.owner) is Life.GONE:
            return f"was left by {item.owner}, which has ended: the next load goes on with it"
        return f"is open in {item.owner}"

    def _says_the_same(self, planned: Mapping[str, Any]) -> bool:
        """Return whether a configuration in a plan, perhaps of another version, equals today's."""
        try:
            return PipelineConfig.from_resolved(planned).resolved() == self.config.resolved()
        except ValueError:
            return False

    def _changed_since(self, item: WindowState) -> list[str]:
        """Report a pipeline file that changed during a window, which continues with the old one."""
        sequence = item.window.sequence
        uri = self.ledger.plans.uri(sequence)
        if uri is None or not has_plan(self.storage, uri):
            return []
        if self._says_the_same(read_plan(self.storage, uri).config):
            return []
        return [
            f"the pipeline file changed after window {sequence} was planned; the run that works on "
            "it goes on with what was planned, one that takes it over plans it with the change"
        ]

    def _quarantines(self, contributions: Sequence[Contribution]) -> dict[str, dict[str, int]]:
        """Return directories of quarantined rows, with the rules and the rows that failed them."""
        found = {}
        for item in contributions:
            root = layout.plan_root(self.roots.work, item.window, item.plan_digest)
            quarantine = f"{root}/{layout.QUARANTINE}"
            names = self.storage.list_files(quarantine)
            if any(not name.startswith(f"{LATE_RULE}/") for name in names):
                found[quarantine] = self._rows_by_rule(item.window, root)
            if item.aside is Aside.LATE_REJECTED:
                found[layout.late_quarantine(root, item.partition)] = {LATE_RULE: item.rows}
        return found

    def _rows_by_rule(self, sequence: int, root: str) -> dict[str, int]:
        """Return how many rows of a window failed each rule that puts them aside.

        Loads of earlier versions counted no rows by rule. The plan tells what a rule did then.
        """
        summary = self.ledger.windows.get(sequence).summary
        if summary is None or not summary.rule_hits or not has_plan(self.storage, root):
            return {}
        rules = read_plan(self.storage, root).config["rows"]
        names = [rule["name"] for rule in rules if rule["on_failure"] == "quarantine"]
        return {name: rows for name in names if (rows := summary.rule_hits.get(name, 0))}


def _rows_aside(contributions: Sequence[Contribution]) -> dict[str, int] | None:
    """Return how many rows are set aside for each reason; None if there are none."""
    found: Counter[str] = Counter()
    for item in set_aside(contributions):
        if item.aside is not None:
            found[item.aside.value] += item.rows
    return dict(found) or None


def _has_new_window(known: KnownPartition) -> bool:
    """Return whether a window of new rows waits, not only a replay or rebuild of older ones.

    What is set aside until a person decides does not wait.
    """
    stood = known.newest.contributions if known.newest else {}
    return any(
        str(item.window) not in stood and not item.kind.replaces
        for item in known.contributions
        if item.aside is None or not item.aside.is_settled
    )


def _waiting(known: KnownPartition) -> PublicationEntry | None:
    """Return the proposal of a partition; one that would change nothing is left out."""
    return None if known.state.pending == "none" else known.proposed


def _rows_pending(known: KnownPartition) -> int:
    if known.state.pending == "none":
        return 0
    return rows_pending(known.contributions, known.newest.contributions if known.newest else {})
