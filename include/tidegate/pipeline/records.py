"""What files tell of a pipeline's past: announces, commit plans, verdicts, decisions.

Read from the work directory. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.publication import CommitPlan, DecisionRecord, GateRecord
from tidegate.model.sealed import SealedWindow
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.pipeline.work import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class SealedFile:
    """One `sealed.json` and the plan that it belongs to."""

    plan_uri: str
    sealed: SealedWindow


@dataclass(frozen=True)
class CommitFile:
    """One commit plan and where it stands, relative to the work directory."""

    path: str
    plan: CommitPlan


@dataclass(frozen=True)
class Records:
    """The records of one pipeline."""

    roots: Roots
    storage: Storage

    def sealed_windows(self) -> Iterator[int]:
        """Name the windows that have a directory, newest first."""
        names = self.storage.list_names(layout.windows_root(self.roots.work))
        return (int(name) for name in reversed(names) if name.isdecimal())

    def sealed(self, sequence: int) -> list[SealedFile]:
        """Read every announce of a window that was written down, in the order of their numbers."""
        root = layout.window_root(self.roots.work, sequence)
        found = [
            SealedFile(uri, SealedWindow.from_text(self.storage.read_bytes(f"{uri}/{name}")))
            for uri in (f"{root}/{plan}" for plan in self.storage.list_names(root))
            for name in self.storage.list_names(uri)
            if layout.is_sealed_file(name)
        ]
        return sorted(found, key=lambda item: item.sealed.number)

    def commits(self) -> Iterator[CommitFile]:
        """Read every commit plan."""
        for path in self._published(""):
            plan = CommitPlan.from_text(self.storage.read_bytes(path))
            yield CommitFile(layout.relative_to_work(self.roots.work, path), plan)

    def verdicts(self) -> Iterator[GateRecord]:
        """Read every verdict of the gate."""
        for path in self._published(".gate"):
            yield GateRecord.from_text(self.storage.read_bytes(path))

    def decisions(self) -> Iterator[DecisionRecord]:
        """Read every decision of a person."""
        for path in self._published(".decision"):
            yield DecisionRecord.from_text(self.storage.read_bytes(path))

    def _published(self, kind: str) -> Iterator[str]:
        root = f"{self.roots.work}/{layout.PUBLICATIONS}"
        for name in self.storage.list_files(root):
            plain = name.rpartition("/")[2].removesuffix(".json")
            found = plain[plain.rfind(".") :] if "." in plain else ""
            if found == kind and not plain.startswith("."):
                yield f"{root}/{name}"
