"""Say how a person mends what was found wrong with a partition."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import SourceFileGone
from tidegate.errors.commands import command
from tidegate.pipeline.state.records import Records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import CommitPlan, PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class WaysOut:
    """Words remedies for what one inspection finds. Changes nothing."""

    pipeline: str
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents

    def doing_without(self, state: PartitionState, file: PublishedFile) -> str:
        """Return how to publish a partition without a file that cannot be recovered."""
        next_one = self.contents.waiting(state.partition, state)
        if file.name in {kept.name for kept in next_one.content}:
            again = self.typed("rebuild", state.partition)
            published = self.typed("publish", state.partition)
            return f"read its rows with {again} and bring them out with {published}"
        return self.bringing_out(state, "does without it")

    def bringing_out(self, state: PartitionState, what: str) -> str:
        """Return how the next revision of a partition is published, and what it does."""
        if state.pending == "held":
            explain = self.typed("explain", state.partition)
            return f"decide on the next revision, which {what}: {explain} says how"
        published = self.typed("publish", state.partition)
        return f"bring out the next revision, which {what}, with {published}"

    def replacing(self, marker: str, state: PartitionState) -> str:
        """Return how a marker that is not the ledger's may have been written."""
        try:
            content = self.storage.read_bytes(marker)
        except SourceFileGone:
            content = b""
        newer = (plan.marker.encode() for plan in self.later_plans(state.partition.path))
        if content in newer:
            return f"{self.restoring()} brings the ledger up to date"
        away = f"move {marker} away"
        if not state.revision:
            return away
        return f"{away}, then {self.writing_again(state.partition)}"

    def writing_again(self, partition: Partition) -> str:
        """Return how to write a marker again: by the commit of the current files."""
        published = self.typed("publish", partition)
        return (
            f"{self.restoring()} finds the commit; after that, {published} writes its marker again"
        )

    def later_plans(self, folder: str) -> Sequence[CommitPlan]:
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

    def typed(self, verb: str, partition: Partition) -> str:
        """Return a command for one partition, to be shown."""
        return f"`{command(verb, self.pipeline, partition)}`"

    def restoring(self) -> str:
        """Return the command that makes a ledger of the files of the work directory."""
        return f"`{command('fsck', self.pipeline, '--rebuild')}`"
