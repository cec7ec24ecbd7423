"""Compare table, markers and ledger, and find what nobody needs any more (PC-F40–F42)."""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import MarkerInvalid, TidegateError
from tidegate.model.message import CommitMessage
from tidegate.pipeline.work import check_owner
from tidegate.stage import layout
from tidegate.target.marker import read_marker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState, WindowState
    from tidegate.model.publication import PublishedFile
    from tidegate.pipeline.behind import Watch
    from tidegate.pipeline.content import Contents
    from tidegate.pipeline.work import Roots
    from tidegate.storage import Storage

_SWEPT = (layout.MESSAGES, layout.QUARANTINE, layout.STAGED, layout.EXCHANGE)
_WRITING = timedelta(hours=1)
"""A temporary file that is younger may belong to a process that lives."""


@dataclass(frozen=True)
class Garbage:
    """A file that may go."""

    path: str
    bytes: int
    reason: str


@dataclass(frozen=True)
class Inspector:
    """Looks at one pipeline's files.

    `sweep` alone changes anything, and only below the work directory.

    Failure: a sweep that is interrupted leaves some garbage; the next one takes it.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch

    def findings(self) -> Iterator[str]:
        """Say where files, markers and ledger disagree (PC-F41); nothing is repaired."""
        yield from self.watch.window_findings()
        listed = {OWNER_FILE}
        try:
            check_owner(self.roots, self.ledger, self.storage)
        except TidegateError as refused:
            yield str(refused)
        for state in self.ledger.partitions.all():
            if self.ledger.publications.unrecorded(state.partition) is not None:
                yield f"{state.partition}: a commit is under way; `tidegate publish` finishes it"
                listed |= self._expected_names(state)
                continue
            yield from self._partition_findings(state)
            listed |= self._expected_names(state)
        for name in self.storage.list_files(self.roots.target):
            if name not in listed:
                yield (
                    f"{name}: stands in the table, and no revision or marker of the ledger names it"
                )

    def garbage(self, now: datetime, older_than: timedelta) -> tuple[Garbage, ...]:
        """Find what no window, publication or hold needs, and that is old enough (PC-F40).

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: what lies there is another's.
            LedgerBehind: the ledger does not know what is needed.
        """
        check_owner(self.roots, self.ledger, self.storage)
        self.watch.check_all_windows()
        cutoff = now - older_than
        found = [*self._retired(), *self._left_over(cutoff)]
        young = min(cutoff, now - _WRITING)
        return (
            *(item for item in found if self._is_older(item.path, cutoff)),
            *(item for item in self._temporary() if self._is_older(item.path, young)),
        )

    def sweep(self, garbage: tuple[Garbage, ...]) -> None:
        """Delete what `garbage` found, in that order."""
        for folder, items in itertools.groupby(garbage, lambda item: posixpath.dirname(item.path)):
            for item in items:
                self.storage.delete(item.path)
            if posixpath.basename(folder) == layout.MESSAGES:
                # A power cut must not bring a message back whose files are gone by then.
                self.storage.sync(folder)

    def _partition_findings(self, state: PartitionState) -> Iterator[str]:
        root = self.roots.partition(state.partition)
        marker = f"{root}/{self.config.commit.marker.name}"
        standing = self.contents.standing(state.partition)
        if standing is None:
            if self.storage.exists(marker):
                yield f"{state.partition}: a marker stands, but the ledger has no revision"
            return
        for file in standing.content:
            yield from self._file_findings(f"{root}/{file.name}", file)
        if not self.storage.exists(marker):
            yield (
                f"{state.partition}: revision {state.revision} is recorded, but its marker is "
                f"missing"
            )
            return
        try:
            raw = read_marker(marker, self.storage.read_bytes(marker))
        except MarkerInvalid as broken:
            yield str(broken)
            return
        if raw["revision"] != state.revision:
            yield (
                f"{state.partition}: the marker says revision {raw['revision']}, the ledger "
                f"{state.revision}"
            )

    def _file_findings(self, path: str, file: PublishedFile) -> Iterator[str]:
        found = self.storage.length(path)
        if found is None:
            yield f"{path}: listed, but missing"
        elif found != file.length:
            yield f"{path}: expected {file.length} bytes, found {found}"
        elif self.storage.sha256(path) != file.sha256:
            yield f"{path}: has the length but not the bytes that were published"

    def _expected_names(self, state: PartitionState) -> set[str]:
        prefix = f"{state.partition.path}/" if state.partition.path else ""
        standing = self.contents.standing(state.partition)
        begun = self.ledger.publications.unrecorded(state.partition)
        names = [file.name for file in standing.content] if standing else []
        names += [file.name for file in begun.publication.adds] if begun else []
        return {f"{prefix}{name}" for name in [*names, self.config.commit.marker.name]}

    def _retired(self) -> Iterator[Garbage]:
        root = f"{self.roots.work}/{layout.RETIRED}"
        for name in self.storage.list_files(root):
            yield self._garbage(f"{root}/{name}", "replaced by a later revision")

    def _temporary(self) -> Iterator[Garbage]:
        for name in self.storage.list_files(self.roots.work):
            if name.rpartition("/")[2].startswith("."):
                path = f"{self.roots.work}/{name}"
                yield self._garbage(path, "being written when its process died")

    def _left_over(self, cutoff: datetime) -> Iterator[Garbage]:
        """Find attempts that lost, plans that were replaced or never announced.

        A window that somebody works on is left alone, also when that process is gone: its successor
        goes on with what is there.
        """
        for state in self.ledger.windows.all():
            if not state.sealed or state.owner is not None:
                continue
            root = layout.window_root(self.roots.work, state.window.sequence)
            needed = self._needed(state)
            for plan_digest, paths in self._staged_by_plan(root).items():
                free = [path for path in paths if path not in needed]
                if plan_digest == state.plan_digest:
                    messages = layout.messages_root(f"{root}/{plan_digest}")
                    for path in free:
                        if not path.startswith(messages):
                            yield self._garbage(path, "of an attempt that lost")
                # All or nothing: a message whose files went would be believed by a replay.
                elif all(self._is_older(path, cutoff) for path in paths):
                    for path in free:
                        yield self._garbage(path, "of a plan that is not in effect")

    def _staged_by_plan(self, root: str) -> dict[str, list[str]]:
        """Give exchanged rows, messages, quarantine, then parts of each plan of a window."""
        found: dict[str, list[str]] = {}
        for name in self.storage.list_files(root):
            plan_digest, _, inner = name.partition("/")
            if inner.startswith(_SWEPT):
                found.setdefault(plan_digest, []).append(f"{root}/{name}")
        return found

    def _needed(self, state: WindowState) -> set[str]:
        """Name the staged files of a window that a publication may still move.

        And its quarantine.
        """
        needed: set[str] = set()
        if state.plan_digest is None:
            return needed
        root = layout.plan_root(self.roots.work, state.window.sequence, state.plan_digest)
        for name in self.storage.list_files(layout.messages_root(root)):
            if name.startswith("."):
                continue
            path = f"{layout.messages_root(root)}/{name}"
            message = CommitMessage.from_text(self.storage.read_bytes(path))
            needed |= {f"{root}/{part.staged}" for part in (*message.parts, *message.quarantined)}
        for partition in self.ledger.partitions.all():
            begun = self.ledger.publications.unrecorded(partition.partition)
            if begun is not None:
                needed |= {f"{self.roots.work}/{file.staged}" for file in begun.publication.adds}
        return needed

    def _garbage(self, path: str, reason: str) -> Garbage:
        return Garbage(path, self.storage.length(path) or 0, reason)

    def _is_older(self, path: str, than: datetime) -> bool:
        changed = self.storage.modified(path)
        return changed is not None and changed < than
