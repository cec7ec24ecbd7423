"""The locations of Tidegate's home, ledger and pipeline files, and the values of `${env:NAME}`."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.errors import PostgresLost, SecretMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

_lent: dict[str, str] = {}
"""Values of another process, for names that this one does not have."""

_HOME = ".tidegate"
PLACEHOLDER = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def home(folder: Path | None = None) -> Path:
    """Return the directory of Tidegate's own files: `TIDEGATE_HOME`, or the one of a folder.

    It is found from the pipeline files, so that a command finds the same ledger from wherever it is
    typed: the nearest `.tidegate` with a ledger, in their folder or above it. A new one is made in
    the current directory if that is above the folder, else in the folder.

    Args:
        folder: of the pipeline files; by default `pipelines_folder()`.
    """
    configured = os.environ.get("TIDEGATE_HOME")
    if configured:
        return Path(configured).absolute()
    start, here = (folder or pipelines_folder()).absolute(), Path.cwd()
    for above in (start, *start.parents):
        if _has_ledger(above / _HOME):
            return above / _HOME
    return (here if start.is_relative_to(here) else start) / _HOME


def ledger_url(folder: Path | None = None) -> str:
    """Return the address of the ledger: `TIDEGATE_LEDGER`, or that of the home.

    Args:
        folder: of the pipeline files, as for `home`.

    Raises:
        PostgresLost: the ledger is in the home's own PostgreSQL, whose files are gone.
    """
    return os.environ.get("TIDEGATE_LEDGER") or ledger_of_home(home(folder))


def ledger_of_home(place: Path) -> str:
    """Return the address of a home's ledger: its own PostgreSQL if that has it, else SQLite.

    Raises:
        PostgresLost: its own PostgreSQL has it, whose files are gone.
    """
    if not ledger_note(place).exists():
        return f"sqlite:///{ledger_file(place)}"
    if not has_postgres(place):
        raise PostgresLost(folder=str(postgres_folder(place)))
    return f"embedded:///{postgres_folder(place)}"


def ledger_file(place: Path) -> Path:
    """Return the file of a home's ledger, where it is in SQLite."""
    return place / "ledger.db"


def ledger_note(place: Path) -> Path:
    """Return the file that says that a home's ledger is in its PostgreSQL.

    What exists does not tell: one with a ledger in SQLite has a PostgreSQL for Airflow, and a file
    for SQLite may appear by mistake.
    """
    return postgres_folder(place) / "has-ledger"


def _has_ledger(place: Path) -> bool:
    return ledger_file(place).exists() or ledger_note(place).exists()


def postgres_folder(place: Path) -> Path:
    """Return the folder of a home's own PostgreSQL, which `tidegate demo` and `ui` make."""
    return place / "postgres"


def has_postgres(place: Path) -> bool:
    """Return whether a home has a PostgreSQL of its own, running or not."""
    return (postgres_folder(place) / "data").exists()


def pipelines_folder() -> Path:
    """Return the folder of pipeline files: `TIDEGATE_PIPELINES`, or `./include/pipelines`."""
    configured = os.environ.get("TIDEGATE_PIPELINES")
    return Path(configured).absolute() if configured else Path(__file__).parents[2] / "pipelines"


def resolve_secret(text: str, key: str) -> str:
    """Replace `${env:NAME}` by values of the environment, or of those that were lent.

    Args:
        text: a value of a pipeline file.
        key: its key, for the error.

    Raises:
        SecretMissing: a variable is not set in this process, and was not lent to it.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        found = os.environ.get(name, _lent.get(name))
        if found is None:
            host = socket.gethostname()
            raise SecretMissing(name=name, key=key, host=host, process=os.getpid())
        return found

    return PLACEHOLDER.sub(value, text)


def named_values(text: str) -> dict[str, str]:
    """Return the values of all `${env:NAME}` in a text that are set in this process."""
    return {name: os.environ[name] for name in PLACEHOLDER.findall(text) if name in os.environ}


def lend_values(values: Mapping[str, str]) -> None:
    """Let this process resolve names that its own environment lacks.

    They do not become part of the environment, which other programs would see.
    """
    _lent.update(values)
