"""Make the files of units, each once, in directories named by their ingredients (design §4a)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import StateFileLost
from tidegate.model.publication import AssembledUnit, PublishedFile
from tidegate.model.wire import pretty
from tidegate.pipeline.state.fingerprint import library_fingerprint
from tidegate.read.sorted_rows import RowOrder
from tidegate.stage import layout
from tidegate.stage.merged_files import (
    ChangeFile,
    Merge,
    MergeInput,
    MergeSpec,
    StandingFile,
)
from tidegate.stage.partition_split import data_columns
from tidegate.stage.stored import read_stored
from tidegate.stage.sub_split import StageSpec
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from tidegate.config import PipelineConfig
    from tidegate.model.erasure import Erasure
    from tidegate.model.message import PartFile
    from tidegate.model.partition import Partition
    from tidegate.model.publication import StagedFile
    from tidegate.pipeline.state.places import Roots
    from tidegate.stage.merged_files import MergedFiles
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Units:
    """The units of one pipeline.

    Runs on: one process per partition, under its claim. Called: at least once per proposal.
    Failure: a unit without its record is made again, under another attempt's name; one that has it
    is found done, unless a file of it is gone.
    """

    config: PipelineConfig
    roots: Roots
    storage: Storage

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What decides the bytes of every unit besides its ingredients."""
        target = self.config.target
        return {
            "form": target.part_format.to_json(),
            "row_group": target.row_group.model_dump(mode="json"),
            "rolling": target.rolling.model_dump(mode="json"),
            "sort_by": [key.text for key in target.sort_by],
            "fingerprint": dict(library_fingerprint()),
        }

    def merged(
        self,
        partition: Partition,
        digest: str,
        standing: Iterable[tuple[PublishedFile, str]],
        changes: Iterable[tuple[int, PublishedFile]],
    ) -> AssembledUnit:
        """Merge staged changes into standing files.

        Args:
            partition: the partition.
            digest: of the ingredients.
            standing: files of the current revision, each with its path.
            changes: staged files in content order, each with the place of its window.
        """
        made_of = MergeInput(
            partition,
            digest,
            tuple(StandingFile(it.name, path, it.length) for it, path in standing),
            tuple(
                ChangeFile(f"{self.roots.work}/{part.staged}", place, part.rows)
                for place, part in changes
            ),
        )
        return self._made(made_of, Merge.run)

    def joined(
        self, partition: Partition, digest: str, files: Sequence[tuple[PublishedFile, str]]
    ) -> tuple[PartFile, ...]:
        """Join files, which are at the given paths, in their order."""
        standing = tuple(StandingFile(it.name, path, it.length) for it, path in files)
        return self._made(MergeInput(partition, digest, standing, ()), Merge.joined).parts

    def without(
        self,
        partition: Partition,
        digest: str,
        file: StagedFile,
        path: str,
        erasures: Sequence[Erasure],
        columns: pa.Schema | None,
    ) -> tuple[PartFile, ...]:
        """Write a file anew without erased rows; without any rows if it has no other ones.

        Args:
            partition: the partition.
            digest: of the ingredients.
            file: with erased rows.
            path: where it is.
            erasures: whose rows are left out.
            columns: of the file, as its plan had them; None: as the file says.

        Raises:
            StandingFileUnreadable: it is missing or damaged.
            StorageFull: no space is left (Transient).
        """
        standing = StandingFile(file.name, path, file.length, columns)
        made_of = MergeInput(partition, digest, (standing,), ())
        return self._made(made_of, lambda merge: merge.without(erasures)).parts

    def published(
        self, partition: Partition, digest: str, part: PartFile, window: int
    ) -> PublishedFile:
        """Describe a unit's file as one of the partition's content; its newest window is given."""
        root = layout.unit_root(self.roots.work, partition, digest)
        staged = f"{layout.relative_to_work(self.roots.work, root)}/{part.staged}"
        return PublishedFile.of(part, window, digest, staged)

    def _made(self, made_of: MergeInput, make: Callable[[Merge], MergedFiles]) -> AssembledUnit:
        root = layout.unit_root(self.roots.work, made_of.partition, made_of.digest)
        done = self._done(root)
        if done is not None:
            return done
        self.storage.delete_tree(root)
        # Else a power cut could take the whole directory, with files that were synced in it.
        self.storage.make_dirs(root)
        attempt = f"a.{os.urandom(4).hex()}"
        made = make(Merge(self.storage, self._spec, made_of, root, attempt))
        # Their places do not tell the attempt: made again, they are where a proposal names them.
        parts = tuple(self._placed(root, part) for part in made.parts)
        self.storage.sync(root)
        self.storage.delete_tree(f"{root}/{layout.STAGED}")
        unit = AssembledUnit(made.kept, parts)
        self.storage.write_once(layout.unit_file(root), pretty(unit.to_json()))
        return unit

    def _placed(self, root: str, part: PartFile) -> PartFile:
        self.storage.link_new(f"{root}/{part.staged}", f"{root}/{part.name}")
        return replace(part, staged=part.name)

    def _done(self, root: str) -> AssembledUnit | None:
        """Return a unit that was made before, if all of its files are there."""
        try:
            unit = read_stored(self.storage, layout.unit_file(root), AssembledUnit)
        except StateFileLost:
            return None
        lengths = {part.staged: self.storage.length(f"{root}/{part.staged}") for part in unit.parts}
        return unit if all(lengths[part.staged] == part.length for part in unit.parts) else None

    @property
    def _spec(self) -> MergeSpec:
        target = self.config.target
        # A key of the path is the same in all rows of a partition.
        in_path = {*target.keys} - {*data_columns(target.keys, target.partition_by)}
        return MergeSpec(
            keys=tuple(key for key in target.keys if key not in in_path),
            unpublished=self.config.unpublished,
            memory=self.config.source.split.max_delete_memory,
            unify=unified,
            limits=StageSpec.limits_of(target),
            form=target.part_format,
            order=RowOrder(target.sort_by),
        )
