"""Name the holder of a window or partition, and find out whether its process is gone.

The name ensures that only a process that could see the holder concludes that it is gone. It
consists of the host, the boot of its kernel and its process namespace (containers share host names
and process numbers), the process number, and its start in ticks since the boot, which does not
depend on the clock.
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
"""Prefix of holders that are a run of Airflow, not a process."""

_ZOMBIE = "Z"
_START_TICKS = 19
"""Place of the start among what follows the name in `/proc/PID/stat`; the first is the state."""


def process_owner(kind: str) -> str:
    """Return a name of this process by which others on the host can tell whether it is running.

    If the kernel does not provide all parts, the name ends early, and only time decides.
    """
    name = f"{kind}:{socket.gethostname()}:{os.getpid()}"
    facts = _facts(os.getpid())
    place = _place()
    if facts is None or place is None:
        return name
    return f"{name}:{facts[1]}:{place}"


def life_of(owner: str) -> Life:
    """Find out whether a holder is alive, as far as this process can tell.

    Between two tasks, a run of Airflow waits in a queue, for hours if pools are full, and renews
    nothing meanwhile. Only Airflow knows whether it has ended; a process that cannot ask Airflow
    never takes over from such a run unless a person says so.
    """
    if owner.startswith(_AIRFLOW):
        return Life.WAITING
    return Life.GONE if is_gone(owner) else Life.RENEWING


def life_by_time(owner: str) -> Life:
    """Find out whether a holder is alive, after a person said that no waiting run will continue.

    A holder that still renews keeps what it holds.
    """
    found = life_of(owner)
    return Life.SAID_GONE if found is Life.WAITING else found


def is_gone(owner: str) -> bool:
    """Return whether a holder is a process of this host and process namespace that has ended.

    Nothing is known about any other holder: its time has to run out.
    """
    match = _PROCESS.match(owner)
    if match is None or (match["host"], match["place"]) != (socket.gethostname(), _place()):
        return False
    process = int(match["process"])
    if not _exists(process):
        return True
    # A process may exist but be hidden because it belongs to another user.
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
    """Return the boot and the process namespace; None if the kernel does not tell them."""
    try:
        # Only its first part: beside the host name it is unique enough, and people read it.
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().partition("-")[0]
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None
    return f"{boot}.{''.join(filter(str.isdigit, namespace))}"


def _facts(process: int) -> tuple[str, str] | None:
    """Read a process's state and its start in ticks since the boot; None if they are unknown."""
    try:
        told = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    # The name is in parentheses and may contain any character.
    rest = told.rpartition(")")[2].split()
    return rest[0], rest[_START_TICKS]
