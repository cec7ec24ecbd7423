"""Compare table, markers and ledger, and name the remedy for each difference (PC-F41).

Repairs nothing.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    FormatUnknown,
    LedgerBehind,
    PlacesMoved,
    PlacesOverlap,
    StateFileDamaged,
    StateFileLost,
    StorageDenied,
    TidegateError,
    TransientError,
)
from tidegate.errors.commands import command, naming
from tidegate.model.finding import Finding, FindingKind
from tidegate.pipeline.state.abandoned import has_begun
from tidegate.pipeline.state.erasures import erasures, unfinished_erasures
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.pipeline.state.records import Records
from tidegate.pipeline.state.work import check_identity, check_owner_or_move, check_tables
from tidegate.pipeline.upkeep.fsck.partitions import PartitionFindings
from tidegate.pipeline.upkeep.past import announced, lost_announce, plans_in_effect
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.came_back import CameBack
    from tidegate.pipeline.upkeep.forgotten import Forgotten
    from tidegate.pipeline.upkeep.fsck.strays import Strays
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Findings:
    """Inspects what one pipeline published. Changes nothing."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch
    forgotten: Forgotten
    strays: Strays
    came_back: CameBack
    missing: Callable[[Instant, Instant | None], Iterator[TidegateError]]
    """Yields an error for each retained source file that is missing, as `Source.missing`."""
    differences: Callable[[Partition], tuple[str, ...]] | None
    """Returns how the lists that policies keep differ from what stands; None: none keeps one."""
    reads_content: bool = True
    """Whether the bytes of published files are compared, not only their lengths."""

    def all(self) -> Iterator[Finding]:
        """Yield each difference between files, markers and ledger once, with its remedy."""
        told = set()
        for finding in self._all():
            if finding.text not in told:
                told.add(finding.text)
                yield finding

    def _all(self) -> Iterator[Finding]:
        try:
            check_identity(self.config, self.roots, self.ledger, self.storage)
        except TidegateError as refused:
            yield self._refused(refused)
        try:
            moved = check_owner_or_move(self.roots, self.ledger, self.storage)
        except TidegateError as refused:
            # The knowledge of another ledger does not apply to these files.
            yield self._refused(refused)
            return
        if moved:
            # The ledger still names the files where they were.
            yield self._refused(PlacesMoved(pipeline=self.config.name, target=self.roots.target))
            return
        # A ledger that is behind has old files, and remedies that rest on it are refused.
        behind = tuple(self._behind())
        forgotten = None if behind else self.forgotten.find()
        if forgotten is not None:
            # Without the window no other remedy succeeds.
            yield self._refused(forgotten)
            return
        yield from behind or self._of_all_files()

    def _refused(self, refused: TidegateError, where: str | None = None) -> Finding:
        place = self.roots.target if where is None else where
        return Finding(FindingKind.REFUSED, place, str(refused), refused.code)

    def _behind(self) -> Iterator[Finding]:
        """Yield what the files have and the ledger lacks, as far as they can be read."""
        with contextlib.suppress(StateFileDamaged, FormatUnknown):
            for text in self.watch.findings():
                yield Finding(FindingKind.REFUSED, self.roots.work, text, LedgerBehind.__name__)

    def _of_erasures(self) -> Iterator[Finding]:
        erasures(self.storage, self.roots.work)
        numbers = unfinished_erasures(self.storage, self.roots.work)
        if numbers:
            place = layout.erasure_file(self.roots.work, numbers[0])
            text = (
                f"{place}: expected a report that its rows are gone, found none. Go on with "
                f"`{command('erase', self.config.name, '--again')}`."
            )
            yield Finding(FindingKind.ERASURE_UNFINISHED, place, text)

    def _of_all_files(self) -> Iterator[Finding]:
        yield from self._of_source()
        yield from self._of_announces()
        yield from self._readable(self._of_erasures)
        yield from self._readable(self._of_open_window)
        listed = {OWNER_FILE}
        for state in self.ledger.partitions.all():
            yield from self._readable(functools.partial(self._of_state, state, listed))
        yield from self._readable(lambda: self._of_strays(listed))
        yield from self._of_lists()

    @functools.cached_property
    def _partitions(self) -> PartitionFindings:
        return PartitionFindings(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self.contents,
            watch=self.watch,
            ways_out=self.strays.ways_out,
            reads_content=self.reads_content,
        )

    def _of_strays(self, listed: set[str]) -> Iterator[Finding]:
        found = self.strays.found(listed)
        try:
            if found:
                check_tables(self.roots, self.config.name, self.storage)
        except PlacesOverlap as overlap:
            # They belong to somebody else.
            yield self._refused(overlap)
            return
        yield from map(self.strays.finding, found)

    def _readable(self, found: Callable[[], Iterable[Finding]]) -> Iterable[Finding]:
        """Return findings, or what cannot be read and prevents them."""
        try:
            return list(found())
        except StorageDenied as denied:
            # One place that cannot be read hides nothing that is wrong elsewhere.
            return [self._refused(denied, str(denied.values["path"]))]
        except (StateFileLost, StateFileDamaged, FormatUnknown) as unreadable:
            return [_unreadable(unreadable)]

    def _of_state(self, state: PartitionState, listed: set[str]) -> Iterator[Finding]:
        listed |= self.strays.expected_names(state)
        refused = self._partitions.refused_folder(state.partition)
        if refused is not None:
            # Nothing of the partition can be compared, and its file is told here.
            listed.add(state.partition.path)
            yield self._refused(refused, self.roots.partition(state.partition))
            return
        if self.ledger.publications.unrecorded(state.partition) is not None:
            published = self.strays.ways_out.typed("publish", state.partition)
            text = f"{state.partition}: a commit is under way; {published} finishes it"
            yield Finding(FindingKind.COMMIT_UNFINISHED, str(state.partition), text)
            return
        found = [*self._partitions.of(state), *self._of_erased(state)]
        if found and not self._has_moved(state):
            yield from found

    def _of_erased(self, state: PartitionState) -> Iterator[Finding]:
        """Tell of rows that were erased, and that a table from before brought back."""
        for file in self.came_back.found(state.partition):
            text = (
                f"{file.path}: expected no erased rows, found {file.rows}: it is from before an "
                f"erasure. Erase them with `{command('erase', self.config.name, '--again')}`"
            )
            yield Finding(FindingKind.ERASED_ROWS, file.path, text)

    def _of_lists(self) -> Iterator[Finding]:
        """Compare what policies list with the partitions that no commit is changing."""
        if self.differences is None:
            return
        for state in self.ledger.partitions.all():
            if self.ledger.publications.unrecorded(state.partition) is not None:
                continue
            try:
                found = [self._unlisted(state, said) for said in self.differences(state.partition)]
            except (StateFileLost, StateFileDamaged, FormatUnknown) as unreadable:
                found = [_unreadable(unreadable)]
            except TransientError as silent:
                # It would be as silent about each of the others.
                yield self._refused_list(silent, state)
                return
            except TidegateError as refused:
                found = [self._refused_list(refused, state)]
            if found and not self._has_moved(state):
                yield from found

    def _refused_list(self, refused: TidegateError, state: PartitionState) -> Finding:
        partition = state.partition
        text = naming(str(refused), self.config.name, partition)
        return Finding(FindingKind.REFUSED, str(partition), text, refused.code)

    def _unlisted(self, state: PartitionState, said: str) -> Finding:
        again = self.strays.ways_out.typed("relist", state.partition)
        text = f"{state.partition}: {said}; {again} lists it as it stands"
        return Finding(FindingKind.LIST_DIFFERS, str(state.partition), text)

    def _of_source(self) -> Iterator[Finding]:
        """Check the files that the next load and a backfill need."""
        state = self.ledger.pipeline.find()
        if state is not None and state.checkpoint is not None:
            for missed in self.missing(state.checkpoint, state.first_start):
                text = naming(str(missed), self.config.name)
                where = self.config.source.address
                yield Finding(FindingKind.SOURCE_FILE_LOST, where, text, missed.code)

    def _of_announces(self) -> Iterator[Finding]:
        """Compare the ledger with the files of announces, from which a lost ledger is restored."""
        known, records = plans_in_effect(announced(self.ledger)), Records(self.roots, self.storage)
        lost = self.forgotten.announces.told()
        written_anew = {item.sealed.window.sequence for item in lost}
        for sequence in sorted({*known, *records.windows()}):
            try:
                told = {item.sealed.plan_digest: item for item in records.sealed(sequence)}
                if known.get(sequence) in told:
                    # A lost ledger is restored from plans, too.
                    read_plan(self.storage, told[known[sequence]].plan_uri)
            except (StateFileLost, StateFileDamaged, FormatUnknown) as unreadable:
                yield _unreadable(unreadable)
                continue
            if sequence in known and known[sequence] not in told:
                yield _unreadable(
                    lost_announce(
                        self.roots,
                        self.ledger,
                        sequence,
                        known[sequence],
                        is_told=sequence in written_anew,
                    )
                )

    def _of_open_window(self) -> Iterator[Finding]:
        """Tell of a window whose abandonment only the ledger does not know yet."""
        held = self.ledger.windows.open()
        if held is not None and has_begun(self.ledger, self.storage, held.window.sequence):
            dropped = f"`{command('load', self.config.name)}`"
            name = f"window {held.window.sequence}"
            yield Finding(
                FindingKind.WINDOW_ABANDONED,
                name,
                f"{name} was abandoned, and is still open in the ledger; {dropped} drops it",
            )

    def _has_moved(self, state: PartitionState) -> bool:
        """Return whether a commit happened while its partition was inspected."""
        now = self.ledger.partitions.find(state.partition)
        begun = self.ledger.publications.unrecorded(state.partition)
        return begun is not None or now is None or now.revision != state.revision


def _unreadable(error: TidegateError) -> Finding:
    """Return a finding for a file of the work directory that is lost or cannot be read."""
    where = str(error.values.get("path", ""))
    return Finding(FindingKind.STATE_FILE_LOST, where, str(error), error.code)
