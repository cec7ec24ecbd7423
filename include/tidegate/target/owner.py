"""Who owns a target: a hidden file at its root says so (design §4).

It names pipeline, ledger and work directory, and is found through whatever link leads to the
target, so that no second pipeline comes in by another path, work directory or ledger. Takes nothing
back: what was put there stays.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    LedgerLost,
    OwnerInvalid,
    TargetGone,
    TargetOwned,
    WorkOwned,
    WorkUnfit,
)
from tidegate.model.wire import pretty

if TYPE_CHECKING:
    from tidegate.storage import Storage

_FORMAT = 1


@dataclass(frozen=True)
class Owner:
    """Whose a directory is."""

    pipeline: str
    ledger: str
    """Id that the pipeline's ledger gave it."""


@dataclass(frozen=True)
class Grounds:
    """A target and a work directory, with the files that say whose they are.

    Runs on: any process. Called: at least once per load and publish.
    Failure: the target's file comes first; a crash behind it leaves a work directory without its
    own, which the next call of the same pipeline writes. Two that put the target's file at once
    have one winner, and the other one finds the winner's name.
    """

    storage: Storage
    target: str
    work: str
    work_file: str
    """Of the work directory: `owner.json`."""
    scratch: str

    @property
    def target_file(self) -> str:
        """The file at the target's root; hidden, so that readers skip it."""
        return f"{self.target}/{OWNER_FILE}"

    def check(
        self,
        pipeline: str,
        ledger: str | None,
        worked_in: str | None = None,
        *,
        was_published: bool = True,
    ) -> bool:
        """Check that target and work directory are a pipeline's own. Writes nothing.

        A target of the version before has markers and no file: it belongs to whom they name, if
        the work directory is his, too. All its markers are read then, once in its life.

        Args:
            pipeline: its name.
            ledger: id that the ledger in use gave it; None if it does not know it.
            worked_in: work directory that the ledger's windows were planned in, if it has any.
            was_published: whether files may have come into the target; one that never had any is
                made anew, since nothing is lost with it.

        Returns:
            Whether both files stand, so that nothing has to be put.

        Raises:
            TargetOwned: another pipeline publishes into the target, or into a directory above it.
            WorkUnfit: the target is published from another work directory.
            WorkOwned: another pipeline works in the work directory.
            LedgerLost: target or work directory belong to the pipeline in another ledger.
            TargetGone: the target has no file, although the work directory is the pipeline's, and
                something was published.
            OwnerInvalid: one of the files says something else.
        """
        self._check_above(pipeline)
        above, beside = self.of_target(), self.of_work()
        if above is None:
            self._check_marked(pipeline, beside, worked_in)
        else:
            self._check_target(above, pipeline)
        if beside is not None and beside.pipeline != pipeline:
            raise WorkOwned(work=self.work, owner=beside.pipeline, pipeline=pipeline)
        for owner in (above, beside):
            if owner is not None and owner.ledger != ledger:
                raise LedgerLost(pipeline=pipeline, target=self.target, expected=owner.ledger)
        # The target's file is put first.
        is_gone = above is None and beside is not None and was_published
        if is_gone and not self.storage.list_files(self.target):
            raise TargetGone(pipeline=pipeline, target=self.target)
        return above is not None and beside is not None

    def put(self, owner: Owner) -> None:
        """Write both files where they are missing; `check` says afterwards whose they became."""
        named = {"format": _FORMAT, "pipeline": owner.pipeline, "ledger": owner.ledger}
        in_target = {**named, "work": self._way_to_work()}
        self.storage.write_once(self.target_file, pretty(in_target), self.scratch)
        if self.of_target() == owner:
            in_work = {**named, "target": self.target}
            self.storage.write_once(self.work_file, pretty(in_work))

    def of_target(self) -> Owner | None:
        """Read who owns the target, None if nobody has said so yet."""
        return self._owner(self.target_file)

    def of_work(self) -> Owner | None:
        """Read who owns the work directory, None if nobody has said so yet."""
        return self._owner(self.work_file)

    def _check_above(self, pipeline: str) -> None:
        """Make sure that no table above the target would list its files."""
        folder = posixpath.dirname(self.storage.real_path(self.target))
        while folder != posixpath.dirname(folder):
            owner = self._owner(f"{folder}/{OWNER_FILE}")
            if owner is not None:
                raise TargetOwned(target=folder, owner=owner.pipeline, pipeline=pipeline)
            folder = posixpath.dirname(folder)

    def _check_target(self, owner: Owner, pipeline: str) -> None:
        if owner.pipeline != pipeline:
            raise TargetOwned(target=self.target, owner=owner.pipeline, pipeline=pipeline)
        way = str(self._read(self.target_file).get("work"))
        if way != self._way_to_work():
            fits = posixpath.normpath(f"{self.storage.real_path(self.target)}/{way}")
            raise WorkUnfit(pipeline=pipeline, target=self.target, work=self.work, fits=fits)

    def _check_marked(self, pipeline: str, beside: Owner | None, worked_in: str | None) -> None:
        marked = self._marked_by()
        for other in sorted(marked - {pipeline}):
            raise TargetOwned(target=self.target, owner=other, pipeline=pipeline)
        if beside is not None or not (marked or worked_in):
            return
        fits = worked_in or "the directory with its `owner.json`"
        if worked_in is None or self.storage.real_path(fits) != self.storage.real_path(self.work):
            raise WorkUnfit(pipeline=pipeline, target=self.target, work=self.work, fits=fits)

    def _way_to_work(self) -> str:
        """Name the work directory as seen from the target: both may be mounted elsewhere."""
        work, target = self.storage.real_path(self.work), self.storage.real_path(self.target)
        return posixpath.relpath(work, target)

    def _marked_by(self) -> set[str]:
        """Name the pipelines of markers in the target, however called, and of targets below it."""
        found = set()
        for name in self.storage.list_files(self.target):
            if name.endswith(f"/{OWNER_FILE}"):
                found.add(str(self._read(f"{self.target}/{name}")["pipeline"]))
            elif posixpath.basename(name).startswith(("_", ".")):
                raw = _mapping(self.storage.read_bytes(f"{self.target}/{name}"))
                if {"pipeline", "revision", "files"} <= raw.keys():
                    found.add(str(raw["pipeline"]))
        return found

    def _owner(self, path: str) -> Owner | None:
        if not self.storage.exists(path):
            return None
        raw = self._read(path)
        return Owner(str(raw["pipeline"]), str(raw["ledger"]))

    def _read(self, path: str) -> dict[str, Any]:
        raw = _mapping(self.storage.read_bytes(path))
        if raw.get("format") != _FORMAT or not {"pipeline", "ledger"} <= raw.keys():
            raise OwnerInvalid(path=path, found="another format" if raw else "no JSON object")
        return raw


def _mapping(content: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(content)
    except ValueError:
        return {}
    return raw if isinstance(raw, dict) else {}
