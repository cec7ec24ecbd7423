"""The places of a pipeline: its target and work directory, and whether two are one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.commit_files import Places
from tidegate.config import (
    is_in_store,
    overlap,
    refuse_overlap_of,
    refuse_work_inside,
    resolve_secret,
    source_places,
    store_path,
)
from tidegate.errors import LateRootUnfit, StorageDenied, StorageSilent
from tidegate.stage import layout
from tidegate.target.layouts import IN_PLACE, LAYOUTS
from tidegate.target.owner import Grounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.config.late_data import LateDataConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Publication
    from tidegate.storage import Storage
    from tidegate.target.layouts import Layout


_LATE = "commit.late_data.side.path"


@dataclass(frozen=True)
class Roots:
    """The target and the work directory of a pipeline.

    `${env:NAME}` is resolved in this process.
    """

    target: str
    work: str
    late: str | None = None
    """Where late rows are published instead; None: nowhere."""
    layout: Layout = IN_PLACE
    """In which directories of the target revisions have their files."""
    table: str | None = None
    """The folder of the table whose files the target has; None: it has files of its own."""

    @classmethod
    def of(cls, config: PipelineConfig) -> Roots:
        """Resolve the roots of a pipeline.

        Raises:
            SecretMissing: a variable in one of the paths is not set.
            WorkInsideTarget: the work directory is below the table root.
            PlacesOverlap: one of them is inside the source, or contains it.
            LateRootUnfit: the late root and one of the two are inside one another.
        """
        target = resolved_place(config.target.root, "target.path")
        work = resolved_place(config.target.work, "target.work")
        path = resolved_place(config.target.path, "target.path")
        refuse_work_inside(work, path)
        table = None if path == target else path
        layout_ = LAYOUTS[config.target.layout]
        made = cls(target, work, late_root_in(config.commit.late_data), layout_, table)
        made.refuse_overlap(config.name, source_places(config.source))
        return made

    def refuse_overlap(self, pipeline: str, sources: Sequence[str]) -> None:
        """Check that neither directory is inside one of the source's, or contains one.

        Raises:
            PlacesOverlap: one is.
        """
        known = {"target.path": self.table or self.target, "target.work": self.work}
        if self.late is not None:
            known[_LATE] = self.late
            self._refuse_late_inside(pipeline, self.late)
        refuse_overlap_of(pipeline, known, sources)

    def _refuse_late_inside(self, pipeline: str, late: str) -> None:
        for place in (self.target, self.work):
            if overlap(late, place):
                problem = f"it overlaps {place}"
                raise LateRootUnfit(pipeline=pipeline, path=late, problem=problem)

    def grounds(self, storage: Storage) -> Grounds:
        """Return target and work directory with the files that name their owner."""
        owner, scratch = layout.owner_file(self.work), layout.scratch_root(self.work)
        return Grounds(storage, self.target, self.work, owner, scratch, self.table)

    def partition(self, partition: Partition) -> str:
        """Return a partition's directory; the table root for an unpartitioned target."""
        return partition_folder(self.target, partition)

    def revision(self, made: Publication | RevisionEntry) -> str:
        """Return the directory with the files of a revision of a partition."""
        return self.layout.folder(self.partition(made.partition), made)

    def folders(self, partition: Partition, storage: Storage) -> list[str]:
        """Return the directories in which revisions of a partition may stand, newest first."""
        return self.layout.folders(storage, self.partition(partition))

    def places(self, publication: Publication, current: Callable[[Partition], str]) -> Places:
        """Return the directories of one revision's files: published, staged and retired.

        Args:
            publication: the revision that is being published.
            current: returns the directory with the files of a partition's current revision.
        """
        partition = publication.partition
        return Places(
            work=self.work,
            table_root=self.target,
            partition_root=self.revision(publication),
            lock=layout.lock_file(self.work, partition),
            scratch=layout.scratch_root(self.work),
            retired=lambda name: layout.retired_part(
                self.work, partition, publication.revision, name
            ),
            former_root=None if self.layout.is_shared else current(partition),
        )


def current_folder(roots: Roots, ledger: Ledger, partition: Partition) -> str:
    """Return the directory with the files of a partition's current revision.

    For one without a revision it is that of the partition.
    """
    root = roots.partition(partition)
    revisions = () if roots.layout.is_shared else ledger.publications.revisions(partition)
    return roots.revision(revisions[-1]) if revisions else root


def coming_folders(
    roots: Roots, ledger: Ledger, storage: Storage, partition: Partition
) -> list[str]:
    """Return the directories of the current revision, and of those that may come after it."""
    found = roots.folders(partition, storage)
    revisions = ledger.publications.revisions(partition) if len(found) > 1 else ()
    former = {roots.revision(item) for item in revisions[:-1]}
    return [folder for folder in found if folder not in former]


def late_root_in(late_data: LateDataConfig) -> str | None:
    """Return the late root that the key `commit.late_data` names; None if it names none.

    Raises:
        SecretMissing: a variable in its path is not set.
    """
    side = late_data.side
    return resolved_place(side.path, _LATE) if side is not None else None


def partition_folder(target: str, partition: Partition) -> str:
    """Return the directory of a partition; the table root for an unpartitioned target."""
    return f"{target}/{partition.path}" if partition.path else target


def resolved_place(path: str, key: str) -> str:
    """Return a path with its variables, one of which may be an address with another scheme."""
    found = resolve_secret(path, key).rstrip("/")
    return store_path(found) if is_in_store(found) else found


def is_same_place(storage: Storage, one: str, other: str) -> bool:
    """Compare by real path; a path that cannot be reached differs from one that can."""
    try:
        return storage.real_path(one) == storage.real_path(other)
    except (StorageDenied, StorageSilent):
        return one == other


def worked_in(ledger: Ledger) -> str | None:
    """Return the work directory that the newest window was planned in."""
    windows = ledger.windows.all()
    uri = ledger.plans.uri(windows[-1].window.sequence) if windows else None
    return uri.rpartition(f"/{layout.WINDOWS}/")[0] if uri else None
