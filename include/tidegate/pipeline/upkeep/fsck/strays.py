"""Find files in a table that no revision or marker names."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import MarkerInvalid, SourceFileGone
from tidegate.model.finding import Finding, FindingKind
from tidegate.model.revision_folder import partition_of
from tidegate.target.marker import is_hidden, read_marker

if TYPE_CHECKING:
    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.publication import CommitPlan
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.former_revisions import FormerRevisions
    from tidegate.pipeline.upkeep.fsck.ways_out import WaysOut
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Strays:
    """Looks for files that nobody put there, or that a lost commit did. Changes nothing."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch
    ways_out: WaysOut
    former: FormerRevisions

    def found(self, listed: set[str]) -> list[str]:
        """List files that no revision or commit names, neither before nor after the listing."""
        if self.config.target.is_of_kind.keeps_removed:
            # Older states of the table name them, and its own maintenance deletes them.
            return []
        root = self.roots.target
        left = self.watch.left_partitions
        found = [
            name
            for name in self.storage.list_files(root)
            if name not in listed and _partition_path(name) not in left
        ]
        if not found:
            return []
        states = self.ledger.partitions.all()
        known = set[str]().union(*map(self.expected_names, states))
        former = {
            self._below(folder) for it in states for _, _, folder in self.former.of(it.partition)
        }
        return [
            name
            for name in found
            if name not in known
            and posixpath.dirname(name) not in former
            and not self._is_of_another_tool(name)
            and self.storage.exists(f"{root}/{name}")
        ]

    def _is_of_another_tool(self, name: str) -> bool:
        """Return whether no reader sees a file and no pipeline wrote it: it does no harm."""
        folder, plain = _partition_path(name), posixpath.basename(name)
        if not is_hidden(f"{folder}/{plain}") or plain in {
            OWNER_FILE,
            self.config.commit.marker.name,
        }:
            return False
        if is_hidden(folder):
            return True
        path = f"{self.roots.target}/{name}"
        try:
            read_marker(path, self.storage.read_bytes(path))
        except (MarkerInvalid, SourceFileGone):
            return True
        return False

    def finding(self, name: str) -> Finding:
        """Return what is to be done with a file that was found."""
        path = f"{self.roots.target}/{name}"
        problem = f"{name}: stands in the table, and no revision or marker of the ledger names it"
        if self._is_of_later_commit(name):
            text = f"{problem}; {self.ways_out.restoring()} restores the commit that it is of"
        elif self._is_listed(name):
            text = (
                f"{name}: the marker beside it lists it, and no revision of the ledger does; "
                f"{self.ways_out.restoring()} brings the ledger up to date, or says what is lost"
            )
        elif waiting := self._waiting_for(name):
            text = f"{problem}; {self.ways_out.bringing_out(waiting, 'brings it')}"
        else:
            text = f"{problem}; move it out of the table, where readers that list files see it"
        return Finding(FindingKind.FILE_UNKNOWN, path, text)

    def _waiting_for(self, name: str) -> PartitionState | None:
        """Return the partition whose next revision adds a file."""
        folder, file = _partition_path(name), posixpath.basename(name)
        state = self._states.get(folder)
        if state is None or state.pending == "none":
            return None
        coming = self.contents.waiting(state.partition, state).adds
        return state if file in {item.name for item in coming} else None

    def _is_of_later_commit(self, name: str) -> bool:
        folder, file = _partition_path(name), posixpath.basename(name)
        return any(
            file in {plan.marker_name, *(part.name for part in plan.publication.content)}
            for plan in self.ways_out.later_plans(folder)
        )

    def _is_listed(self, name: str) -> bool:
        """Return whether the current marker lists a file, so that readers need it."""
        folder, file = _partition_path(name), posixpath.basename(name)
        state = self._states.get(folder)
        marker = self.watch.standing_marker(state.partition) if state else None
        return marker is not None and file in {item["name"] for item in marker["files"]}

    @functools.cached_property
    def _states(self) -> dict[str, PartitionState]:
        """The partitions by their paths; read once, however many files nobody knows."""
        return {state.partition.path: state for state in self.ledger.partitions.all()}

    def expected_names(self, state: PartitionState) -> set[str]:
        """Return the files of a current revision, and of one whose commit has begun."""
        standing = self.contents.standing_plan(state.partition)
        if standing is None:
            root = self.roots.partition(state.partition)
            found = {self._below(root, self.config.commit.marker.name)}
        else:
            found = self._names_of(standing)
        begun = self.ledger.publications.unrecorded(state.partition)
        if begun is not None:
            found |= self._names_of(self.contents.commit_plan(str(begun.commit_plan)))
        return found

    def _names_of(self, plan: CommitPlan) -> set[str]:
        folder = self.roots.revision(plan.publication)
        names = (plan.marker_name, *(file.name for file in plan.publication.content))
        return {self._below(folder, name) for name in names}

    def _below(self, *parts: str) -> str:
        return posixpath.relpath("/".join(parts), self.roots.target)


def _partition_path(name: str) -> str:
    """Return the path of the partition in which a file of a table is."""
    return partition_of(posixpath.dirname(name))
