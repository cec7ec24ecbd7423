"""Find files in a table that no revision or marker names."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import MarkerInvalid, SourceFileGone
from tidegate.model.finding import Finding, FindingKind
from tidegate.target.marker import is_hidden, read_marker

if TYPE_CHECKING:
    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
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

    def found(self, listed: set[str]) -> list[str]:
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
        known = set[str]().union(*map(self.expected_names, self.ledger.partitions.all()))
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
        folder, _, file = name.rpartition("/")
        state = self._states.get(folder)
        if state is None or state.pending == "none":
            return None
        coming = self.contents.waiting(state.partition, state).adds
        return state if file in {item.name for item in coming} else None

    def _is_of_later_commit(self, name: str) -> bool:
        folder, _, file = name.rpartition("/")
        return any(
            file in {plan.marker_name, *(part.name for part in plan.publication.content)}
            for plan in self.ways_out.later_plans(folder)
        )

    def _is_listed(self, name: str) -> bool:
        """Return whether the current marker lists a file, so that readers need it."""
        folder, _, file = name.rpartition("/")
        state = self._states.get(folder)
        marker = self.watch.standing_marker(state.partition) if state else None
        return marker is not None and file in {item["name"] for item in marker["files"]}

    @functools.cached_property
    def _states(self) -> dict[str, PartitionState]:
        """The partitions by their paths; read once, however many files nobody knows."""
        return {state.partition.path: state for state in self.ledger.partitions.all()}

    def expected_names(self, state: PartitionState) -> set[str]:
        """Return the files of a current revision, and of one whose commit has begun."""
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
