"""Walks in processes of their own, forked from one that has imported all that a walk needs.

Importing takes as long as many a walk. The first process only imports and forks: a process that
forks must not have started threads.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

import quick_ledgers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def walkers() -> int:
    """Give how many processes walk at once: one for each core that no other tests run on.

    Each makes its source and its first life anew, so that more take longer in all.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, (os.cpu_count() or 1) // workers)


@dataclass(frozen=True)
class Program:
    """A module with a `main`, imported once and run as often as somebody asks."""

    process: subprocess.Popen[str]

    def run(self, *commands: Sequence[str]) -> tuple[list[int], str]:
        """Run it once for each list of arguments, all at the same time.

        Returns:
            Their exit codes, and what they wrote.
        """
        asks, answers = self.process.stdin, self.process.stdout
        assert asks is not None
        assert answers is not None
        asks.write(json.dumps([[str(word) for word in words] for words in commands]) + "\n")
        asks.flush()
        told = json.loads(answers.readline())
        return [code for code, _ in told], "\n".join(text for _, text in told)


@contextlib.contextmanager
def program(module: str) -> Iterator[Program]:
    """Import a module in a process of its own, as long as the context lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "walkers", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Program(process)
        assert process.stdin is not None
        process.stdin.close()


def _main(module: str) -> None:
    imported = importlib.import_module(module)
    quick_ledgers.install()
    for line in sys.stdin:
        begun = []
        for words in json.loads(line):
            said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (read once the child has ended)
            child = os.fork()
            if child == 0:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                sys.argv = [module, *words]
                sys.exit(_code_of(imported))
            begun.append((child, said))
        told = []
        for child, said in begun:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            told.append((code, said.read()))
            said.close()
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def _code_of(imported: object) -> int:
    try:
        return int(imported.main() or 0)  # type: ignore[attr-defined]
    except BaseException:  # noqa: BLE001 (told by its exit code, and by what it wrote)
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    _main(sys.argv[1])
