"""Compare table, markers and ledger, and name the remedy for each difference (PC-F41).

Repairs nothing.
"""

from __future__ import annotations

import contextlib
import functools
import posixpath
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    FormatUnknown,
    LedgerBehind,
    MarkerInvalid,
    PlacesMoved,
    PlacesOverlap,
    SourceFileGone,
    StateFileDamaged,
    StateFileLost,
    TidegateError,
)
from tidegate.errors.commands import command, naming
from tidegate.model.finding import Finding, FindingKind
from tidegate.pipeline.publish.commit_plans import writes_marker
from tidegate.pipeline.state.abandoned import has_begun
from tidegate.pipeline.state.erasures import unfinished_erasures
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.pipeline.state.records import Records
from tidegate.pipeline.state.work import check_identity, check_owner_or_move, check_tables
from tidegate.pipeline.upkeep.past import lost_announce, sealed_plans
from tidegate.pipeline.upkeep.revision_files import RevisionFiles
from tidegate.stage import layout
from tidegate.target.marker import is_hidden, read_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import CommitPlan, PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.forgotten import Forgotten
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
    missing: Callable[[Instant, Instant | None], Iterator[TidegateError]]
    """Yields an error for each retained source file that is missing, as `Source.missing`."""
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

    def _refused(self, refused: TidegateError) -> Finding:
        return Finding(FindingKind.REFUSED, self.roots.target, str(refused), refused.code)

    def _behind(self) -> Iterator[Finding]:
        """Yield what the files have and the ledger lacks, as far as they can be read."""
        with contextlib.suppress(StateFileDamaged, FormatUnknown):
            for text in self.watch.findings():
                yield Finding(FindingKind.REFUSED, self.roots.work, text, LedgerBehind.__name__)

    def _of_erasures(self) -> Iterator[Finding]:
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
        yield from self._of_erasures()
        yield from self._readable(self._of_open_window)
        listed = {OWNER_FILE}
        for state in self.ledger.partitions.all():
            yield from self._readable(functools.partial(self._of_state, state, listed))
        yield from self._readable(lambda: self._of_strays(listed))

    def _readable(self, found: Callable[[], Iterable[Finding]]) -> Iterable[Finding]:
        """Return findings, or the unreadable file of the work directory that prevents them."""
        try:
            return list(found())
        except (StateFileLost, StateFileDamaged, FormatUnknown) as unreadable:
            return [_unreadable(unreadable)]

    def _of_state(self, state: PartitionState, listed: set[str]) -> Iterator[Finding]:
        listed |= self._expected_names(state)
        if self.ledger.publications.unrecorded(state.partition) is not None:
            published = self._typed("publish", state.partition)
            text = f"{state.partition}: a commit is under way; {published} finishes it"
            yield Finding(FindingKind.COMMIT_UNFINISHED, str(state.partition), text)
            return
        plan = self.contents.standing_plan(state.partition)
        content = plan.publication.content if plan else ()
        found = [
            *self._of_partition(state, plan),
            *self._of_pending(state),
            *self._of_joined(state.partition, content),
            *self._of_retired(state, {file.name for file in content}),
        ]
        if found and not self._has_moved(state):
            yield from found

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
        known, records = sealed_plans(self.ledger), Records(self.roots, self.storage)
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

    def _of_strays(self, listed: set[str]) -> Iterator[Finding]:
        found = self._strays(listed)
        try:
            if found:
                check_tables(self.roots, self.config.name, self.storage)
        except PlacesOverlap as overlap:
            # They belong to somebody else.
            yield self._refused(overlap)
            return
        yield from map(self._of_stray, found)

    def _strays(self, listed: set[str]) -> list[str]:
        """List files that no revision or commit names, neither before nor after the listing."""
        root = self.roots.target
        left = self.watch.left_partitions
        found = [
            name
            for name in self.storage.list_files(root)
            if name not in listed and posixpath.dirname(name) not in left
        ]
        if not found:
            return []
        known = set[str]().union(*map(self._expected_names, self.ledger.partitions.all()))
        return [
            name
            for name in found
            if name not in known
            and not self._is_of_another_tool(name)
            and self.storage.exists(f"{root}/{name}")
        ]

    def _is_of_another_tool(self, name: str) -> bool:
        """Return whether no reader sees a file and no pipeline wrote it: it does no harm."""
        folder, _, plain = name.rpartition("/")
        if not is_hidden(name) or plain in {OWNER_FILE, self.config.commit.marker.name}:
            return False
        if is_hidden(folder):
            return True
        path = f"{self.roots.target}/{name}"
        try:
            read_marker(path, self.storage.read_bytes(path))
        except (MarkerInvalid, SourceFileGone):
            return True
        return False

    def _of_partition(self, state: PartitionState, plan: CommitPlan | None) -> Iterator[Finding]:
        # A marker that was renamed keeps its name until the next commit.
        name = plan.marker_name if plan else self.config.commit.marker.name
        marker = f"{self.roots.partition(state.partition)}/{name}"
        if plan is None:
            # What a retired pipeline published stays as it is.
            is_left = state.partition.path in self.watch.left_partitions
            if not is_left and self.storage.exists(marker):
                helps = self._replacing(marker, state)
                text = (
                    f"{state.partition}: a marker stands, but the ledger has no revision; {helps}"
                )
                yield Finding(FindingKind.MARKER_UNKNOWN, marker, text)
            return
        wrong = [found for file in plan.publication.content for found in self._of_file(state, file)]
        yield from wrong
        # The marker cannot be written again for missing files; the next revision has its own.
        if not wrong or self.storage.exists(marker):
            yield from self._of_marker(state, plan, marker)

    def _of_pending(self, state: PartitionState) -> Iterator[Finding]:
        """Check the staged files that the next commit will move."""
        if state.pending == "none":
            return
        for file in self.contents.waiting(state.partition, state).adds:
            staged = f"{self.roots.work}/{file.staged}"
            target = f"{self.roots.partition(state.partition)}/{file.name}"
            found = self.storage.length(staged)
            # One that was moved by a commit unknown to the ledger is checked there.
            if found == file.length or (found is None and self.storage.exists(target)):
                continue
            again = f"`{command('replay', self.config.name, file.window)}`"
            rebuild = f"`{command('rebuild', self.config.name, state.partition)}`"
            away = "" if found is None else f"move {staged} away, then "
            yield Finding(
                FindingKind.STAGED_FILE_LOST,
                staged,
                f"{staged}: expected {file.length} bytes for the next revision of "
                f"{state.partition}, found {'no file' if found is None else found}; {away}read its "
                f"window again with {again}; if that is refused, the partition with {rebuild}",
            )

    def _of_marker(self, state: PartitionState, plan: CommitPlan, marker: str) -> Iterator[Finding]:
        try:
            content = self.storage.read_bytes(marker)
        except SourceFileGone:
            if writes_marker(plan):
                yield Finding(
                    FindingKind.MARKER_LOST,
                    marker,
                    f"{state.partition}: revision {state.revision} is recorded, but its marker is "
                    f"missing; {self._writing_again(state.partition)}",
                )
            return
        try:
            raw = read_marker(marker, content)
        except MarkerInvalid as broken:
            yield Finding(
                FindingKind.MARKER_CHANGED,
                marker,
                f"{broken.path}: expected a marker of Tidegate, found {broken.found}; "
                f"{self._writing_again(state.partition)}",
            )
            return
        if raw["revision"] != state.revision:
            yield Finding(
                FindingKind.MARKER_CHANGED,
                marker,
                f"{state.partition}: the marker says revision {raw['revision']}, the ledger "
                f"{state.revision}; {self._replacing(marker, state)}",
            )
        elif content != plan.marker.encode():
            yield Finding(
                FindingKind.MARKER_CHANGED,
                marker,
                f"{marker}: is not as it was written, so that readers by marker may see other "
                f"files; {self._writing_again(state.partition)}",
            )

    def _of_file(self, state: PartitionState, file: PublishedFile) -> Iterator[Finding]:
        path = f"{self.roots.partition(state.partition)}/{file.name}"
        kind = FindingKind.FILE_CHANGED
        try:
            problem = self._problem(path, file)
        except SourceFileGone:
            problem, kind = "listed, but missing", FindingKind.FILE_LOST
        if problem:
            without = self._doing_without(state, file)
            yield Finding(kind, path, f"{path}: {problem}; put it back from a copy, or {without}")

    def _of_retired(self, state: PartitionState, stands: Collection[str]) -> Iterator[Finding]:
        """Check the files of earlier revisions that are to be kept (PC-O69).

        Args:
            state: of the partition.
            stands: the names of the files of its current revision, which are checked as such.
        """
        kept = self.config.retention.revisions
        if kept == 1:
            return
        files = RevisionFiles(self.roots, self.ledger, self.storage, self.contents)
        for made in self.ledger.publications.revisions(state.partition):
            if made.revision <= max(1, state.revision - kept + 1):
                continue
            removes = self.contents.commit_plan(made.commit_plan).publication.removes
            removed = [file for file in removes if file.name not in stands]
            there = files.found(state.partition, made.revision - 1, removed)
            lost = [
                layout.retired_part(self.roots.work, state.partition, made.revision, file.name)
                for file in removed
                if file.name not in there
            ]
            if lost:
                fewer = state.revision - made.revision + 1
                yield Finding(
                    FindingKind.RETIRED_FILE_LOST,
                    lost[0],
                    f"{lost[0]}: expected, because revision {made.revision - 1} of "
                    f"{state.partition} is one of {kept} to be kept; {len(lost)} of its files "
                    f"{'is' if len(lost) == 1 else 'are'} not there as published. Put back what "
                    f"there is a copy of, or set `retention.revisions: {fewer}`",
                )

    def _of_joined(
        self, partition: Partition, content: Iterable[PublishedFile]
    ) -> Iterator[Finding]:
        """Check what joined files are taken apart to if one of their windows is read again."""
        parts = [part for file in content for part in file.made_of]
        lost = [
            path
            for part in parts
            if self.storage.length(path := f"{self.roots.work}/{part.staged}") != part.length
        ]
        if lost:
            again = self._typed("rebuild", partition)
            published = self._typed("publish", partition)
            yield Finding(
                FindingKind.JOINED_PART_LOST,
                lost[0],
                f"{lost[0]}: expected a part of a joined file of {partition}; "
                f"{len(lost)} of {len(parts)} are not there as they were joined. Put back what "
                f"there is a copy of; or read the partition anew with {again} and bring it out "
                f"with {published}",
            )

    def _problem(self, path: str, file: PublishedFile) -> str | None:
        """Compare a file with its published length and content.

        Raises:
            SourceFileGone: it is missing; a commit may remove it at any time.
        """
        found = self.storage.length(path)
        if found is not None and found != file.length:
            return f"expected {file.length} bytes, found {found}"
        if not self.reads_content:
            if found is None:
                raise SourceFileGone(path=path)
            return None
        if self.storage.sha256(path) != file.sha256:
            return "has the length but not the bytes that were published"
        return None

    def _doing_without(self, state: PartitionState, file: PublishedFile) -> str:
        """Return how to publish a partition without a file that cannot be recovered."""
        next_one = self.contents.waiting(state.partition, state)
        if file.name in {kept.name for kept in next_one.content}:
            again = self._typed("rebuild", state.partition)
            published = self._typed("publish", state.partition)
            return f"read its rows with {again} and bring them out with {published}"
        return self._bringing_out(state, "does without it")

    def _bringing_out(self, state: PartitionState, what: str) -> str:
        """Return how the next revision of a partition is published, and what it does."""
        if state.pending == "held":
            explain = self._typed("explain", state.partition)
            return f"decide on the next revision, which {what}: {explain} says how"
        published = self._typed("publish", state.partition)
        return f"bring out the next revision, which {what}, with {published}"

    def _waiting_for(self, name: str) -> PartitionState | None:
        """Return the partition whose next revision adds a file."""
        folder, _, file = name.rpartition("/")
        state = self._states.get(folder)
        if state is None or state.pending == "none":
            return None
        coming = self.contents.waiting(state.partition, state).adds
        return state if file in {item.name for item in coming} else None

    def _of_stray(self, name: str) -> Finding:
        path = f"{self.roots.target}/{name}"
        problem = f"{name}: stands in the table, and no revision or marker of the ledger names it"
        if self._is_of_later_commit(name):
            text = f"{problem}; {self._restoring()} restores the commit that it is of"
        elif self._is_listed(name):
            text = (
                f"{name}: the marker beside it lists it, and no revision of the ledger does; "
                f"{self._restoring()} brings the ledger up to date, or says what is lost"
            )
        elif waiting := self._waiting_for(name):
            text = f"{problem}; {self._bringing_out(waiting, 'brings it')}"
        else:
            text = f"{problem}; move it out of the table, where readers that list files see it"
        return Finding(FindingKind.FILE_UNKNOWN, path, text)

    @functools.cached_property
    def _states(self) -> dict[str, PartitionState]:
        """The partitions by their paths; read once, however many files nobody knows."""
        return {state.partition.path: state for state in self.ledger.partitions.all()}

    def _replacing(self, marker: str, state: PartitionState) -> str:
        """Return how a marker that is not the ledger's may have been written."""
        try:
            content = self.storage.read_bytes(marker)
        except SourceFileGone:
            content = b""
        newer = (plan.marker.encode() for plan in self._later_plans(state.partition.path))
        if content in newer:
            return f"{self._restoring()} brings the ledger up to date"
        away = f"move {marker} away"
        if not state.revision:
            return away
        return f"{away}, then {self._writing_again(state.partition)}"

    def _writing_again(self, partition: Partition) -> str:
        """Return how to write a marker again: by the commit of the current files."""
        published = self._typed("publish", partition)
        return (
            f"{self._restoring()} finds the commit; after that, {published} writes its marker again"
        )

    def _is_of_later_commit(self, name: str) -> bool:
        folder, _, file = name.rpartition("/")
        return any(
            file in {plan.marker_name, *(part.name for part in plan.publication.content)}
            for plan in self._later_plans(folder)
        )

    def _is_listed(self, name: str) -> bool:
        """Return whether the current marker lists a file, so that readers need it."""
        folder, _, file = name.rpartition("/")
        state = self._states.get(folder)
        marker = self.watch.standing_marker(state.partition) if state else None
        return marker is not None and file in {item["name"] for item in marker["files"]}

    def _later_plans(self, folder: str) -> Sequence[CommitPlan]:
        """Return the commit plans of a partition that are newer than the ledger."""
        return self._later_by_folder[folder]

    @functools.cached_property
    def _later_by_folder(self) -> Mapping[str, Sequence[CommitPlan]]:
        """Path of a partition → its commit plans that are newer than the ledger."""
        found = defaultdict(list)
        states = {state.partition.path: state for state in self.ledger.partitions.all()}
        for item in Records(self.roots, self.storage).commits():
            folder = item.plan.publication.partition.path
            state = states.get(folder)
            if state is None or item.plan.publication.revision > state.revision:
                found[folder].append(item.plan)
        return found

    def _expected_names(self, state: PartitionState) -> set[str]:
        prefix = f"{state.partition.path}/" if state.partition.path else ""
        standing = self.contents.standing_plan(state.partition)
        if standing is None:
            names = [self.config.commit.marker.name]
        else:
            names = [standing.marker_name, *(file.name for file in standing.publication.content)]
        begun = self.ledger.publications.unrecorded(state.partition)
        if begun is not None:
            plan = self.contents.commit_plan(str(begun.commit_plan))
            names += [plan.marker_name, *(file.name for file in begun.publication.adds)]
        return {f"{prefix}{name}" for name in names}

    def _typed(self, verb: str, partition: Partition) -> str:
        return f"`{command(verb, self.config.name, partition)}`"

    def _restoring(self) -> str:
        return f"`{command('fsck', self.config.name, '--rebuild')}`"


def _unreadable(error: TidegateError) -> Finding:
    """Return a finding for a file of the work directory that is lost or cannot be read."""
    where = str(error.values.get("path", ""))
    return Finding(FindingKind.STATE_FILE_LOST, where, str(error), error.code)
