"""Create the files of a home's PostgreSQL, all or none. Starts no server."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.errors import PostgresNotStarted, PostgresOther
from tidegate.ledger.embedded.locks import held, starting
from tidegate.ledger.embedded.programs import VERSION, Programs, find_programs
from tidegate.storage import LocalStorage

USER = "postgres"
DATABASES = ("airflow", "tidegate")
_SETTINGS = {
    # Each of Airflow's components and tasks has a pool of its own.
    "max_connections": "200",
    "shared_buffers": "32MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def data_folder(folder: Path) -> Path:
    """Return the directory of the database's files."""
    return folder / "data"


def create_cluster(folder: Path) -> None:
    """Create the database's files with one database for Airflow and one for the ledger.

    *Runs on:* any number of processes. *Called:* again at no cost. *Failure:* the files get their
    name when they are complete; a process that was killed leaves some that the next one removes.

    Raises:
        PostgresNotStarted: the programs cannot run here, or the folder cannot be written.
    """
    if data_folder(folder).exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(starting(folder)):
            if not data_folder(folder).exists():
                _create(find_programs(), folder)
    except OSError as refused:
        raise PostgresNotStarted(problem=f"{folder}: {refused.strerror or refused}") from refused


def check_version(folder: Path) -> None:
    """Check that the installed programs can read the files.

    Raises:
        PostgresOther: another major version wrote them.
    """
    found = (data_folder(folder) / "PG_VERSION").read_text().strip()
    if found != VERSION:
        raise PostgresOther(folder=str(folder), found=found, expected=VERSION)


def _create(programs: Programs, folder: Path) -> None:
    unfinished = folder / "data.new"
    LocalStorage().delete_tree(str(unfinished))
    unfinished.mkdir(mode=0o700)
    own(unfinished, programs.owner)
    settings = [part for item in _SETTINGS.items() for part in ("-c", "=".join(item))]
    programs.run(
        "initdb",
        *("-D", str(unfinished), "-U", USER, "--auth=trust"),
        # Names are ordered as in SQLite, by their bytes, whatever the system's language.
        *("--encoding=UTF8", "--no-locale"),
        *settings,
    )
    commands = "".join(f"CREATE DATABASE {name};\n" for name in DATABASES)
    programs.run("postgres", "--single", "-D", str(unfinished), USER, said=commands)
    unfinished.rename(data_folder(folder))


def own(place: Path, owner: int) -> None:
    """Let a user own a directory with all that is in it, if another one owns it."""
    if place.stat().st_uid == owner or os.geteuid():
        return
    for parent, folders, files in os.walk(place):
        for name in (".", *folders, *files):
            os.chown(Path(parent, name), owner, -1, follow_symlinks=False)
