"""Compare a partition's files and marker with its current revision, and with those to come."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.policies import shown_table
from tidegate.errors import (
    MarkerInvalid,
    PathEscapes,
    SourceFileGone,
    StorageDenied,
    TidegateError,
)
from tidegate.errors.commands import command
from tidegate.model.finding import Finding, FindingKind
from tidegate.pipeline.publish.commit_plans import writes_marker
from tidegate.pipeline.state.places import coming_folders
from tidegate.pipeline.upkeep.revision_files import RevisionFiles
from tidegate.stage import layout
from tidegate.storage import below, waiting_uploads
from tidegate.target.marker import read_marker

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tidegate.commit.policies import CommitSnapshot
    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import CommitPlan, PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.fsck.ways_out import WaysOut
    from tidegate.storage import Storage


@dataclass(frozen=True)
class PartitionFindings:
    """Inspects the files of partitions of which no commit is under way. Changes nothing."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch
    ways_out: WaysOut
    reads_content: bool
    """Whether the bytes of published files are compared, not only their lengths."""

    def refused_folder(self, partition: Partition) -> TidegateError | None:
        """Return why no commit may use a partition's directory, and nothing in it can be compared.

        A link leads out of the table, or what is there is no directory, or cannot be listed.
        """
        try:
            self.storage.list_names(below(self.roots.target, partition.path))
        except (PathEscapes, StorageDenied) as refused:
            return refused
        return None

    def of(self, state: PartitionState) -> Iterator[Finding]:
        """Yield what is wrong with a partition's marker, and with all files that it needs."""
        plan = self.contents.standing_plan(state.partition)
        content = plan.publication.content if plan else ()
        yield from self._of_standing(state, plan)
        yield from self._of_pending(state)
        yield from self._of_joined(state.partition, content)
        yield from self._of_retired(state, {file.name for file in content})

    def _of_standing(self, state: PartitionState, plan: CommitPlan | None) -> Iterator[Finding]:
        # A marker that was renamed keeps its name until the next commit.
        name = plan.marker_name if plan else self.config.commit.marker.name
        if plan is None:
            # What a retired pipeline published stays as it is.
            is_left = state.partition.path in self.watch.left_partitions
            folders = self.roots.folders(state.partition, self.storage)
            for marker in () if is_left else (f"{folder}/{name}" for folder in folders):
                if self.storage.exists(marker):
                    helps = self.ways_out.replacing(marker, state)
                    text = f"a marker stands, but the ledger has no revision; {helps}"
                    text = f"{state.partition}: {text}"
                    yield Finding(FindingKind.MARKER_UNKNOWN, marker, text)
            return
        folder = self.roots.revision(plan.publication)
        marker = f"{folder}/{name}"
        content = plan.publication.content
        wrong = [found for file in content for found in self._of_file(state, file, folder)]
        yield from wrong
        yield from self._of_table(state, plan)
        # The marker cannot be written again for missing files; the next revision has its own.
        if not wrong or self.storage.exists(marker):
            yield from self._of_marker(state, plan, marker)

    @functools.cached_property
    def _table(self) -> CommitSnapshot | None:
        return shown_table(self.config.target)

    def _of_table(self, state: PartitionState, plan: CommitPlan) -> Iterator[Finding]:
        """Compare what readers find by the table with what was published."""
        if self._table is None:
            return
        name = str(self.config.target.table)
        folder = self.roots.partition(state.partition)
        try:
            names = self._table.names(self.config.name, state.partition, folder)
        except TidegateError as refused:
            yield Finding(FindingKind.TABLE_DIFFERS, name, str(refused), refused.code)
            return
        if names != frozenset(file.name for file in plan.publication.content if file.rows):
            published = self.ways_out.typed("publish", state.partition)
            read_again = self.ways_out.typed("rebuild", state.partition)
            brought = published if state.pending != "none" else f"{read_again} and {published}"
            yield Finding(
                FindingKind.TABLE_DIFFERS,
                f"{name}: {state.partition}",
                f"{name}: {state.partition}: expected the files of revision {state.revision}, "
                f"found others: another writer changed it, or the catalog was restored; after a "
                f"restore, {self.ways_out.restoring()} finds the last revision that it has, and "
                f"{published} then brings the rest; after a change by others, {brought} with "
                "`target.on_foreign_change: replace` put the published rows back",
            )

    def _of_pending(self, state: PartitionState) -> Iterator[Finding]:
        """Check the staged files that the next commit will move."""
        if state.pending == "none":
            return
        adds = self.contents.waiting(state.partition, state).adds
        folder = self.roots.partition(state.partition)
        targets = [(file, f"{folder}/{file.name}") for file in adds]
        sent = waiting_uploads(self.storage, targets)
        for file in adds:
            if f"{folder}/{file.name}" in sent:
                continue
            staged = f"{self.roots.work}/{file.staged}"
            found = self.storage.length(staged)
            # One that was moved by a commit unknown to the ledger is checked there.
            if found == file.length or (found is None and self._has_moved(state, file)):
                continue
            missing = "no file" if file.upload is None else "neither file nor upload"
            again = f"`{command('replay', self.config.name, file.window)}`"
            rebuild = f"`{command('rebuild', self.config.name, state.partition)}`"
            away = "" if found is None else f"move {staged} away, then "
            if file.upload is not None and found is None:
                staged = file.upload.path
            yield Finding(
                FindingKind.STAGED_FILE_LOST,
                staged,
                f"{staged}: expected {file.length} bytes for the next revision of "
                f"{state.partition}, found {missing if found is None else found}; {away}read its "
                f"window again with {again}; if that is refused, the partition with {rebuild}",
            )

    def _has_moved(self, state: PartitionState, file: PublishedFile) -> bool:
        folders = coming_folders(self.roots, self.ledger, self.storage, state.partition)
        return any(self.storage.exists(f"{folder}/{file.name}") for folder in folders)

    def _of_marker(self, state: PartitionState, plan: CommitPlan, marker: str) -> Iterator[Finding]:
        try:
            content = self.storage.read_bytes(marker)
        except SourceFileGone:
            if writes_marker(plan):
                yield Finding(
                    FindingKind.MARKER_LOST,
                    marker,
                    f"{state.partition}: revision {state.revision} is recorded, but its marker is "
                    f"missing; {self.ways_out.writing_again(state.partition)}",
                )
            return
        try:
            raw = read_marker(marker, content)
        except MarkerInvalid as broken:
            yield Finding(
                FindingKind.MARKER_CHANGED,
                marker,
                f"{broken.path}: expected a marker of Tidegate, found {broken.found}; "
                f"{self.ways_out.writing_again(state.partition)}",
            )
            return
        if raw["revision"] != state.revision:
            yield Finding(
                FindingKind.MARKER_CHANGED,
                marker,
                f"{state.partition}: the marker says revision {raw['revision']}, the ledger "
                f"{state.revision}; {self.ways_out.replacing(marker, state)}",
            )
        elif content != plan.marker.encode():
            yield Finding(
                FindingKind.MARKER_CHANGED,
                marker,
                f"{marker}: is not as it was written, so that readers by marker may see other "
                f"files; {self.ways_out.writing_again(state.partition)}",
            )

    def _of_file(
        self, state: PartitionState, file: PublishedFile, folder: str
    ) -> Iterator[Finding]:
        path = f"{folder}/{file.name}"
        kind = FindingKind.FILE_CHANGED
        try:
            problem = self._problem(path, file)
        except SourceFileGone:
            problem, kind = "listed, but missing", FindingKind.FILE_LOST
        if problem:
            without = self.ways_out.doing_without(state, file)
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
            again = self.ways_out.typed("rebuild", partition)
            published = self.ways_out.typed("publish", partition)
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
