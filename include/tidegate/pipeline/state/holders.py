"""Who works on a window or a partition, and how to find out that a process is gone.

A process is named so that only one that could see it can say that it is gone: by host, by the boot
of its kernel and its process namespace (containers share host names and process numbers), by its
number, and by when it started in ticks since the boot, which a change of the clock does not move.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from tidegate.ledger.holder import Life

_PROCESS = re.compile(
    r"^(?P<kind>\w+):(?P<host>[^:]+):(?P<process>\d+):(?P<started>\d+):(?P<place>[^:]+)$"
)
_AIRFLOW = "airflow:"
"""Begins the names of holders that are a run of Airflow's and not a process."""

_ZOMBIE = "Z"
_START_TICKS = 19
"""Place of the start among what follows the name in `/proc/PID/stat`; the first is the state."""


def process_owner(kind: str) -> str:
    """Name this process so that another one beside it can tell whether it still runs.

    Where the kernel does not tell what that needs, the name ends early: then only time decides.
    """
    name = f"{kind}:{socket.gethostname()}:{os.getpid()}"
    facts = _facts(os.getpid())
    place = _place()
    if facts is None or place is None:
        return name
    return f"{name}:{facts[1]}:{place}"


def life_of(owner: str) -> Life:
    """Find out what became of a holder, as far as this process can tell.

    A run of Airflow's waits in a queue between two tasks, for hours where pools are full, and
    renews nothing meanwhile. Only Airflow knows whether it has ended; a process that cannot ask it
    never takes from such a run, unless a person says so.
    """
    if owner.startswith(_AIRFLOW):
        return Life.WAITING
    return Life.GONE if is_gone(owner) else Life.RENEWING


def life_by_time(owner: str) -> Life:
    """Find out what became of a holder, after a person said that no waiting run will go on.

    A holder that still renews keeps what it has all the same.
    """
    found = life_of(owner)
    return Life.RENEWING if found is Life.WAITING else found


def is_gone(owner: str) -> bool:
    """Return whether a holder is a process of this host and process namespace that has ended.

    Of any other holder nothing is known: its time has to run out.
    """
    match = _PROCESS.match(owner)
    if match is None or (match["host"], match["place"]) != (socket.gethostname(), _place()):
        return False
    process = int(match["process"])
    if not _exists(process):
        return True
    # What is there and hidden, because it is another user's, is not known to be gone.
    facts = _facts(process)
    return facts is not None and (facts[0] == _ZOMBIE or facts[1] != match["started"])


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _place() -> str | None:
    """Name the boot and the process namespace; None where the kernel does not tell."""
    try:
        # Its first word: beside a host's name that is unique enough, and people read it.
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().partition("-")[0]
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None
    return f"{boot}.{''.join(filter(str.isdigit, namespace))}"


def _facts(process: int) -> tuple[str, str] | None:
    """Read a process's state and its start in ticks since the boot; None if that is not told."""
    try:
        told = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    # The name stands in parentheses and may hold any character.
    rest = told.rpartition(")")[2].split()
    return rest[0], rest[_START_TICKS]
