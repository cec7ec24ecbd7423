"""Walk a scenario.

Die at every change in turn, live again to the end, compare with an undisturbed life.

Run as a program, because it forks: a process that forks must not have started threads. Nothing that
computes runs in the parent.

A process that is killed leaves the disk as it was at that moment, which is all that the next life
can find. So one life that copies its disk before each change gives as many deaths as it makes
changes; with `--kill` every death is a process of its own that gets SIGKILL, in twice the time.
With `--cut` the machine dies, too: what stands is what was forced to the disk.

    python -m crash.walk FOLDER --share 0/2 [--scenario changes] [--kill before | --kill after]
        [--cut none --cut lost ...] [--mistake NAME]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import itertools
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
from unittest.mock import patch

from crash.changed_rows import CHANGES
from crash.faults import (
    Stopper,
    forbid_other_changes,
    stopping_storage,
    stopping_stores,
    watch_database,
)
from crash.hudi_partitions import PARTITIONS
from crash.listing import broken_listing, forget, listed, numbered_calls
from crash.mistakes import MISTAKES
from crash.power import CUTS, Disk, chance
from crash.promises import answer_questions, broken_promise
from crash.replaced_rows import OVERWRITES, UPSERTS
from crash.scenario import APPENDS, ASSEMBLED, BUCKET, Life, Scenario, apart, ending, in_store
from s3_servers import KEY, REGION, SECRET, gateway_server
from tidegate.storage import S3Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidegate.storage import Storage

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
    "botocore.session",
    "boto3",
    "tenacity",
    "tidegate.source.iceberg",
):
    importlib.import_module(_name)


SCENARIOS = {
    "appends": APPENDS,
    "assembled": ASSEMBLED,
    "changes": CHANGES,
    "overwrites": OVERWRITES,
    "partitions": PARTITIONS,
    "upserts": UPSERTS,
    "appends-apart": apart(APPENDS),
    "overwrites-apart": apart(OVERWRITES),
    "upserts-apart": apart(UPSERTS),
    "upserts-apart-listed": listed(apart(UPSERTS)),
    "appends-in-store": in_store(APPENDS),
    "overwrites-in-store": in_store(OVERWRITES),
    "upserts-in-store": in_store(UPSERTS),
    "upserts-apart-in-store": in_store(apart(UPSERTS)),
}

_REACHED_BY = ("endpoint", "key", "secret")
_COPIES = 64
"""How many copies of a disk are kept at a time."""
_THE_END = "the end"
_PUBLISHED = "published/orders"


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
class Death:
    """One death of a life."""

    number: int
    """Of the change that was not made any more."""
    cut: str | None
    """What the power took along; None: the process died alone."""

    def __str__(self) -> str:
        return f"{self.number}{f', power cut, {self.cut}' if self.cut else ''}"


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
        if self.scenario.is_listed:
            forget()
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

    def die_at(self, death: Death, side: str, expected: dict[str, Any]) -> list[str]:
        """Die at one change and live again; what was wrong then or at the end.

        With a cut the power fails at the end of the second life, and a third one follows: nobody
        may rely on what the first one had not forced to the disk.
        """
        life, saved = self.life("root"), self.folder / "disk.pickle"
        shutil.rmtree(self.folder / "kept", ignore_errors=True)

        def first() -> None:
            life.prepare()
            stopper = Stopper(death.number, side)
            if death.cut is not None:
                disk = stopper.disk = Disk(life.root, self.folder / "kept")
                stopper.dying = lambda: saved.write_bytes(pickle.dumps(disk))
            self._live(life, stopper)

        status = in_child(first)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            msg = f"change {death.number}: expected signal 9, found status {status}"
            raise ChildDied(msg)
        if death.cut is None:
            return self._live_again(life, expected)
        left = self.folder / "left"
        shutil.rmtree(left, ignore_errors=True)

        def second() -> None:
            disk = pickle.loads(saved.read_bytes())
            self._live(life, Stopper(disk=disk))
            disk.leave(left, chance(death.cut or "", death.number))

        if in_child(second) != 0:
            msg = "the life after the first death"
            raise ChildDied(msg)
        return self.go_on_from(left, expected)

    def left_before(self, deaths: list[Death]) -> Iterator[tuple[Death, Path]]:
        """Live once; give what each of some deaths would have left.

        What is given has to be moved to where lives are lived before it is gone on with.
        """
        for start in range(0, len(deaths), _COPIES):
            batch, copies = deaths[start : start + _COPIES], self.folder / "copies"
            for name in ("copies", "kept"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            copies.mkdir()
            if in_child(functools.partial(self._leave, batch, self.life("root"), copies)) != 0:
                msg = "the life that was copied"
                raise ChildDied(msg)
            yield from ((death, copies / str(death.number)) for death in batch)

    def _leave(self, deaths: list[Death], life: Life, copies: Path) -> None:
        cuts = {death.number: death.cut for death in deaths}

        def leave() -> None:
            number = len(stopper.made)
            if number not in cuts:
                return
            cut, to = cuts[number], copies / str(number)
            if cut is None:
                shutil.copytree(life.root, to)
            else:
                disk.leave(to, chance(cut, number))

        life.prepare()
        disk = Disk(life.root, self.folder / "kept")
        stopper = Stopper(between=leave, disk=disk)
        self._live(life, stopper)
        stopper.made.append(_THE_END)
        leave()

    def go_on_from(self, left: Path, expected: dict[str, Any]) -> list[str]:
        """Live again on what a death left; gives what `die_at` gives."""
        life = self.life("root")
        left.rename(life.root)
        return self._live_again(life, expected)

    def _live_again(self, life: Life, expected: dict[str, Any]) -> list[str]:
        before = written_once(life.root)

        def second() -> tuple[str, dict[str, Any]]:
            broken = broken_promise(life.root / _PUBLISHED) or self._broken_listing()
            self._live(life, Stopper())
            return broken, ending(life.root)

        broken, end = ask_child(second, self.folder / "ending.pickle")
        after = written_once(life.root)
        rewritten = [name for name, content in before.items() if after.get(name) != content]
        return [
            *([broken] if broken else []),
            *differences(expected, end),
            *(f"written again: {name}" for name in rewritten),
        ]

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
            answer_questions(life.root / _PUBLISHED, asks, answered, self._broken_listing)
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

    def _broken_listing(self) -> str:
        return broken_listing() if self.scenario.is_listed else ""

    def _live(self, life: Life, stopper: Stopper) -> list[str]:
        if self.mistake is not None:
            MISTAKES[self.mistake]()
        disk = stopping_storage(stopper)
        storage: Storage = disk
        if self.scenario.in_store:
            endpoint, *keys = (os.environ[f"TIDEGATE_TEST_{name.upper()}"] for name in _REACHED_BY)
            storage = stopping_stores(stopper, disk, S3Options(endpoint, REGION, None, *keys))
        forbid_other_changes(str(life.root), disk.calls)
        # Who lives again does not wait until the lock of a dead process has expired.
        with patch("tidegate.storage.s3_lease.LEASE_SECONDS", -60.0), numbered_calls(stopper):
            life.live(storage, lambda engine: watch_database(engine, stopper))
        return stopper.made


@contextlib.contextmanager
def store_of(walk: Walk) -> Iterator[None]:
    """Run the store that a walk needs, whose only bucket is the root of all lives."""
    if not walk.scenario.in_store:
        yield
        return
    with gateway_server(walk.folder / "gateway", beside=False) as server:
        assert server.folder is not None
        (server.folder / BUCKET).symlink_to(walk.folder / "root")
        told = dict(zip(_REACHED_BY, (server.endpoint, KEY, SECRET), strict=True))
        os.environ.update({f"TIDEGATE_TEST_{name.upper()}": text for name, text in told.items()})
        yield


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
    steps: Walk,
    choose: Callable[[list[str]], list[int]],
    kill: str | None = None,
    cuts: Sequence[str | None] = (None,),
) -> list[str]:
    """Die at each chosen number; what went wrong, after a line that says how far the walk went.

    Args:
        steps: the walk.
        choose: gives numbers of changes by their names.
        kill: side of the change on which a process is killed; None: copies are gone on from.
        cuts: of the power, in turn: at the deaths, or after a killed process lived again.
    """
    told = []
    steps.prepare()
    made, expected = steps.undisturbed()
    names, side = made if kill else [*made, _THE_END], kill or "before"
    deaths = [Death(*pair) for pair in zip(choose(names), itertools.cycle(cuts), strict=False)]
    lives: Iterator[tuple[Death, Callable[[dict[str, Any]], list[str]]]]
    if kill is None:
        left = steps.left_before(deaths)
        lives = ((death, functools.partial(steps.go_on_from, copy)) for death, copy in left)
    else:
        lives = ((death, functools.partial(steps.die_at, death, kill)) for death in deaths)
    for death, live_again in lives:
        try:
            wrong = live_again(expected)
        except ChildDied as died:
            wrong = [str(died)]
        told += [f"{side} change {death} ({names[death.number - 1]}): {item}" for item in wrong]
    return [f"died {side} {len(deaths)} of {len(made)} changes", *told]


def _short(raw: Any) -> str:
    text = json.dumps(raw, sort_keys=True, default=str)
    return text if len(text) < 2000 else f"{text[:2000]}…"


def chosen(made: list[str], share: str, named: str, most: int, after: str = "") -> list[int]:
    """Give the numbers of a share of all changes, or of those with a name, or after one."""
    first, step = map(int, share.split("/"))
    numbers = [
        number
        for number, (before, name) in enumerate(itertools.pairwise(["", *made]), 1)
        if name.startswith(named) and before.startswith(after)
    ]
    return numbers[first::step][:most]


def main() -> int:
    """Walk as the command line says; exit 1 if something went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="appends")
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--named", default="", help="only changes whose name begins so")
    parser.add_argument("--after", default="", help="only changes after one whose name begins so")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--kill", choices=["before", "after"], help="kill instead of copying")
    parser.add_argument("--cut", choices=["none", *CUTS], action="append", help="in turn")
    parser.add_argument("--mistake", choices=sorted(MISTAKES))
    parser.add_argument("--read-along", action="store_true")
    given = parser.parse_args()
    steps = Walk(given.folder, given.mistake, SCENARIOS[given.scenario])
    with store_of(steps):
        if given.read_along:
            steps.prepare()
            told = ["a reader looked between any two changes", *steps.read_along()]
        else:
            told = walk(
                steps,
                lambda made: chosen(made, given.share, given.named, given.most, given.after),
                given.kill,
                [None if cut == "none" else cut for cut in given.cut or ["none"]],
            )
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if len(told) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
