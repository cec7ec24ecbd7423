"""Make the files of an upsert's next revision from its base and the changes since (design §4a)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import ChangesGone, FileLengthWrong, StagedFileMissing
from tidegate.model.counting import plans_of
from tidegate.model.publication import Publication, PublishedFile
from tidegate.model.wire import digest
from tidegate.target.content import difference
from tidegate.target.merging import Merging, merging

if TYPE_CHECKING:
    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition
    from tidegate.model.publication import AssembledUnit
    from tidegate.pipeline.publish.content import Contents, Seen
    from tidegate.pipeline.publish.units import Units
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage

_Parts = tuple[tuple[int, PublishedFile], ...]


@dataclass(frozen=True)
class Assembler:
    """Assembles the revisions of one pipeline's partitions.

    Runs on: one process per partition, under its claim. Called: at least once per proposal.
    Failure: as for `Units`.
    """

    config: PipelineConfig
    roots: Roots
    storage: Storage
    contents: Contents
    units: Units

    def next_revision(self, seen: Seen) -> Publication:
        """Return the next revision, with its files made.

        Raises:
            StagedFileMissing, FileLengthWrong: a staged file of changes was lost or damaged.
            ChangesGone: the partition has to be made anew, and changes are gone.
            ColumnTypesDiffer: two files have types of one column without a common type.
            StorageFull: no space is left (Transient).
        """
        partition, base = seen.state.partition, seen.published
        found = merging(base, seen.contributions)
        adds: tuple[PublishedFile, ...] = ()
        removes: tuple[PublishedFile, ...] = ()
        if found is not None:
            parts = self._changes(partition, found, is_anew=base is not None and not found.standing)
            kept, adds = self._merged(partition, found, parts)
            removes = (*found.going, *(it for it in found.standing if it.name not in kept))
        following = Publication(
            partition=partition,
            base_revision=seen.state.revision,
            adds=adds,
            removes=removes,
            content=(),
            contributions=plans_of(seen.contributions),
        )
        return difference(following, base.content if base else ())

    def _merged(
        self, partition: Partition, found: Merging, parts: _Parts
    ) -> tuple[set[str], tuple[PublishedFile, ...]]:
        """Return the names of the files that stay, and the files that were made."""
        if not parts:
            # Windows without a row left for the partition.
            return {file.name for file in found.standing}, ()
        unit_digest = self._digest(partition, found, parts)
        folder = self.contents.folder(partition)
        standing = [(file, f"{folder}/{file.name}") for file in found.standing]
        unit = self.units.merged(partition, unit_digest, standing, parts)
        return set(unit.kept), self._adds(partition, unit, unit_digest, found)

    def _changes(self, partition: Partition, found: Merging, *, is_anew: bool) -> _Parts:
        """Return the staged files of the changes, each with the place of its window."""
        parts = tuple(
            (place, part)
            for place, item in enumerate(found.changes)
            for part in self.contents.parts_of(item)
        )
        for _, part in parts:
            path = f"{self.roots.work}/{part.staged}"
            length = self.storage.length(path)
            if length is None and is_anew:
                raise ChangesGone(partition=str(partition), window=part.window, path=path)
            if length is None:
                target = f"{self.roots.partition(partition)}/{part.name}"
                raise StagedFileMissing(path=path, target=target, window=part.window)
            if length != part.length:
                raise FileLengthWrong(
                    path=path, window=part.window, expected=part.length, found=length
                )
        return parts

    def _digest(self, partition: Partition, found: Merging, parts: _Parts) -> str:
        target = self.config.target
        return digest(
            {
                "partition": partition.path,
                "standing": [[item.name, item.sha256] for item in found.standing],
                "changes": [[place, item.name, item.sha256] for place, item in parts],
                "keys": list(target.keys),
                "unpublished": sorted(self.config.unpublished),
                **self.units.inputs,
            }
        )

    def _adds(
        self, partition: Partition, unit: AssembledUnit, unit_digest: str, found: Merging
    ) -> tuple[PublishedFile, ...]:
        windows = tuple(sorted(item.window for item in found.changes))
        return tuple(
            replace(
                self.units.published(partition, unit_digest, part, windows[-1]),
                merged=windows,
            )
            for part in unit.parts
        )
