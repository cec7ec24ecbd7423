"""Stop a home's PostgreSQL when its last user has ended, however it ended.

Also a script, `stopper.py FOLDER`, which imports nothing of the package, because it waits most of
the time. It returns at once and goes on in the background; a second one does nothing.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60


def wait_and_stop(folder: Path) -> None:
    """Wait until nobody shares the lock of the users, then stop the server."""
    # The lock's file is open until this process ends.
    with (folder / "stop.lock").open("ab") as mine:
        try:
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if os.fork():
            os._exit(0)
        os.setsid()
        with (folder / "use.lock").open("ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            stop(folder / "data")
            # Released first: whoever gets the other lock next must find that nobody waits.
            fcntl.flock(mine, fcntl.LOCK_UN)


def stop(data: Path) -> None:
    """Stop the server of a directory, if it has one, without waiting for its clients."""
    process = server_process(data)
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGINT)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while _is_server(process) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)


def server_process(data: Path) -> int | None:
    """Return the number of a directory's server; None if it has ended.

    PostgreSQL's own commands trust the number that it wrote down. After a sudden end it may be
    that of any other process, or of one that has ended and that nobody has asked how.
    """
    try:
        process = int((data / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return None
    return process if _is_server(process) else None


def _is_server(process: int) -> bool:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return Path(os.fsdecode(command.split(b"\0")[0])).name == "postgres"


if __name__ == "__main__":
    wait_and_stop(Path(sys.argv[1]))
