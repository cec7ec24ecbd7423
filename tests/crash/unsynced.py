"""Deliberate mistakes of another kind: what has to be forced to the disk is not, or too late.

Only a power cut shows them, at some deaths of a life. Each is made in the process that calls it.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

from tidegate.commit.publisher import Publisher
from tidegate.ledger import connect
from tidegate.pipeline.load.announce import Announcer
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

    from tidegate.model.publication import Publication


def _leave_out(where: type, method: str, skips: Callable[[str, Any], bool]) -> None:
    """Let some calls of `sync` do nothing while a method runs.

    Args:
        where: class of the method.
        method: its name.
        skips: tells by the path and the method's first argument which.
    """
    right, sync = getattr(where, method), LocalStorage.sync
    running: list[Any] = []

    def wrong(self: Any, *arguments: Any, **named: Any) -> Any:
        running.append(arguments[0])
        try:
            return right(self, *arguments, **named)
        finally:
            running.pop()

    def sometimes(self: LocalStorage, path: str) -> None:
        if not running or not skips(path, running[-1]):
            sync(self, path)

    setattr(where, method, wrong)
    LocalStorage.sync = sometimes  # type: ignore[method-assign]


def content() -> None:
    """Give a file its name before its bytes are on the disk."""
    _leave_out(LocalStorage, "write_once", lambda path, _: posixpath.basename(path).startswith("."))


def name() -> None:
    """Do not wait for the name of a file that is written once."""
    _leave_out(LocalStorage, "write_once", lambda path, written: path == posixpath.dirname(written))


def new_folder() -> None:
    """Do not wait for the name of a new directory."""
    _leave_out(LocalStorage, "make_dirs", lambda *_: True)


def staged() -> None:
    """Do not wait for part files."""
    _leave_out(LocalStorage, "sync_all", lambda path, _: path.endswith(".parquet"))


def staged_folder() -> None:
    """Do not wait for the directory of a plan, in which the first part makes others."""
    _leave_out(LocalStorage, "sync_all", lambda path, _: path.endswith("/"))


def quarantined() -> None:
    """Do not wait for rows that were put aside."""
    _leave_out(LocalStorage, "sync_all", lambda path, _: "/quarantine/" in path)


def swept_exchange() -> None:
    """Do not wait until the rows that sub-splits handed each other are gone."""
    _leave_out(Announcer, "_seal", lambda path, item: path == item.uri)


def moved() -> None:
    """Take the old names of moved files away before the new ones are on the disk."""
    _leave_out(Publisher, "_move", lambda *_: True)


def moved_late() -> None:
    """Wait for the new names of moved files, but take the old ones away before."""

    def wrong(self: Publisher, publication: Publication, coming: Any) -> None:
        self.storage.make_dirs(self.places.partition_root)
        for file in publication.adds:
            staged = f"{self.places.work}/{file.staged}"
            if file in coming.staged:
                self.storage.link_new(staged, f"{self.places.partition_root}/{file.name}")
            self.storage.delete(staged)
        self.storage.sync(self.places.partition_root)

    Publisher._move = wrong  # type: ignore[method-assign]


def retraction() -> None:
    """Begin to move files before the marker is gone from the disk."""
    _leave_out(Publisher, "_retract", lambda *_: True)


def late_retraction() -> None:
    """Retract the marker after the files were moved."""
    retract, move = Publisher._retract, Publisher._move
    names: list[str] = []

    def wrong(self: Publisher, publication: Publication, unfinished: Any) -> None:
        move(self, publication, unfinished)
        retract(self, names.pop())

    Publisher._retract = lambda _self, marker_name: names.append(marker_name)  # type: ignore[method-assign]
    Publisher._move = wrong  # type: ignore[method-assign]


def ledger() -> None:
    """Let commits of the ledger wait for the disk when they find the time."""
    prepare = connect._prepare_sqlite

    def wrong(engine: sa.Engine) -> None:
        prepare(engine)

        @event.listens_for(engine, "connect")
        def _hurry(connection: Any, _record: Any) -> None:
            connection.execute("PRAGMA synchronous=NORMAL")

    connect._prepare_sqlite = wrong


@dataclass(frozen=True)
class Mistake:
    """A mistake and the deaths at which the walk has to see it."""

    make: Callable[[], None]
    cut: str | None
    """What the power takes along; None: nothing, the order alone is wrong."""
    named: str = "the end"
    """How the change begins that is not made any more."""
    after: str = ""
    """How the change before begins."""
    scenario: str = "appends"
    most: int = 8
    """How many deaths are enough."""


UNSYNCED = {
    "content": Mistake(content, "lost"),
    "name": Mistake(name, "lost"),
    "new-folder": Mistake(new_folder, "lost"),
    "staged": Mistake(staged, "lost"),
    "staged-folder": Mistake(staged_folder, "lost", "create .sealed", scenario="changes"),
    "quarantined": Mistake(quarantined, "lost"),
    "swept-exchange": Mistake(swept_exchange, "lost", scenario="changes"),
    "moved": Mistake(moved, "gone", "create ._SUCCESS", most=1),
    "moved-late": Mistake(moved_late, "gone", "", after="unlink part", most=1),
    "retraction": Mistake(retraction, "doubled", "sync", after="link part"),
    "late-retraction": Mistake(late_retraction, None, "unlink _SUCCESS"),
    "ledger": Mistake(ledger, "lost"),
}
