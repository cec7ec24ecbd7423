"""Use a home's PostgreSQL: it is started by its first user and stopped after its last one."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import re
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tidegate.errors import PostgresNotStarted
from tidegate.ledger.embedded import stopper
from tidegate.ledger.embedded.cluster import (
    DATABASES,
    USER,
    check_version,
    create_cluster,
    data_folder,
    own,
)
from tidegate.ledger.embedded.locks import held, is_alone, starting, take, using
from tidegate.ledger.embedded.programs import Programs, find_programs
from tidegate.ledger.embedded.stopper import server_process, stop

AIRFLOW, LEDGER = DATABASES
_PORT = 5432
_LONGEST_SOCKET = 107
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
"""Paths that need no quotes in a URL, a list of PostgreSQL's, or a shell."""
_ROOMS = "/tmp"
"""For sockets; not TMPDIR, because every user of a server has to look in the same place."""

_in_use: dict[tuple[int, Path], IO[bytes]] = {}
"""The shared locks of this process; a process that was forked takes its own."""


@dataclass(frozen=True)
class EmbeddedServer:
    """A server; it listens on a socket that only its user can reach."""

    folder: Path
    socket_folder: Path

    @classmethod
    def of(cls, folder: Path) -> EmbeddedServer:
        """Return the server of a folder, whether it runs or not."""
        folder = folder.absolute()
        return cls(folder, _socket_folder(folder))

    def url(self, database: str, driver: str = "psycopg") -> str:
        """Return SQLAlchemy's URL of a database."""
        # The port is named because PGPORT would change it.
        place = f"host={self.socket_folder}&port={_PORT}"
        return f"postgresql+{driver}://{USER}@/{database}?{place}"

    @property
    def log(self) -> Path:
        """The file of its messages."""
        return data_folder(self.folder) / "server.log"

    @property
    def is_running(self) -> bool:
        """Whether it accepts connections."""
        with socket.socket(socket.AF_UNIX) as caller:
            try:
                caller.connect(str(_socket_file(self.socket_folder)))
            except OSError:
                return False
            return True

    def release(self) -> None:
        """End the use by this process; the last user stops the server."""
        mine = _in_use.pop((os.getpid(), self.folder), None)
        if mine is None:
            return
        with mine:
            if is_alone(mine):
                stop(data_folder(self.folder))
            else:
                # Others use it, or the stopper was quicker: then this waits for it.
                fcntl.flock(mine, fcntl.LOCK_SH)


def attach(folder: Path) -> EmbeddedServer:
    """Use the server of a folder until this process ends; it is started if it does not run.

    *Called:* at any time by any number of processes. *Failure:* whoever is killed has ended its use
    with that; after the last use the server is stopped in any case, and a server that was killed
    recovers when it is started again.

    Raises:
        PostgresNotStarted: it does not start (Transient).
        PostgresOther: another major version of PostgreSQL made its files.
    """
    folder = folder.absolute()
    create_cluster(folder)
    server = EmbeddedServer.of(folder)
    try:
        _share(server)
        if not server.is_running:
            with held(starting(folder)):
                if not server.is_running:
                    _start(find_programs(), server)
    except OSError as refused:
        server.release()
        raise PostgresNotStarted(problem=f"{folder}: {refused.strerror or refused}") from refused
    except BaseException:
        server.release()
        raise
    return server


def _share(server: EmbeddedServer) -> None:
    key = os.getpid(), server.folder
    if key not in _in_use:
        # Waits while the server is being stopped.
        _in_use[key] = take(using(server.folder), fcntl.LOCK_SH)
        atexit.register(server.release)


def _start(programs: Programs, server: EmbeddedServer) -> None:
    check_version(server.folder)
    data = data_folder(server.folder)
    own(data, programs.owner)
    if server.socket_folder != data:
        _make_room(server.socket_folder, programs.owner)
    _forget_sudden_end(data, server.socket_folder)
    settings = f"-h '' -p {_PORT} -k {server.socket_folder}"
    try:
        programs.run(
            "pg_ctl", "start", "-w", "-D", str(data), "-l", str(server.log), "-o", settings
        )
    except PostgresNotStarted as failed:
        raise PostgresNotStarted(problem=f"{failed.problem}; {_last_line(server.log)}") from failed
    subprocess.run(
        [sys.executable, "-I", "-S", stopper.__file__, str(server.folder)],
        env=programs.environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def _socket_folder(folder: Path) -> Path:
    data = data_folder(folder)
    if len(os.fsencode(_socket_file(data))) <= _LONGEST_SOCKET and _PLAIN.fullmatch(str(data)):
        return data
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:12]
    return Path(_ROOMS, f"tidegate-{os.geteuid()}-{digest}")


def _socket_file(folder: Path) -> Path:
    return folder / f".s.PGSQL.{_PORT}"


def _make_room(folder: Path, owner: int) -> None:
    """Make a directory for the socket, which nobody else may have made to listen there."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    mine = found.st_uid in {os.geteuid(), owner} and stat.S_ISDIR(found.st_mode)
    if not mine or stat.S_IMODE(found.st_mode) & 0o077:
        raise PostgresNotStarted(problem=f"{folder} belongs to somebody else, or is open to others")
    own(folder, owner)


def _forget_sudden_end(data: Path, socket_folder: Path) -> None:
    """Remove the notes of a server that ended without removing them.

    PostgreSQL itself does so only where their number is free: it may be another process's now, or
    that of one that has ended and that nobody has asked how. It still refuses to start beside
    processes of the old server, because these share its memory.
    """
    if server_process(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)
        _socket_file(socket_folder).with_suffix(f".{_PORT}.lock").unlink(missing_ok=True)


def _last_line(log: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return log.read_text(errors="replace").splitlines()[-1]
    return "no log"
