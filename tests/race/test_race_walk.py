"""The race walk: whatever two or three actors do beside each other, every row is out once.

The usual suite takes every seventh pair of verbs and of those that read the source each, changes
the turn at some of the steps where that can matter, and kills some actors; `make test-all` does so
at every step of all pairs, and draws thousands of races of three by their seeds.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from race import beginnings
from race.scheduler import Drawn, Listed, parse_turns
from race.session import OTHERS
from race.verbs import VERBS
from race.walk import Race, run
from race.world import World, without_threads
from s3_servers import GATEWAY
from walkers import Program, program, walkers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from race.walk import Ran

    Walked = Callable[..., str]

SEEDS = int(os.environ.get("RACE_SEEDS", "3000"))
"""How many races of three `make test-all` draws."""
COMPOSED = {"load_and_publish", "replay_and_publish", "rebuild_and_publish", "land", "land_far"}
"""Verbs that add little to pairs of the others."""
PAIRED = ",".join(name for name in VERBS if name not in {*COMPOSED, *OTHERS})
READING = "load,replay,rebuild,land_and_load"
"""Verbs that take windows, whose overlap lost rows."""
HUDI = ["archived-6", "archived-9", "changes-9", "cleaned-6", "cleaned-9"]
"""Hudi tables whose services go on during a race: from which step of a walk, and how read."""
ON_HUDI = [
    name for name in VERBS if name not in {"rebuild_held", "publish_held_in_tasks", "expire"}
]
"""Verbs of pipelines without a partition that is held."""
IN_STORE = "load_and_publish,replay_and_publish,publish_in_tasks,lose_ledger,sweep,approve"
"""Verbs that move files or delete them."""
MOVING = "load,replay,rebuild,publish,approve,lose_ledger"
"""Verbs that leave most behind when they are killed."""


@pytest.fixture
def folder() -> Iterator[Path]:
    # Memory where there is any: every run begins with a copy of the root.
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture
def world(folder: Path) -> Iterator[World]:
    with without_threads():
        world = World(folder)
        beginnings.make(world)
        yield world


@pytest.fixture(scope="module")
def walk() -> Iterator[Program]:
    with program("race.__main__") as found:
        yield found


@pytest.fixture
def walked(walk: Program) -> Walked:
    """Walk in several processes, and return what they said, once none of them found anything."""

    def walked(folder: Path, *arguments: str, at_once: int | None = None, every: int = 1) -> str:
        many = at_once or walkers()
        shares = [f"{number}/{many * every}" for number in range(many)]
        codes, text = walk.run(
            *([folder / str(at), "--share", share, *arguments] for at, share in enumerate(shares))
        )
        assert codes == [0] * many, text
        return text

    return walked


def names(ran: Ran) -> list[tuple[int, str]]:
    """Name the steps of a run without what is drawn anew each time."""
    return [(actor, re.sub("[0-9a-f]{8,}", "#", step.name)) for actor, step in ran.steps]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("verbs", "every", "stride"),
    [
        pytest.param(PAIRED, 29, 17, id="of all verbs"),
        pytest.param(READING, 1, 47, id="that read the source"),
        pytest.param(PAIRED, 1, 1, marks=pytest.mark.slow, id="of all verbs at every step"),
    ],
)
def test_pair_that_changes_turns_once_ends_with_every_row(
    walked: Walked, folder: Path, verbs: str, every: int, stride: int
) -> None:
    pairs = ("--only", verbs, "--beside", verbs, "--stride", str(stride))
    walked(folder, "pairs", *pairs, every=every)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_pair_of_which_one_is_killed_ends_with_every_row(
    walked: Walked, folder: Path, stride: int
) -> None:
    pairs = ("--only", MOVING, "--beside", "load_and_publish", "--stride", str(stride))
    walked(folder, "pairs", "--how", "death", *pairs)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stride", [67, pytest.param(1, marks=pytest.mark.slow)])
def test_ledger_that_is_restored_after_a_pair_ends_with_every_row(
    walked: Walked, folder: Path, stride: int
) -> None:
    first, second = "load,replay_and_publish,rebuild_and_publish", "load,reject"
    pairs = ("--only", first, "--beside", second, "--stride", str(stride))
    walked(folder, "pairs", "--how", "lost", *pairs)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("begin", [beginnings.FRESH, beginnings.BUSY])
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_pipeline_that_comes_second_leaves_the_target_alone(
    walked: Walked, folder: Path, begin: str, stride: int
) -> None:
    walking = ("pairs", "--begin", begin, "--stride", str(stride))
    walked(folder, *walking, "--only", ",".join(OTHERS), "--beside", "load_and_publish")
    others = ("--only", "load_and_publish", "--beside", ",".join(OTHERS))
    walked(folder / "second", *walking, *others)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("table", ["joined", "merged"])
@pytest.mark.parametrize(
    ("how", "stride"),
    [
        ("death", 149),
        *(
            pytest.param(how, 1, marks=pytest.mark.slow)
            for how in ("change", "late", "death", "lost", "two")
        ),
    ],
)
def test_pair_over_assembled_files_ends_with_every_row(
    walked: Walked, folder: Path, table: str, how: str, stride: int
) -> None:
    verbs = "load_and_publish,replay_and_publish,rebuild_and_publish,publish"
    pairs = ("--only", verbs, "--how", how, "--beside", "load_and_publish")
    walked(folder, "--table", table, "pairs", *pairs, "--stride", str(stride))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("table", ["apart", "merged-apart"])
@pytest.mark.parametrize(
    ("how", "stride"),
    [
        ("change", 97),
        ("death", 149),
        *(
            pytest.param(how, 1, marks=pytest.mark.slow)
            for how in ("change", "late", "death", "lost", "two")
        ),
    ],
)
def test_pair_over_revisions_with_directories_ends_with_every_row(
    walked: Walked, folder: Path, table: str, how: str, stride: int
) -> None:
    verbs = "load_and_publish,replay_and_publish,rebuild_and_publish,publish,lose_ledger"
    pairs = ("--only", verbs, "--how", how, "--beside", "load_and_publish")
    walked(folder, "--table", table, "pairs", *pairs, "--stride", str(stride))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("table", "how", "verbs", "stride"),
    [
        ("merged-apart", "change", "load_and_publish", 60),
        *(
            pytest.param(table, how, IN_STORE, 5, marks=pytest.mark.slow)
            for table in ("iceberg", "merged", "joined", "apart", "merged-apart")
            for how in ("change", "late", "death", "lost")
        ),
    ],
)
@pytest.mark.skipif(not GATEWAY.exists(), reason="`make setup-s3` was not run")
def test_pair_over_objects_ends_with_every_row(
    walked: Walked, folder: Path, table: str, how: str, verbs: str, stride: int
) -> None:
    pairs = ("--only", verbs, "--how", how, "--beside", "load_and_publish")
    walked(folder, "--table", table, "--in-store", "pairs", *pairs, "--stride", str(stride))


@pytest.mark.slow
@pytest.mark.timeout(8 * 3600)
@pytest.mark.skipif(not GATEWAY.exists(), reason="`make setup-s3` was not run")
@pytest.mark.parametrize("table", ["merged", "merged-apart"])
def test_races_of_three_over_objects_end_with_every_row(
    walked: Walked, folder: Path, table: str
) -> None:
    walked(folder, "--table", table, "--in-store", "seeds", "--count", "300")


@pytest.mark.slow
@pytest.mark.timeout(8 * 3600)
@pytest.mark.parametrize("how", ["late", "death", "lost", "two"])
def test_pair_in_every_other_way_ends_with_every_row(
    walked: Walked, folder: Path, how: str
) -> None:
    walked(folder, "pairs", "--only", PAIRED, "--beside", PAIRED, "--how", how)


@pytest.mark.timeout(1800)
def test_races_of_three_end_with_every_row(walked: Walked, folder: Path) -> None:
    walked(folder, "seeds", "--count", "16")


@pytest.mark.slow
@pytest.mark.timeout(8 * 3600)
def test_thousands_of_races_of_three_end_with_every_row(walked: Walked, folder: Path) -> None:
    walked(folder, "seeds", "--first", "1000", "--count", str(SEEDS))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("table", "verbs", "how", "stride"),
    [
        ("archived-9", "load,rebuild", "change", 13),
        ("changes-9", "load", "change", 5),
        *(
            pytest.param(table, READING, how, 1, marks=pytest.mark.slow)
            for table in HUDI
            for how in ("change", "death")
        ),
    ],
)
def test_pair_with_the_services_of_a_hudi_table_ends_with_the_engines_rows(
    walked: Walked, folder: Path, table: str, verbs: str, how: str, stride: int
) -> None:
    beside = ("--beside", "land_far,load_and_publish", "--stride", str(stride))
    pairs = ("--only", verbs, "--how", how, *beside)
    walked(folder, "--table", table, "pairs", *pairs)


@pytest.mark.timeout(8 * 3600)
@pytest.mark.parametrize(
    ("table", "count"),
    [("cleaned-6", 16), *(pytest.param(table, 300, marks=pytest.mark.slow) for table in HUDI)],
)
def test_races_of_three_over_a_hudi_table_end_with_the_engines_rows(
    walked: Walked, folder: Path, table: str, count: int
) -> None:
    drawn = ("--count", str(count), "--verbs", ",".join(ON_HUDI))
    walked(folder, "--table", table, "seeds", *drawn)


def test_same_schedule_gives_the_same_run(world: World) -> None:
    race = Race(beginnings.BUSY, ("load", "approve", "rebuild"))
    drawn = run(world, race, Drawn(7))

    again = run(world, race, Listed(parse_turns(drawn.schedule)))

    assert names(again) == names(drawn)
    assert again.schedule == drawn.schedule


@pytest.mark.parametrize(
    ("mistake", "actors", "how", "symptom"),
    [
        ("rebuild-compares-nothing", ("rebuild", "load"), [], "lost [('dt="),
        (
            "pinned-before-the-ledger-was-read",
            ("load", "land_and_load"),
            [],
            "the checkpoint went back",
        ),
        ("approved-unseen", ("approve", "load_and_publish"), [], "which nobody saw"),
        (
            "restored-in-steps",
            ("lose_ledger", "load_and_publish"),
            ["--how", "death"],
            "no revision or marker of the ledger names it",
        ),
        ("backup-believed", ("restore_backup", "load_and_publish"), [], "rows by listing: "),
        (
            "restored-by-the-clock",
            ("load", "replay_and_publish"),
            ["--how", "lost"],
            "and the ledger in use does not know it",
        ),
        (
            "nobody-owns",
            ("other", "load_and_publish"),
            ["--begin", beginnings.FRESH],
            "a marker stands, but the ledger has no revision",
        ),
    ],
)
def test_deliberate_mistake_is_found(
    walked: Walked,
    folder: Path,
    mistake: str,
    actors: tuple[str, str],
    how: list[str],
    symptom: str,
) -> None:
    walking = ["--mistake", mistake, "--most", "1"]
    pair = ["pairs", "--only", actors[0], "--beside", actors[1], *how]

    with pytest.raises(AssertionError, match=re.escape(symptom)):
        walked(folder, *walking, *pair, at_once=1)


@pytest.mark.timeout(1800)
def test_files_that_services_took_away_and_were_read_as_empty_are_found(
    walked: Walked, folder: Path
) -> None:
    walking = ["--table", "archived-9", "--mistake", "gone-logs-are-empty", "--most", "1"]
    pair = ["pairs", "--only", "rebuild", "--beside", "land"]

    with pytest.raises(AssertionError, match=re.escape("rows by marker: ")):
        walked(folder, *walking, *pair, at_once=1)
