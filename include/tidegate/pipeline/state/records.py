"""The records of a pipeline's past in files: announces, commit plans, verdicts, decisions.

Read from the work directory. Changes nothing.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StateFileLost
from tidegate.model.publication import CommitPlan, DecisionRecord, GateRecord
from tidegate.model.sealed import SealedWindow
from tidegate.pipeline.state.abandoned import abandonment_of
from tidegate.pipeline.state.kept_values import KeptValues
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.model.partition import Partition
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage

_NO_NUMBER = -1
_PLANS, _VERDICTS, _DECISIONS = ("",), (".gate",), (".decision",)
"""The part before `.json` in the names of records."""


_ANNOUNCES_KEPT = 10_000
"""Facts of announces that are kept in memory, a few hundred bytes each."""


@dataclass(frozen=True)
class SealedFile:
    """One `sealed.json` and the plan that it belongs to."""

    plan_uri: str
    sealed: SealedWindow


@dataclass(frozen=True)
class Announced:
    """What orders an announce among the others, without what it announced."""

    sequence: int
    plan_digest: str
    number: int


@dataclass(frozen=True)
class CommitFile:
    """One commit plan and its path, relative to the work directory."""

    path: str
    plan: CommitPlan


@dataclass(frozen=True)
class Records:
    """The records of one pipeline."""

    roots: Roots
    storage: Storage

    def windows(self) -> Sequence[int]:
        """Return the windows that have a directory, newest first."""
        names = self.storage.list_names(layout.windows_root(self.roots.work))
        # By number: the names of the first million are of one length, those after them are longer.
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def plans(self) -> dict[str, int]:
        """Return the digest of each plan that has a directory, and its window."""
        return {
            digest: sequence
            for sequence in self.windows()
            for digest in self.storage.list_names(layout.window_root(self.roots.work, sequence))
        }

    def sealed(self, sequence: int) -> list[SealedFile]:
        """Read every announce of a window that was written down, in the order of their numbers."""
        found = []
        for path, given_up in self._sealed_files(sequence):
            with contextlib.suppress(StateFileLost):
                sealed = read_stored(self.storage, path, SealedWindow)
                if sealed.number > given_up:
                    found.append(SealedFile(path.rpartition("/")[0], sealed))
        return sorted(found, key=lambda item: item.sealed.number)

    def newest_announced(self, sequence: int) -> Announced | None:
        """Return the newest announce of a window that was written down; None if there is none.

        Each file is decoded once by these records: each partition of a window asks several times.
        """
        found = []
        for path, given_up in self._sealed_files(sequence):
            with contextlib.suppress(StateFileLost):
                announced = self._announces.get(path)
                found += [announced] if announced.number > given_up else []
        # The last one of equal numbers: announces of early versions have none.
        return max(reversed(found), key=lambda item: item.number, default=None)

    def _sealed_files(self, sequence: int) -> Iterator[tuple[str, int]]:
        """Yield the paths of the announces of a window, and up to which number none counts.

        Processes that had lost the window may have written them after their plan was abandoned. A
        file that disappears between listing and reading was never announced: a sweep deletes only
        such files.
        """
        root = layout.window_root(self.roots.work, sequence)
        for uri in (f"{root}/{plan}" for plan in self.storage.list_names(root)):
            listed = self.storage.list_names(uri)
            names = [*filter(layout.is_sealed_file, listed)]
            record = abandonment_of(self.storage, uri, listed) if names else None
            for name in names:
                yield f"{uri}/{name}", record.number if record is not None else _NO_NUMBER

    @functools.cached_property
    def _announces(self) -> KeptValues[Announced]:
        return KeptValues(self.storage, self._read_announced, lambda _: 1, _ANNOUNCES_KEPT)

    def _read_announced(self, path: str) -> Announced:
        sealed = read_stored(self.storage, path, SealedWindow)
        return Announced(sealed.window.sequence, sealed.plan_digest, sealed.number)

    def commits(self) -> Iterator[CommitFile]:
        """Read every commit plan."""
        for path in self._published(_PLANS):
            plan = read_stored(self.storage, path, CommitPlan)
            yield CommitFile(layout.relative_to_work(self.roots.work, path), plan)

    def commit_paths(self, partition: Partition) -> Iterator[str]:
        """Yield the paths of a partition's commit plans, relative to the work directory."""
        for path in self._published(_PLANS, partition):
            yield layout.relative_to_work(self.roots.work, path)

    def verdicts(self) -> Iterator[GateRecord]:
        """Read every verdict of the gate."""
        for path in self._published(_VERDICTS):
            yield read_stored(self.storage, path, GateRecord)

    def decisions(self) -> Iterator[DecisionRecord]:
        """Read every decision of a person."""
        for path in self._published(_DECISIONS):
            yield read_stored(self.storage, path, DecisionRecord)

    def of_partition(self, partition: Partition) -> list[str]:
        """List the commit plans, verdicts and decisions of a partition."""
        return [*self._published(_PLANS + _VERDICTS + _DECISIONS, partition)]

    def newest_commit(
        self,
        partition: Partition,
        listed: Iterable[str] | None = None,
        known: CommitPlan | None = None,
    ) -> CommitPlan | None:
        """Read the last commit plan of a partition; None if there is none.

        Args:
            partition: the partition.
            listed: what `of_partition` returned a moment ago; None: it is listed here.
            known: a plan of it that need not be read again.
        """
        listed = self.of_partition(partition) if listed is None else listed
        paths = (path for path in listed if _kind_of(path) in _PLANS)
        newest = max(paths, key=layout.order_of_record, default=None)
        if newest is None:
            return None
        if known is not None:
            made = known.publication
            record = f"{made.digest}-{known.number}"
            work = self.roots.work
            if newest == layout.publication_file(work, partition, made.revision, record):
                return known
        return read_stored(self.storage, newest, CommitPlan)

    def newest_number(
        self, partition: Partition, listed: Iterable[str] | None = None
    ) -> tuple[int, str]:
        """Find the greatest number that a commit plan, verdict or decision was written under.

        Args:
            partition: the partition.
            listed: what `of_partition` returned a moment ago; None: it is listed here.

        Returns:
            The number, and which file has it, relative to the work directory; 0 if none has one.
        """
        found = (
            (layout.order_of_record(path)[1], layout.relative_to_work(self.roots.work, path))
            for path in (self.of_partition(partition) if listed is None else listed)
        )
        return max(found, default=(0, ""))

    def _published(self, kinds: Sequence[str], partition: Partition | None = None) -> Iterator[str]:
        root = f"{self.roots.work}/{layout.PUBLICATIONS}"
        if partition is not None:
            root = layout.publications_root(self.roots.work, partition)
        for name in self.storage.list_files(root):
            if _kind_of(name) in kinds and not name.rpartition("/")[2].startswith("."):
                yield f"{root}/{name}"


def _kind_of(path: str) -> str:
    plain = path.rpartition("/")[2].removesuffix(".json")
    return plain[plain.rfind(".") :] if "." in plain else ""
