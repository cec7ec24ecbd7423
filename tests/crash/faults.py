"""Stop this process before or after its n-th change of a disk or a database.

Find changes that went past.

A change is a system call of `OsCalls`, a statement that changes rows, or the end of a transaction.
Nothing of this is in the product: storage takes its system calls as a value, and SQLAlchemy tells
of its
statements.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from tidegate.storage import LocalStorage, OsCalls, S3Options, Stores
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crash.power import Disk

CHANGES = ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LOOKS = {"scan", "status"}
_REQUESTS = {
    "abort_upload",
    "begin_upload",
    "complete_upload",
    "copy",
    "delete",
    "delete_many",
    "put",
    "upload_part",
}
_WATCHED = {
    "os.mkdir",
    "os.rmdir",
    "os.remove",
    "os.rename",
    "os.link",
    "os.symlink",
    "os.truncate",
    "shutil.move",
    "shutil.copyfile",
    "shutil.rmtree",
}


@dataclass
class Stopper:
    """Numbers every change from 1, and dies at one of them."""

    at: int | None = None
    side: str = "before"
    made: list[str] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)
    """Files are forced to the disk by several threads: one change at a time."""
    between: Callable[[], None] | None = None
    """Called between any two changes."""
    dying: Callable[[], None] | None = None
    """Called before this process is killed."""
    disk: Disk | None = None
    """Follows the changes, where somebody wants to know what a power cut would leave."""

    @contextlib.contextmanager
    def change(self, name: str) -> Iterator[None]:
        """Surround one change."""
        with self.turn:
            self.made.append(name)
            number = len(self.made)
            if self.between is not None:
                self.between()
            if number == self.at and self.side == "before":
                self._die()
            try:
                yield
            finally:
                # A call may fail and be right: the first marker of a partition retracts none.
                if number == self.at and self.side == "after":
                    self._die()

    def _die(self) -> None:
        if self.dying is not None:
            self.dying()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class StoppingCalls(OsCalls):
    """`OsCalls` with each call numbered."""

    stopper: Stopper = field(default_factory=Stopper, hash=False, compare=False)
    inside: list[bool] = field(default_factory=list, hash=False, compare=False)

    def __getattribute__(self, name: str) -> Any:
        """Number the calls that change something: all that `OsCalls` has but those that look."""
        found = super().__getattribute__(name)
        if name.startswith("_") or name not in vars(OsCalls) or name in _LOOKS:
            return found

        def numbered(*arguments: Any) -> Any:
            with self.stopper.change(f"{name} {_subject(arguments)}"):
                self.inside.append(True)
                try:
                    given = found(*arguments)
                    if self.stopper.disk is not None:
                        self.stopper.disk.note(name, arguments, given)
                    return given
                finally:
                    self.inside.pop()

        return numbered

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave numbering behind when a task takes this elsewhere: the driver is counted."""
        return (OsCalls, ())


@dataclass(frozen=True)
class StoppingRequests(S3Calls):
    """`S3Calls` with each request numbered that changes something."""

    stopper: Stopper = field(default_factory=Stopper, hash=False, compare=False)

    def __getattribute__(self, name: str) -> Any:
        """Number the requests that change something."""
        found = super().__getattribute__(name)
        if name not in _REQUESTS:
            return found

        def numbered(*arguments: Any, **options: Any) -> Any:
            with self.stopper.change(f"{name} {arguments[0]}"):
                return found(*arguments, **options)

        return numbered

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave numbering behind when a task takes this elsewhere: the driver is counted."""
        return (S3Calls, (self.options,))


def stopping_storage(stopper: Stopper) -> LocalStorage:
    """Give a storage that numbers its changes."""
    return LocalStorage(StoppingCalls(stopper))


def stopping_stores(stopper: Stopper, disk: LocalStorage, options: S3Options) -> Stores:
    """Give a store that numbers its changes, beside a disk that does."""
    return Stores(disk, S3Storage(StoppingRequests(options, stopper)))


def watch_database(engine: sa.Engine, stopper: Stopper) -> None:
    """Number every statement that changes rows, and every end of a transaction that had one."""
    running: list[contextlib.AbstractContextManager[None]] = []

    @event.listens_for(engine, "before_cursor_execute")
    def _before(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().upper().startswith(CHANGES):
            surrounding = stopper.change(" ".join(statement.split()[:3]))
            surrounding.__enter__()
            running.append(surrounding)

    @event.listens_for(engine, "after_cursor_execute")
    def _after(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().upper().startswith(CHANGES):
            running.pop().__exit__(None, None, None)

    commit = engine.dialect.do_commit

    def numbered_commit(connection: Any) -> None:
        with stopper.change("COMMIT"):
            commit(connection)
            if stopper.disk is not None:
                stopper.disk.note_commit(connection)

    engine.dialect.do_commit = numbered_commit  # type: ignore[method-assign]


def forbid_other_changes(root: str, calls: StoppingCalls) -> None:
    """Die when anything below `root` is changed other than through `calls`.

    The ledger's own files are SQLite's; its statements are watched instead.
    """

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if calls.inside:
            return
        if name == "open":
            path, _mode, flags = arguments
            changes = isinstance(flags, int) and flags & _WRITES
        elif name in _WATCHED:
            path, changes = arguments[0], True
        else:
            return
        if changes and isinstance(path, str | bytes) and os.fsdecode(path).startswith(root):
            sys.stderr.write(f"changed past the storage: {name} {arguments}\n")
            sys.stderr.flush()
            os._exit(99)

    sys.addaudithook(hook)


def _subject(arguments: tuple[Any, ...]) -> str:
    return " ".join(item.rpartition("/")[2] for item in arguments if isinstance(item, str))
