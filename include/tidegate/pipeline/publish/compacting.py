"""Join small files of a partition, on the way to a revision or of what stands (PC-K02, K04)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tidegate.errors import StandingFileUnreadable
from tidegate.model.counting import plans_of
from tidegate.model.publication import Publication, PublishedFile
from tidegate.model.wire import digest
from tidegate.stage import layout
from tidegate.target.compaction import CompactionRule, bins, ingredients
from tidegate.target.content import difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.pipeline.publish.content import Contents, Seen
    from tidegate.pipeline.publish.units import Units

_log = logging.getLogger(__name__)


class Proposer(Protocol):
    """Works out the next revision of a partition, and makes the files that it lacks."""

    def next_revision(self, seen: Seen) -> Publication:
        """Return the difference to the current revision; repeated, it finds its files made."""
        ...


@dataclass(frozen=True)
class Compactor:
    """Joins small files of one pipeline's partitions.

    Runs on: one process per partition, under its claim. Called: at least once per proposal.
    Failure: as for `Units`; nothing that stands is touched.
    """

    proposer: Proposer
    """Works out the revisions whose small files are joined."""
    contents: Contents
    units: Units
    rule: CompactionRule | None
    """When a revision joins files by itself; None: never."""
    may_be_unreadable: bool
    """Whether files may have values that cannot be read here; they are left as they are."""

    def next_revision(self, seen: Seen) -> Publication:
        """Return the next revision; its small files are joined if its number says so."""
        following = self.proposer.next_revision(seen)
        if self.rule is None or following.is_empty or following.revision % self.rule.every:
            return following
        return self._joined(following, self.rule, seen.published)

    def rewritten(
        self, partition: Partition, rule: CompactionRule, brought: Sequence[Contribution]
    ) -> Publication | None:
        """Return the revision that only joins small files of the current one.

        Args:
            partition: the partition, for which nothing waits.
            rule: which files are joined.
            brought: all that windows had brought when nothing waited.

        Returns:
            None if there is no current revision.
        """
        base = self.contents.standing(partition)
        if base is None:
            return None
        unchanged = Publication(
            partition=partition,
            base_revision=base.revision,
            adds=(),
            removes=(),
            content=base.content,
            # A window that was read again with equal rows counts as it is known now.
            contributions=plans_of(brought),
        )
        return self._joined(unchanged, rule, base)

    def _joined(
        self, following: Publication, rule: CompactionRule, standing: Publication | None
    ) -> Publication:
        content = standing.content if standing else ()
        files = following.content
        while True:
            chosen = bins(files, rule)
            by_name = {file.name: file for file in files}
            try:
                made = [
                    file
                    for names in chosen
                    for file in self._unit(following, content, [by_name[name] for name in names])
                ]
                break
            except StandingFileUnreadable as refused:
                files = self._without(refused, following, content, files)
        gone = {name for names in chosen for name in names}
        joined = replace(
            following,
            adds=(*(file for file in following.adds if file.name not in gone), *made),
            removes=(*following.removes, *(file for file in content if file.name in gone)),
        )
        return difference(joined, content)

    def _without(
        self,
        refused: StandingFileUnreadable,
        following: Publication,
        standing: Sequence[PublishedFile],
        files: Sequence[PublishedFile],
    ) -> tuple[PublishedFile, ...]:
        """Return the files but the one that cannot be read, if it is as it was written.

        Raises:
            StandingFileUnreadable: it is missing or damaged.
        """
        stood = {file.name for file in standing}
        for file, path in self._paths(following, stood, files):
            if path == refused.path and self._is_as_written(file, path):
                _log.warning("%s is not joined to others: %s", path, refused.problem)
                return tuple(it for it in files if it.name != file.name)
        raise refused

    def _is_as_written(self, file: PublishedFile, path: str) -> bool:
        """Return whether a file of a format with values that Arrow cannot read is undamaged."""
        if not self.may_be_unreadable or not self.contents.storage.exists(path):
            return False
        return self.contents.storage.sha256(path) == file.sha256

    def _unit(
        self,
        following: Publication,
        standing: Sequence[PublishedFile],
        files: Sequence[PublishedFile],
    ) -> tuple[PublishedFile, ...]:
        """Return the file that others are joined to; more than one if it became too large."""
        partition = following.partition
        retired = layout.retired_part(self.contents.roots.work, partition, following.revision, "")
        retired = layout.relative_to_work(self.contents.roots.work, retired)
        stood = {file.name for file in standing}
        made_of = {
            part.name: part
            for file in files
            for part in ingredients([file], retired if file.name in stood else None)
        }
        unit_digest = digest(
            {
                "partition": partition.path,
                "joined": [[file.name, file.sha256] for file in files],
                **self.units.inputs,
            }
        )
        made = self.units.joined(partition, unit_digest, self._paths(following, stood, files))
        is_merged = any(file.merged for file in files)
        windows = tuple(sorted({window for file in files for window in file.windows}))
        return tuple(
            replace(
                self.units.published(partition, unit_digest, part, windows[-1]),
                # What was merged by key is made anew from changes, never from these files.
                merged=windows if is_merged else (),
                made_of=() if is_merged else tuple(made_of.values()),
                joins=tuple(file.name for file in files)
                if stood.issuperset(file.name for file in files)
                else (),
                is_part=len(made) > 1 or any(file.is_part for file in files),
            )
            for part in made
        )

    def _paths(
        self, following: Publication, stood: set[str], files: Sequence[PublishedFile]
    ) -> list[tuple[PublishedFile, str]]:
        folder = self.contents.folder(following.partition)
        return [
            (file, f"{folder}/{file.name}" if file.name in stood else self.contents.staged(file))
            for file in files
        ]
