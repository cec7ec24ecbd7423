"""Record the owner of a target in a hidden file at its root (design §4).

The file names pipeline, ledger and work directory, and is found through any link to the target, so
that no second pipeline can use the target by another path, work directory or ledger. Nothing is
ever removed.
"""

from __future__ import annotations

import functools
import json
import os
import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    LedgerLost,
    OwnerInvalid,
    OwnersDiffer,
    PlaceOwned,
    SourceFileGone,
    StorageDenied,
    TargetAround,
    TargetGone,
    TargetOwned,
    WorkOwned,
    WorkUnfit,
)
from tidegate.model.wire import pretty
from tidegate.storage import above, normal
from tidegate.target.marker import marked_by
from tidegate.target.retired import retirements

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.storage import Storage

    _Reading = Callable[[str], dict[str, Any] | None]
    """Returns the content of a file that names an owner; see `read_owner_file`."""

_FORMAT = 1


@dataclass(frozen=True)
class Owner:
    """The owner of a directory."""

    pipeline: str
    ledger: str
    """Id that the ledger assigned to the pipeline."""
    place: str | None = field(default=None, compare=False)
    """Where that ledger is, as the work directory says; None: not noted, or on a server."""


@dataclass(frozen=True)
class Claims:
    """What the files of a target and of a work directory say, each of them read once."""

    target: Owner | None
    """The owner of the target; None if it has no file."""
    work: Owner | None
    """The owner of the work directory; None if it has no file."""
    told_work: str
    """The work directory that the target's file names; the usual one if there is no file."""
    fits: bool
    """Whether that is the work directory in use."""


def read_owner_file(storage: Storage, path: str) -> dict[str, Any] | None:
    """Return the content of a file that names the owner of a directory.

    Returns:
        At least `pipeline` and `ledger`; None if there is no such file.

    Raises:
        OwnerInvalid: it has other content.
    """
    try:
        raw = _mapping(storage.read_bytes(path))
    except SourceFileGone:
        return None
    if raw.get("format") != _FORMAT or not {"pipeline", "ledger"} <= raw.keys():
        raise OwnerInvalid(path=path, found="another format" if raw else "no JSON object")
    return raw


@dataclass(frozen=True)
class Grounds:
    """A target and a work directory, with the files that name their owner.

    Runs on: any process. Called: at least once per load and publish.
    Failure: the target's file comes first; a crash after it leaves a work directory without its own
    file, which the next call of the same pipeline writes. If two pipelines write the target's file
    at once, one of them wins, and the other one finds the winner's name.
    """

    storage: Storage
    target: str
    work: str
    work_file: str
    """The file of the work directory, `owner.json`."""
    scratch: str
    table: str | None = None
    """The folder around the target that clean-ups of its table look through; None: the target."""

    @property
    def target_file(self) -> str:
        """The file at the target's root; hidden, so that readers skip it."""
        return f"{self.target}/{OWNER_FILE}"

    def check(
        self,
        pipeline: str,
        ledger: str | None,
        claims: Claims,
        worked_in: str | None = None,
        *,
        was_published: bool = True,
    ) -> bool:
        """Check that target and work directory belong to a pipeline. Writes nothing.

        A target of the previous format has markers and no file: it belongs to the pipeline that
        they name if that one also owns the work directory. All of its markers are read then, only
        once.

        Args:
            pipeline: its name.
            ledger: id that the ledger in use assigned to it; None if the ledger does not know it.
            claims: of both files, as `read` returned them.
            worked_in: work directory in which the ledger's windows were planned, if it has any.
            was_published: whether files may have been published to the target; a missing target
                that never had files is created again, because nothing is lost.

        Returns:
            Whether both files exist, so that nothing has to be written.

        Raises:
            TargetOwned: another pipeline publishes to the target, or to a directory above it.
            PlaceOwned: target or work directory are inside a directory of another pipeline.
            WorkUnfit: the target is published from another work directory.
            WorkOwned: another pipeline works in the work directory.
            LedgerLost: target or work directory belong to the pipeline in another ledger.
            OwnersDiffer: they belong to it in two ledgers.
            TargetGone: the target has no file, although the work directory is the pipeline's, and
                something was published.
            OwnerInvalid: one of the files has other content.
        """
        # Target and work directory are usually in the same directories.
        read = functools.cache(self._read)
        self._check_above(pipeline, read)
        self._check_around(pipeline, read)
        above, beside = claims.target, claims.work
        if above is None:
            self._check_marked(pipeline, beside, worked_in)
        else:
            self._check_target(above, claims, pipeline, worked_in)
        if beside is not None and beside.pipeline != pipeline:
            raise WorkOwned(work=self.work, owner=beside.pipeline, pipeline=pipeline)
        if above is not None and beside is not None and above.ledger != beside.ledger:
            raise OwnersDiffer(
                pipeline=pipeline,
                target_file=self.target_file,
                target_ledger=above.ledger,
                work_file=self.work_file,
                work_ledger=beside.ledger,
                # Only from a work directory can a ledger be restored.
                stranger=self.work_file if above.ledger == ledger else self.target_file,
            )
        for place, owner in ((self.target, above), (self.work, beside)):
            if owner is not None and owner.ledger != ledger:
                raise LedgerLost(pipeline=pipeline, place=place, expected=owner.ledger)
        # The target's file is written first.
        is_gone = above is None and beside is not None and was_published
        if is_gone and not self.storage.list_files(self.target):
            raise TargetGone(pipeline=pipeline, target=self.target)
        return above is not None and beside is not None

    def read(self) -> Claims:
        """Read both files.

        Raises:
            OwnerInvalid: one of the files has other content.
        """
        above, beside = self._read(self.target_file), self._read(self.work_file)
        told = self.work
        if above is not None:
            way = str(above.get("work"))
            told = way if "://" in way else f"{self.storage.real_path(self.target)}/{way}"
            told = normal(told)
        fits = told in {self.work, self.storage.real_path(self.work)}
        return Claims(_owner(above), _owner(beside), told, fits)

    def put(self, owner: Owner) -> None:
        """Write both files if they are missing; `check` then returns whose they became."""
        in_target = {**_named(owner), "work": self._way_to_work()}
        self.storage.write_once(self.target_file, pretty(in_target), self.scratch)
        if _owner(self._read(self.target_file)) == owner:
            self.storage.write_once(self.work_file, pretty(self._in_work(owner)))

    def note(self, owner: Owner) -> None:
        """Write the file of the work directory anew, in one step, with another place in it."""
        new = f"{self.scratch}/owner-{os.urandom(4).hex()}.json"
        self.storage.write_once(new, pretty(self._in_work(owner)))
        self.storage.replace(new, self.work_file)
        self.storage.sync(posixpath.dirname(self.work_file))

    def _in_work(self, owner: Owner) -> dict[str, Any]:
        place = {} if owner.place is None else {"ledger_place": owner.place}
        return {**_named(owner), **place, "target": self.target}

    def give_up(self) -> None:
        """Delete both files: target and work directory belong to nobody then."""
        for path in (self.target_file, self.work_file):
            self.storage.delete(path)

    def _check_above(self, pipeline: str, read: _Reading) -> None:
        """Check that no table above the target would list its files."""
        for folder in folders_above(self.storage, self.target):
            owner = _owner(read(f"{folder}/{OWNER_FILE}"))
            if owner is not None:
                raise TargetOwned(target=folder, owner=owner.pipeline, pipeline=pipeline)

    def _check_around(self, pipeline: str, read: _Reading) -> None:
        """Check that no table of another pipeline would list what is staged, nor its work be mixed.

        A file of the name of `owner.json` in any other directory may be anything.
        """
        work = self.storage.real_path(self.work)
        for folder in (work, *folders_above(self.storage, self.work)):
            owner = _owner(read(f"{folder}/{OWNER_FILE}"))
            if owner is not None and owner.pipeline != pipeline:
                self._refuse("target.work", self.work, folder, "table", owner, pipeline)
        target, name = self.storage.real_path(self.target), posixpath.basename(self.work_file)
        for key, place, folders in (
            ("target.path", self.target, (target, *folders_above(self.storage, self.target))),
            ("target.work", self.work, folders_above(self.storage, self.work)),
        ):
            for folder in folders:
                owner = _owner_of_work(read, f"{folder}/{name}")
                if owner is not None and owner.pipeline != pipeline:
                    self._refuse(key, place, folder, "work directory", owner, pipeline)

    def _refuse(
        self, key: str, place: str, folder: str, what: str, owner: Owner, pipeline: str
    ) -> None:
        raise PlaceOwned(
            pipeline=pipeline, key=key, place=place, folder=folder, what=what, owner=owner.pipeline
        )

    def _check_target(
        self, owner: Owner, claims: Claims, pipeline: str, worked_in: str | None
    ) -> None:
        if owner.pipeline != pipeline:
            raise TargetOwned(target=self.target, owner=owner.pipeline, pipeline=pipeline)
        if not claims.fits:
            fits = claims.told_work
            if worked_in is not None and not self.storage.exists(fits):
                # The target was moved alone.
                fits = worked_in
            raise WorkUnfit(pipeline=pipeline, target=self.target, work=self.work, fits=fits)

    def _check_marked(self, pipeline: str, beside: Owner | None, worked_in: str | None) -> None:
        marked = self._pipelines()
        for other in sorted(marked.keys() - {pipeline}):
            below = marked[other]
            if below is not None:
                raise TargetAround(target=self.target, owner=other, pipeline=pipeline, below=below)
            raise TargetOwned(target=self.target, owner=other, pipeline=pipeline)
        if beside is not None or not (marked or worked_in):
            return
        fits = worked_in or "the directory with its `owner.json`"
        if worked_in is None or self.storage.real_path(fits) != self.storage.real_path(self.work):
            raise WorkUnfit(pipeline=pipeline, target=self.target, work=self.work, fits=fits)

    def _way_to_work(self) -> str:
        """Return the path from the target to the work directory, independent of mount points.

        It has an address if no way leads there, because it is in another bucket.
        """
        work, target = self.storage.real_path(self.work), self.storage.real_path(self.target)
        way = posixpath.relpath(work, target)
        return way if normal(f"{target}/{way}") == work else work

    def _pipelines(self) -> dict[str, str | None]:
        """Return whose markers are in the target, and what else is theirs below it.

        Returns:
            Pipeline → a directory that is its own, its table first; None if it has markers alone.
        """
        tables, works, marked = dict[str, str](), dict[str, str](), dict[str, None]()
        root = self.table or self.target
        for name in self.storage.list_files(root):
            path = f"{root}/{name}"
            if name.endswith(f"/{OWNER_FILE}"):
                owner, own = _owner(self._read(path)), tables
            elif name.endswith(f"/{posixpath.basename(self.work_file)}"):
                owner, own = owner_of_work(self.storage, path), works
            else:
                other = marked_by(self.storage, root, name)
                marked |= {other: None} if other is not None else {}
                continue
            if owner is not None:
                own.setdefault(owner.pipeline, posixpath.dirname(path))
        ended = {item.pipeline for item in retirements(self.storage, self.target)}
        found = {**marked, **works, **tables}
        return {name: folder for name, folder in found.items() if name not in ended}

    def _read(self, path: str) -> dict[str, Any] | None:
        return read_owner_file(self.storage, path)


def folders_above(storage: Storage, place: str) -> tuple[str, ...]:
    """Return the directories that a place is in, by real path, the innermost first."""
    return tuple(folder for folder in above(storage.real_path(place)) if folder != "/")


def owner_of_work(storage: Storage, path: str) -> Owner | None:
    """Return who works in a directory, by a file that may be of something else altogether."""
    return _owner_of_work(functools.partial(read_owner_file, storage), path)


def _owner_of_work(read: _Reading, path: str) -> Owner | None:
    try:
        raw = read(path)
    except (OwnerInvalid, StorageDenied):
        return None
    return _owner(raw) if raw is not None and "target" in raw else None


def _owner(raw: dict[str, Any] | None) -> Owner | None:
    if raw is None:
        return None
    place = raw.get("ledger_place")
    return Owner(str(raw["pipeline"]), str(raw["ledger"]), None if place is None else str(place))


def _named(owner: Owner) -> dict[str, Any]:
    return {"format": _FORMAT, "pipeline": owner.pipeline, "ledger": owner.ledger}


def _mapping(content: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) else {}
