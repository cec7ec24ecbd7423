"""A driver in a process of its own that stops itself, as SIGSTOP does, before a named change.

`python -m driver FILE LEDGER STEP --owner O --now T [--after NAME] [--stop NAME]`; the last line it
writes is `done`, or the name of the error that ended it. Changes are named as the crash walk does.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crash.faults import Stopper, stopping_storage
from small_lake import load
from tidegate.errors import TidegateError
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from small_lake import SmallLake


@dataclass
class Driver:
    """A process that loads or publishes, seen from the test that started it."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, lake: SmallLake, step: str, now: datetime, **options: str) -> Driver:
        """Start a driver on a lake's pipeline and wait until it stopped itself."""
        arguments = [str(lake.file()), f"sqlite:///{lake.root}/ledger.db", step]
        arguments += [item for name, text in options.items() for item in (f"--{name}", text)]
        tests = Path(__file__).parent
        process = subprocess.Popen(
            [sys.executable, "-m", "driver", *arguments, "--now", now.isoformat()],
            cwd=tests,
            env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{tests}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"ended with status {status} before it stopped"
        return cls(process)

    def wake(self) -> str:
        """Let it go on to its end; the last line it wrote."""
        self.process.send_signal(signal.SIGCONT)
        return self.process.communicate(timeout=60)[0].splitlines()[-1]

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def main() -> None:
    """Do one step and say how it ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("ledger")
    parser.add_argument("step", choices=["load", "publish"])
    parser.add_argument("--now", type=datetime.fromisoformat, required=True)
    parser.add_argument("--owner")
    parser.add_argument("--after", default="", help="stop only once such a change was made")
    parser.add_argument("--stop", required=True, help="pattern of the change to stop before")
    given = parser.parse_args()

    def stop_once() -> None:
        after = any(re.match(given.after, name) for name in stopper.made[:-1])
        if after and re.match(given.stop, stopper.made[-1]):
            stopper.between = None
            os.kill(os.getpid(), signal.SIGSTOP)

    stopper = Stopper(between=stop_once)
    storage: Any = stopping_storage(stopper)
    pipeline = open_pipeline(given.file, ledger=given.ledger, storage=storage)
    owner = given.owner or process_owner("cli")
    try:
        if given.step == "load":
            load(pipeline, owner=owner, now=given.now)
        else:
            for state in pipeline.ledger.partitions.all():
                pipeline.publish(state.partition, owner, given.now)
    except TidegateError as error:
        sys.stdout.write(f"{error}\n{type(error).__name__}\n")
    else:
        sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
