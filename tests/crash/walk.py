"""Walk a scenario.

Die at every change in turn, live again to the end, compare with an undisturbed life.

Run as a program, because it forks: a process that forks must not have started threads. Nothing that
computes runs in the parent.

A process that is killed leaves the disk as it was at that moment, which is all that the next life
can find. So one life that copies its disk before each change gives as many deaths as it makes
changes; with `--kill` every death is a process of its own that gets SIGKILL, in twice the time.

    python -m crash.walk FOLDER --share 0/2 [--scenario changes] [--kill before | --kill after]
        [--mistake NAME]
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import os
import pickle
import shutil
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from crash.changed_rows import CHANGES
from crash.faults import Stopper, forbid_other_changes, stopping_storage, watch_database
from crash.mistakes import MISTAKES
from crash.scenario import APPENDS, Life, Scenario, ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Loaded before any fork, or every child would load them again.
for _name in (
    "pandas",
    "pyarrow.dataset",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "pyiceberg.table",
    "pyiceberg.avro.file",
    "pyroaring",
    "sqlite3",
    "tenacity",
    "tidegate.source.iceberg",
):
    importlib.import_module(_name)


SCENARIOS = {"appends": APPENDS, "changes": CHANGES}

_COPIES = 64
"""How many copies of a disk are kept at a time."""


class ChildDied(AssertionError):
    """A child that should have lived did not."""


def in_child(work: Callable[[], Any], result: Path | None = None) -> int:
    """Do something in a forked process.

    Its wait status. What it gives back is pickled to `result`.
    """
    child = os.fork()
    if child == 0:
        try:
            given = work()
            if result is not None:
                result.write_bytes(pickle.dumps(given))
            os._exit(0)
        except BaseException:  # noqa: BLE001 (a forked child must not run on into the parent's code)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    return os.waitpid(child, 0)[1]


def ask_child(work: Callable[[], Any], result: Path) -> Any:
    """Do something in a forked process and give what it gave."""
    status = in_child(work, result)
    if status != 0:
        msg = f"status {status}"
        raise ChildDied(msg)
    return pickle.loads(result.read_bytes())


@dataclass(frozen=True)
class Walk:
    """One walk below a folder of its own."""

    folder: Path
    mistake: str | None = None
    scenario: Scenario = APPENDS

    def life(self, name: str) -> Life:
        """Give a life that has not begun, at the one root that all lives share.

        Names are in the bytes.
        """
        metadata, times = pickle.loads((self.folder / "source.pickle").read_bytes())
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return Life(self.folder / name, metadata, times, self.scenario)

    def prepare(self) -> None:
        """Make the source once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = self.folder / "source.pickle"
        ask_child(lambda: self.scenario.make_source(self.folder / "source"), made)

    def undisturbed(self) -> tuple[list[str], dict[str, Any]]:
        """Live once without dying: every change in order, and how it ends."""
        life = self.life("root")

        def work() -> list[str]:
            life.prepare()
            return self._live(life, Stopper())

        made = ask_child(work, self.folder / "made.pickle")
        return made, ask_child(lambda: ending(life.root), self.folder / "ending.pickle")

    def die_at(self, number: int, side: str) -> tuple[dict[str, Any], list[str]]:
        """Die at one change and live again.

        How it ends, and which write-once files were written again.
        """
        life = self.life("root")

        def first() -> None:
            life.prepare()
            self._live(life, Stopper(number, side))

        status = in_child(first)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            msg = f"change {number}: expected signal 9, found status {status}"
            raise ChildDied(msg)

        return self._live_again(life)

    def left_before(self, numbers: list[int]) -> Iterator[tuple[int, Path]]:
        """Live once; give what a death before each of some changes would have left.

        What is given has to be moved to where lives are lived before it is gone on with.
        """
        for start in range(0, len(numbers), _COPIES):
            batch = numbers[start : start + _COPIES]
            life, copies = self.life("root"), self.folder / "copies"

            def copying(wanted: frozenset[int], life: Life = life, copies: Path = copies) -> None:
                def copy() -> None:
                    if len(stopper.made) in wanted:
                        shutil.copytree(life.root, copies / str(len(stopper.made)))

                stopper = Stopper(between=copy)
                life.prepare()
                self._live(life, stopper)

            shutil.rmtree(copies, ignore_errors=True)
            if in_child(functools.partial(copying, frozenset(batch))) != 0:
                msg = "the life that was copied"
                raise ChildDied(msg)
            yield from ((number, copies / str(number)) for number in batch)

    def go_on_from(self, left: Path) -> tuple[dict[str, Any], list[str]]:
        """Live again on what a death left; gives what `die_at` gives."""
        life = self.life("root")
        left.rename(life.root)
        return self._live_again(life)

    def _live_again(self, life: Life) -> tuple[dict[str, Any], list[str]]:
        before = written_once(life.root)

        def second() -> dict[str, Any]:
            self._live(life, Stopper())
            return ending(life.root)

        end = ask_child(second, self.folder / "ending.pickle")
        after = written_once(life.root)
        return end, [name for name, content in before.items() if after.get(name) != content]

    def read_along(self) -> list[str]:
        """Live once while a reader in its own process looks between every two changes.

        What it saw wrong.
        """
        life = self.life("root")
        asks, asked = os.pipe()
        answers, answered = os.pipe()
        reader = os.fork()
        if reader == 0:
            os.close(asked)
            os.close(answers)
            answer_questions(life.root / "published" / "orders", asks, answered)
            os._exit(0)
        os.close(asks)
        os.close(answered)

        def work() -> list[str]:
            seen = []

            def look() -> None:
                os.write(asked, b"?")
                said = os.read(answers, 1 << 16).decode().strip()
                if said:
                    seen.append(f"before change {len(stopper.made)} ({stopper.made[-1]}): {said}")

            stopper = Stopper(between=look)
            life.prepare()
            self._live(life, stopper)
            return seen

        try:
            return list(ask_child(work, self.folder / "seen.pickle"))
        finally:
            os.close(asked)
            os.close(answers)
            os.waitpid(reader, 0)

    def _live(self, life: Life, stopper: Stopper) -> list[str]:
        if self.mistake is not None:
            MISTAKES[self.mistake]()
        storage = stopping_storage(stopper)
        forbid_other_changes(str(life.root), storage.calls)
        life.live(storage, lambda engine: watch_database(engine, stopper))
        return stopper.made


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Say in words where two endings differ."""
    told = []
    for kind in expected:
        if expected[kind] == found[kind]:
            continue
        told.append(f"{kind}: expected {_short(expected[kind])}, found {_short(found[kind])}")
    return told


def written_once(root: Path) -> dict[str, bytes]:
    """Read every file of the work directory that is written under a name given once."""
    work = root / "published" / ".tidegate-orders"
    return {
        str(path.relative_to(work)): path.read_bytes()
        for path in work.rglob("*.json*")
        if not path.name.startswith(".")
    }


def walk(
    steps: Walk, choose: Callable[[list[str]], list[int]], kill: str | None = None
) -> list[str]:
    """Die at each chosen number; what went wrong, after a line that says how far the walk went.

    Args:
        steps: the walk.
        choose: gives numbers of changes by their names.
        kill: side of the change on which a process is killed; None: copies are gone on from.
    """
    told = []
    steps.prepare()
    made, expected = steps.undisturbed()
    numbers, side = choose(made), kill or "before"
    lives: Iterator[tuple[int, Callable[[], tuple[dict[str, Any], list[str]]]]]
    if kill is None:
        left = steps.left_before(numbers)
        lives = ((number, functools.partial(steps.go_on_from, copy)) for number, copy in left)
    else:
        lives = ((number, functools.partial(steps.die_at, number, kill)) for number in numbers)
    for number, live_again in lives:
        try:
            end, rewritten = live_again()
            wrong = differences(expected, end) + [f"written again: {name}" for name in rewritten]
        except ChildDied as died:
            wrong = [str(died)]
        told += [f"{side} change {number} ({made[number - 1]}): {item}" for item in wrong]
    return [f"died {side} {len(numbers)} of {len(made)} changes", *told]


def answer_questions(published: Path, asks: int, answers: int) -> None:
    """Check all markers once for each byte that comes in.

    Answer with what is wrong, and a line's end.
    """
    while os.read(asks, 1):
        os.write(answers, f"{broken_promise(published)}\n".encode())


def broken_promise(published: Path) -> str:
    """Say which marker lists a file that is not there as listed.

    Empty if every marker keeps its word.
    """
    for path in published.rglob("_SUCCESS"):
        marker = json.loads(path.read_bytes())
        for file in marker["files"]:
            content = path.parent / file["name"]
            if not content.exists():
                return f"{path.parent.name} lists {file['name']}, which is not there"
            whole = content.read_bytes()
            if (len(whole), hashlib.sha256(whole).hexdigest()) != (file["length"], file["sha256"]):
                return f"{path.parent.name} lists {file['name']} with other bytes"
            if pq.read_metadata(content).num_rows != file["rows"]:
                return f"{path.parent.name} lists {file['name']} with other rows"
    return ""


def _short(raw: Any) -> str:
    text = json.dumps(raw, sort_keys=True, default=str)
    return text if len(text) < 2000 else f"{text[:2000]}…"


def chosen(made: list[str], share: str, named: str, most: int) -> list[int]:
    """Give the numbers of a share of all changes, or of those with a name."""
    first, step = map(int, share.split("/"))
    numbers = [number for number, name in enumerate(made, 1) if name.startswith(named)]
    return numbers[first::step][:most]


def main() -> int:
    """Walk as the command line says; exit 1 if something went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="appends")
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--named", default="", help="only changes whose name begins so")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--kill", choices=["before", "after"], help="kill instead of copying")
    parser.add_argument("--mistake", choices=sorted(MISTAKES))
    parser.add_argument("--read-along", action="store_true")
    given = parser.parse_args()
    steps = Walk(given.folder, given.mistake, SCENARIOS[given.scenario])
    if given.read_along:
        steps.prepare()
        told = ["a reader looked between any two changes", *steps.read_along()]
    else:
        told = walk(
            steps, lambda made: chosen(made, given.share, given.named, given.most), given.kill
        )
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if len(told) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
