"""Who works on a window or a partition, and how to find out that a process is gone."""

from __future__ import annotations

import os
import re
import socket

import psutil

_PROCESS = re.compile(r"^(?P<kind>\w+):(?P<host>[^:]+):(?P<process>\d+):(?P<started>\d+)$")


def process_owner(kind: str) -> str:
    """Name this process so that another one on the same host can tell whether it still runs."""
    started = int(psutil.Process().create_time() * 1000)
    return f"{kind}:{socket.gethostname()}:{os.getpid()}:{started}"


def is_gone(owner: str) -> bool:
    """Say whether a holder is a process of this host that no longer runs.

    A holder that is an Airflow run, or lives on another host, is never known to be gone: its time
    has to
    run out.
    """
    match = _PROCESS.match(owner)
    if match is None or match["host"] != socket.gethostname():
        return False
    try:
        process = psutil.Process(int(match["process"]))
        if process.status() == psutil.STATUS_ZOMBIE:
            return True
        return int(process.create_time() * 1000) != int(match["started"])
    except psutil.NoSuchProcess:
        return True
