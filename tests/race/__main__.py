"""Walk races as the command line says.

python -m race FOLDER pairs [--how change,late,death,lost,two] [--only load,rebuild] [--share 0/2]
    [--stride 5] [--table apart] [--in-store]
python -m race FOLDER seeds --first 1 --count 1000 [--actors 3]
python -m race FOLDER once --begin busy --actors load,rebuild --schedule 'A12 B A'
"""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from race import beginnings, explore
from race.hudi_table import WalkedTable, watch_files
from race.mistakes import MISTAKES
from race.objects import bucket_of
from race.scheduler import Drawn, Listed, parse_turns
from race.table import APART, JOINED, MERGED, MERGED_APART, SourceTable
from race.verbs import VERBS
from race.walk import Race, run
from race.world import World, without_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from race.scheduler import Turn
    from race.table import RacedTable
    from race.walk import Ran

HOW: dict[str, Callable[..., Iterator[Ran]]] = {
    "change": explore.one_change,
    "late": functools.partial(explore.one_change, late=True),
    "death": explore.deaths,
    "lost": explore.one_change,
    "two": explore.two_changes,
}
"""Ways to explore a pair; `lost` restores the ledger before everything settles."""
ICEBERG = "iceberg"
TABLES: dict[str, Callable[[Path], RacedTable]] = {
    ICEBERG: SourceTable,
    "joined": functools.partial(SourceTable, keys=JOINED),
    "merged": functools.partial(SourceTable, keys=MERGED),
    "apart": functools.partial(SourceTable, keys=APART),
    "merged-apart": functools.partial(SourceTable, keys=MERGED_APART),
    "cleaned-6": functools.partial(WalkedTable, walk="walk-served-6"),
    "cleaned-9": functools.partial(WalkedTable, walk="walk-served-9"),
    "archived-6": functools.partial(WalkedTable, walk="walk-served-6", skipped=6),
    "changes-9": functools.partial(WalkedTable, walk="walk-served-9", mode="with_deletes"),
    "archived-9": functools.partial(WalkedTable, walk="walk-served-9", skipped=6),
}
_T = TypeVar("_T")
_RUNS_BETWEEN_COLLECTIONS = 50
_LINES, _WIDTH = 12, 300


def main() -> int:
    """Walk, say what was found, and exit with 1 if that was something."""
    given = _arguments().parse_args()
    world = World(given.folder, TABLES[given.table])
    if isinstance(world.source, WalkedTable):
        watch_files(world.stage)
    given.folder.mkdir(parents=True, exist_ok=True)
    with without_threads():
        if not given.in_store:
            return _walk(world, given)
        with bucket_of(given.folder, world.stage) as world.bucket:
            return _walk(world, given)


def _walk(world: World, given: argparse.Namespace) -> int:
    beginnings.make(world)
    for name in given.mistake:
        MISTAKES[name]()
    began, runs, found = time.monotonic(), 0, 0
    told: set[tuple[Race, tuple[str, ...]]] = set()
    gc.disable()
    for ran in _walked(world, given):
        runs += 1
        if runs % _RUNS_BETWEEN_COLLECTIONS == 0:
            gc.collect()
        if ran.wrong:
            found += 1
            if (ran.race, ran.symptom) not in told:
                told.add((ran.race, ran.symptom))
                sys.stdout.write(f"{_shortened(str(ran))}\n")
                sys.stdout.flush()
            if found == given.most:
                break
    seconds, busy = time.monotonic() - began, time.process_time()
    sys.stdout.write(f"{runs} runs, {found} wrong, {seconds:.0f} s, busy for {busy:.0f} s\n")
    return 1 if found else 0


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > _LINES and "Traceback" in lines[1]:
        lines = [lines[0], *lines[1 - _LINES :]]
    more = [f"    and {len(lines) - _LINES} lines more"] if len(lines) > _LINES else []
    return "\n".join([*(line[:_WIDTH] for line in lines[:_LINES]), *more])


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m race")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", choices=sorted(TABLES), default=ICEBERG)
    parser.add_argument("--in-store", action="store_true", help="let targets be in a store")
    parser.add_argument("--mistake", choices=sorted(MISTAKES), action="append", default=[])
    parser.add_argument("--most", type=int, default=20, help="end after so many wrong runs")
    parser.add_argument("--share", default="0/1", help="of the pairs or seeds")
    ways = parser.add_subparsers(dest="way", required=True)
    pairs = ways.add_parser("pairs")
    pairs.add_argument("--begin", default=beginnings.BUSY)
    pairs.add_argument("--how", default="change")
    pairs.add_argument("--stride", type=int, default=1, help="try every nth step that matters")
    pairs.add_argument("--only", default=",".join(VERBS), help="verbs of the first actor")
    pairs.add_argument("--beside", default=",".join(VERBS), help="verbs of the second")
    pairs.add_argument("--progress", action="store_true", help="name each pair")
    seeds = ways.add_parser("seeds")
    seeds.add_argument("--first", type=int, default=1)
    seeds.add_argument("--count", type=int, default=100)
    seeds.add_argument("--verbs", default=",".join(VERBS))
    once = ways.add_parser("once")
    once.add_argument("--begin", default=beginnings.BUSY)
    once.add_argument("--actors", required=True)
    once.add_argument("--schedule", default="")
    once.add_argument("--lost", action="store_true")
    once.add_argument("--steps", action="store_true", help="print them")
    return parser


def _walked(world: World, given: argparse.Namespace) -> Iterator[Ran]:
    walked: Iterator[Ran] = {"pairs": _pairs, "seeds": _seeds, "once": _once}[given.way](
        world, given
    )
    return walked


def _pairs(world: World, given: argparse.Namespace) -> Iterator[Ran]:
    chosen = itertools.product(given.only.split(","), given.beside.split(","), given.how.split(","))
    for one, two, how in _share(chosen, given):
        race = Race(given.begin, (one, two), lost=how == "lost")
        if given.progress:
            sys.stderr.write(f"{how} {race}\n")
        yield from HOW[how](functools.partial(_listed, world, race), stride=given.stride)


def _share(chosen: Iterable[_T], given: argparse.Namespace) -> Iterator[_T]:
    first, step = map(int, given.share.split("/"))
    return itertools.islice(chosen, first, None, step)


def _listed(world: World, race: Race, turns: list[Turn]) -> Ran:
    return run(world, race, Listed(list(turns)))


def _seeds(world: World, given: argparse.Namespace) -> Iterator[Ran]:
    verbs = given.verbs.split(",")
    for seed in _share(range(given.first, given.first + given.count), given):
        draw = random.Random(seed)
        actors = tuple(draw.choice(verbs) for _ in range(3))
        race = Race(beginnings.BUSY, actors, lost=draw.random() < 0.3)
        yield run(world, race, Drawn(seed))


def _once(world: World, given: argparse.Namespace) -> Iterator[Ran]:
    race = Race(given.begin, tuple(given.actors.split(",")), lost=given.lost)
    ran = run(world, race, Listed(parse_turns(given.schedule)))
    if given.steps:
        for number, (actor, step) in enumerate(ran.steps):
            sys.stdout.write(f"{number:4} {'ABCDEFG'[actor]} {step.name}\n")
    yield ran


if __name__ == "__main__":
    sys.exit(main())
