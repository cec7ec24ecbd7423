"""Read the current and the next content of a partition from ledger and work directory."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.config import PipelineConfig
from tidegate.errors import PublicationLapsed, StateFileDamaged, StateFileLost, UploadUnread
from tidegate.model.counting import counting, plans_of
from tidegate.model.message import CommitMessage
from tidegate.model.publication import (
    CommitPlan,
    Publication,
    PublicationState,
    PublishedFile,
)
from tidegate.pipeline.state.kept_values import KeptValues
from tidegate.pipeline.state.places import current_folder
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.pipeline.state.reading import Reading, published_schema
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.stage.partition_split import columns_of
from tidegate.stage.stored import read_stored
from tidegate.target.content import propose, with_content
from tidegate.target.iceberg_columns import table_columns
from tidegate.target.listed_columns import listed_columns
from tidegate.target.merging import merging
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tidegate.config import TargetConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import KnownPartition, PartitionState, PublicationEntry
    from tidegate.model.message import Contribution, PartFile
    from tidegate.model.metastore import TableColumns
    from tidegate.model.partition import Partition
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage

_PARTS_KEPT = 50_000
"""Part files of messages that are kept in memory, about 1 KB each."""
_PLANS_KEPT = 1_000
"""Plans of windows of which the columns are kept in memory."""


@dataclass(frozen=True, eq=False)
class _Planned:
    """What the plan of a window says of the files that it writes."""

    columns: pa.Schema
    keys: pa.Schema
    """The columns of the source that partition keys are made from."""
    path_columns: frozenset[str]
    """The columns that the source has from the paths of its files."""
    erased: int
    """The newest erasure whose rows are left out; 0: none are."""


@dataclass(frozen=True)
class Seen:
    """What was read of a partition at once.

    Read under a claim, it serves all of the steps up to the commit: nobody else makes a revision as
    long as the claim holds, and each transaction compares its fence. What windows bring meanwhile,
    and what a person decides, is compared by the transaction that begins the commit.
    """

    state: PartitionState
    contributions: Sequence[Contribution]
    """All that its windows brought."""
    standing: CommitPlan | None
    """The plan that its current revision was committed by; None if there is none."""

    @property
    def published(self) -> Publication | None:
        """The current revision with its content; None if there is none."""
        return self.standing.publication if self.standing else None

    @property
    def stood(self) -> Mapping[str, str]:
        """Window → plan digest of what the current revision has."""
        return self.standing.publication.contributions if self.standing else {}


@dataclass(frozen=True)
class Contents:
    """The contents of one pipeline's partitions. Changes nothing."""

    name: str
    """The pipeline's name."""
    roots: Roots
    ledger: Ledger
    storage: Storage
    merges: bool = False
    """Whether what windows brought is merged by key, instead of being published as it is."""

    def standing(self, partition: Partition) -> Publication | None:
        """Return the content of the partition's current revision; None if there is none."""
        plan = self.standing_plan(partition)
        return plan.publication if plan else None

    def standing_plan(self, partition: Partition) -> CommitPlan | None:
        """Return the plan that the current revision was committed by; None if there is none."""
        revisions = self.ledger.publications.revisions(partition)
        if not revisions:
            return None
        return self.commit_plan(revisions[-1].commit_plan)

    def seen(self, known: KnownPartition) -> Seen:
        """Return what is known of a partition, with the plan of its current revision."""
        newest = known.newest
        standing = None if newest is None else self.commit_plan(newest.commit_plan)
        return Seen(known.state, known.contributions, standing)

    def folder(self, partition: Partition) -> str:
        """Return the directory with the files of a partition's current revision."""
        return current_folder(self.roots, self.ledger, partition)

    def files_of(self, publication: Publication) -> list[str]:
        """Return the current paths of a proposed revision's files.

        An added file may be at its target already if a commit began that the ledger has forgotten.

        Raises:
            UploadUnread: a file was only sent.
        """
        root, standing = self.roots.revision(publication), self.folder(publication.partition)
        coming = {file.name for file in publication.adds}
        return [
            self._staged_or_moved(file, f"{root}/{file.name}")
            if file.name in coming
            else f"{standing}/{file.name}"
            for file in publication.content
        ]

    def lacks_unit(self, publication: Publication) -> bool:
        """Return whether a file is gone that was assembled for a revision (design §4a)."""
        root = self.roots.revision(publication)
        return any(
            file.staged.startswith(f"{layout.UNITS}/")
            and not self.storage.exists(self._staged_or_moved(file, f"{root}/{file.name}"))
            for file in publication.adds
        )

    def staged(self, file: PublishedFile) -> str:
        """Return the path of a staged file, to read it.

        Raises:
            UploadUnread: it was only sent.
        """
        path = f"{self.roots.work}/{file.staged}"
        if file.upload is not None and not self.storage.exists(path):
            raise UploadUnread(path=file.upload.path, window=file.window)
        return path

    def _staged_or_moved(self, file: PublishedFile, target: str) -> str:
        staged = f"{self.roots.work}/{file.staged}"
        if self.storage.exists(staged):
            return staged
        if file.upload is not None and not self.storage.exists(target):
            raise UploadUnread(path=target, window=file.window)
        return target

    def next_revision(self, seen: Seen) -> Publication:
        """Return the next revision, computed from all contributions that count."""
        partition = seen.state.partition
        return propose(
            partition,
            seen.published,
            seen.state.revision,
            seen.contributions,
            self.parts_of,
            lambda file: self._is_lost(partition, file),
        )

    def _is_lost(self, partition: Partition, file: PublishedFile) -> bool:
        return self.storage.length(f"{self.folder(partition)}/{file.name}") != file.length

    def waiting(
        self,
        partition: Partition,
        state: PartitionState,
        contributions: Sequence[Contribution] | None = None,
    ) -> Publication:
        """Return what `next_revision` is made of, unless changes have to be merged first.

        Args:
            partition: the partition.
            state: of the partition.
            contributions: all that its windows brought; read from the ledger if None.
        """
        if contributions is None:
            contributions = self.ledger.contributions.to(partition)
        seen = Seen(state, contributions, self.standing_plan(partition))
        if not self.merges:
            return self.next_revision(seen)
        base = seen.published
        found = merging(base, contributions)
        changes = found.changes if found else ()
        going = (found.going or found.standing) if found else ()
        return Publication(
            partition=partition,
            base_revision=state.revision,
            adds=tuple(part for item in changes for part in self.parts_of(item)),
            # Which of them are written anew is known once the changes were merged.
            removes=going,
            content=() if going or base is None else base.content,
            contributions=plans_of(contributions),
        )

    def is_declared_empty(self, partition: Partition) -> bool:
        """Return whether a window says of a partition that it has no rows (PC-F31)."""
        found = counting(self.ledger.contributions.to(partition))
        return any(item.overwrites and not item.rows for item in found)

    def proposed(self, partition: Partition, publication: str) -> PublicationEntry:
        """Return a proposal with its content.

        Raises:
            PublicationLapsed: it was replaced in the meantime.
        """
        entry = self.ledger.publications.find(partition, publication)
        if entry is None or entry.state is not PublicationState.PROPOSED:
            state = entry.state.value if entry else "unknown"
            raise PublicationLapsed(
                pipeline=self.name,
                partition=str(partition),
                change=f"the proposal is {state}",
            )
        return filled(entry, self.standing(partition))

    def planned_columns(self, partition: Partition) -> Iterator[pa.Schema]:
        """Yield the planned columns of a partition's files, newest window first.

        A lost plan is skipped: no rows depend on it. Windows that were reset are included only if
        the reset found no file to take columns from.
        """
        for window, digest, replaces in self._plans_of(partition):
            planned = self._planned(window, digest)
            if planned is None:
                continue
            yield planned.columns
            if replaces and not set(planned.columns.names) <= planned.path_columns:
                return

    def columns_of(self, publication: Publication) -> list[pa.Schema | None]:
        """Return the planned columns of each of a revision's files; None if its plan is lost."""
        found = self._known_plans((it.window, it.plan_digest) for it in publication.content)
        planned = [found.get((it.window, it.plan_digest)) for it in publication.content]
        return [item and item.columns for item in planned]

    def table_columns(
        self, publication: Publication, config: PipelineConfig
    ) -> TableColumns | None:
        """Return the columns of the table, as far as this revision tells them.

        A revision without files has those that were planned last.

        Returns:
            None if all plans that tell them are lost.

        Raises:
            ColumnUnlistable: a metastore cannot list them.
        """
        known = self._known_columns(publication)
        return None if known is None else listed_columns(config.target, *known)

    def table_schema(self, publication: Publication, target: TargetConfig) -> pa.Schema | None:
        """Return the columns of an Iceberg table, as far as this revision tells them.

        Returns:
            None if all plans that tell them are lost.

        Raises:
            TableColumnUnfit: Iceberg has no such column.
        """
        known = self._known_columns(publication)
        return None if known is None else table_columns(target, *known)

    def _known_columns(self, publication: Publication) -> tuple[pa.Schema, pa.Schema] | None:
        """Return the columns of a revision's files, and those that its keys are made from."""
        found = self._known_plans((it.window, it.plan_digest) for it in publication.content)
        # Merged and joined files have digests of their own, and the columns of their windows.
        made = [it for it in publication.content if (it.window, it.plan_digest) not in found]
        counted = publication.contributions
        ingredients = {
            (window, counted[str(window)])
            for file in made
            for window in file.windows
            if str(window) in counted
        }
        found |= self._known_plans(ingredients)
        if not publication.content:
            last = self._plans_of(publication.partition)
            found = self._known_plans((window, digest) for window, digest, _ in last)
        if not found:
            return None
        columns = unified((digest, known.columns) for (_, digest), known in found.items())
        keys = unified((digest, known.keys) for (_, digest), known in found.items())
        return columns, keys

    def columns_of_plan(self, window: int, digest: str) -> pa.Schema | None:
        """Return the columns of the files that a plan writes; None if it is lost."""
        planned = self._planned(window, digest)
        return None if planned is None else planned.columns

    def leaves_out(self, window: int, digest: str, erasure: int) -> bool:
        """Return whether the files of a plan have no row of an erasure, or of one before it."""
        planned = self._planned(window, digest)
        return planned is not None and planned.erased >= erasure

    def _known_plans(self, plans: Iterable[tuple[int, str]]) -> dict[tuple[int, str], _Planned]:
        """Return what is known of plans, in the order of their windows."""
        known = {plan: self._planned(*plan) for plan in sorted({*plans})}
        return {plan: item for plan, item in known.items() if item is not None}

    def _planned(self, window: int, digest: str) -> _Planned | None:
        """Return what a window's plan says of the columns that it writes; None if it is lost."""
        root = layout.plan_root(self.roots.work, window, digest)
        return self._plans.get(layout.plan_file(root))

    @cached_property
    def _plans(self) -> KeptValues[_Planned | None]:
        return KeptValues(self.storage, self._read_planned, lambda _: 1, _PLANS_KEPT)

    def _read_planned(self, path: str) -> _Planned | None:
        import pyarrow as pa

        try:
            scan = read_plan(self.storage, posixpath.dirname(path))
        except (StateFileLost, StateFileDamaged):
            return None
        config = PipelineConfig.from_resolved(scan.config)
        source = config.source
        schema = Reading.of(source, open_source(source, self.storage), scan.pin).schema
        made_from = columns_of(config.target.partition_by)
        keys = pa.schema([schema.field(name) for name in made_from if name in schema.names])
        columns = published_schema(config, schema)
        return _Planned(columns, keys, frozenset(source.path_columns), scan.erased or 0)

    def _plans_of(self, partition: Partition) -> Iterator[tuple[int, str, bool]]:
        """Yield window, plan digest and whether it replaces others, newest first.

        A partition that no window touched, which a calendar expects, has the columns of others.
        """
        brought = self.ledger.contributions.to(partition)
        for item in reversed(brought):
            yield item.window, item.plan_digest, item.kind.replaces
        if not brought:
            for window in reversed(self.ledger.windows.all()):
                if window.sealed and window.plan_digest is not None:
                    yield window.window.sequence, window.plan_digest, False

    def commit_plan(self, path: str) -> CommitPlan:
        """Read the plan of one commit, whose path in the work directory the ledger has."""
        return read_stored(self.storage, f"{self.roots.work}/{path}", CommitPlan)

    def parts_of(self, contribution: Contribution) -> list[PublishedFile]:
        """Return a contribution's part files, from its commit messages."""
        root = layout.plan_root(self.roots.work, contribution.window, contribution.plan_digest)
        staged_root = layout.relative_to_work(self.roots.work, root)
        found = []
        for sub_split in contribution.messages:
            parts = self._messages.get(layout.message_file(root, sub_split))
            found += [
                PublishedFile.of(
                    part,
                    contribution.window,
                    contribution.plan_digest,
                    f"{staged_root}/{part.staged}",
                )
                for part in parts.get(contribution.partition, ())
            ]
        return found

    @cached_property
    def _messages(self) -> KeptValues[Mapping[Partition, Sequence[PartFile]]]:
        return KeptValues(self.storage, self._read_message, _count, _PARTS_KEPT)

    def _read_message(self, path: str) -> Mapping[Partition, Sequence[PartFile]]:
        """Return the part files of a commit message by partition, in the message's order."""
        found = defaultdict(list)
        for part in read_stored(self.storage, path, CommitMessage).staged.parts:
            found[part.partition].append(part)
        return found


def filled(entry: PublicationEntry, standing: Publication | None) -> PublicationEntry:
    """Return a proposal with its content, given the current revision."""
    content = standing.content if standing else ()
    return replace(entry, publication=with_content(entry.publication, content))


def _count(parts: Mapping[Partition, Sequence[PartFile]]) -> int:
    """Return the number of part files, and at least one."""
    return 1 + sum(map(len, parts.values()))
