"""The crash walk: die at every change, live again, compare (PC-V30, V31).

Dying after change n and dying before change n + 1 leave the same disk, since nothing is changed
between them; so deaths are tried by copies of the disk: the usual suite dies before every 13th
change, `make test-all` before each, and kills a process on both sides of each. Of the lives with
changed and with assembled rows, whose publishing is nothing new, the usual suite tries fewer.

Where the machine dies, too, the disk keeps what was forced to it, and of the rest what it happens
to keep. The usual suite takes in turn a process that dies alone and three kinds of power cut;
`make test-all` has every kind at every change, and power that is cut after a killed process was
followed by another, which must not rely on what the first had not forced to the disk.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from catalog_servers import hive_server
from crash.changed_rows import CHANGES as CHANGED_ROWS
from crash.changed_rows import PUBLISHED
from crash.faults import Stopper, stopping_storage
from crash.hudi_partitions import PARTITIONS as HUDI_PARTITIONS
from crash.hudi_partitions import PUBLISHED as PUBLISHED_PARTITIONS
from crash.listing import METASTORE
from crash.power import CUTS
from crash.replaced_rows import OVERWRITES, UPSERTED, UPSERTS
from crash.scenario import APPENDS, DAY_1, Life, ending, exchanged
from crash.scenario import ASSEMBLED as ASSEMBLED_ROWS
from crash.unsynced import UNSYNCED
from s3_servers import GATEWAY
from tidegate import read_committed
from walkers import Program, program, walkers

if TYPE_CHECKING:
    from collections.abc import Iterator

ASSEMBLED = ("--scenario", "assembled")
CHANGES = ("--scenario", "changes")
OVERWRITING = ("--scenario", "overwrites")
PARTITIONS = ("--scenario", "partitions")
UPSERTING = ("--scenario", "upserts")
STORE = ("--scenario", "appends-in-store")
IN_STORE = (pytest.mark.skipif(not GATEWAY.exists(), reason="`make setup-s3` was not run"),)
IN_TURN = ("--cut", "none", "--cut", "lost", "--cut", "gone", "--cut", "doubled")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Memory where there is any: the walk forces tens of thousands of files to the disk.
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def walk() -> Iterator[Program]:
    with program("crash.walk") as found:
        yield found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("every", "arguments"),
    [
        pytest.param(61, IN_TURN, id="copied and cut"),
        pytest.param(1, ("--kill", "before"), marks=pytest.mark.slow, id="killed before"),
        pytest.param(1, ("--kill", "after"), marks=pytest.mark.slow, id="killed after"),
        pytest.param(43, (*CHANGES, *IN_TURN), id="changed rows, copied and cut"),
        pytest.param(151, (*ASSEMBLED, *IN_TURN), id="assembled, copied and cut"),
        pytest.param(131, (*PARTITIONS, *IN_TURN), id="partitions of Hudi, copied and cut"),
        pytest.param(131, (*OVERWRITING, *IN_TURN), id="overwritten, copied and cut"),
        pytest.param(127, (*UPSERTING, *IN_TURN), id="upserted, copied and cut"),
        *(
            pytest.param(every, ("--scenario", f"{of}-apart", *IN_TURN), id=f"{of} apart")
            for of, every in (("appends", 101), ("overwrites", 149), ("upserts", 103))
        ),
        *(
            pytest.param(
                1,
                ("--scenario", f"{of}-apart", *cut),
                marks=pytest.mark.slow,
                id=f"{of} apart, {name} throughout",
            )
            for of in ("appends", "overwrites", "upserts")
            for name, cut in (("copied", ()), ("cut", IN_TURN))
        ),
        pytest.param(149, STORE, marks=IN_STORE, id="in a store"),
        pytest.param(
            167,
            ("--scenario", "upserts-apart-in-store", "--kill", "after"),
            marks=IN_STORE,
            id="upserts apart in a store, killed after",
        ),
        *(
            pytest.param(
                3,
                ("--scenario", f"{of}-in-store"),
                marks=(*IN_STORE, pytest.mark.slow),
                id=f"{of} in a store throughout",
            )
            for of in ("appends", "overwrites", "upserts", "upserts-apart")
        ),
        pytest.param(1, (), marks=pytest.mark.slow, id="copied throughout"),
        pytest.param(1, ASSEMBLED, marks=pytest.mark.slow, id="assembled, copied throughout"),
        pytest.param(1, IN_TURN, marks=pytest.mark.slow, id="copied and cut throughout"),
        pytest.param(1, CHANGES, marks=pytest.mark.slow, id="changed rows copied throughout"),
        pytest.param(1, PARTITIONS, marks=pytest.mark.slow, id="partitions copied throughout"),
        pytest.param(1, OVERWRITING, marks=pytest.mark.slow, id="overwritten, copied throughout"),
        pytest.param(1, UPSERTING, marks=pytest.mark.slow, id="upserted, copied throughout"),
        pytest.param(
            3, (*UPSERTING, *IN_TURN), marks=pytest.mark.slow, id="upserted, cut throughout"
        ),
        *(
            pytest.param(1, (*of, "--cut", cut), marks=pytest.mark.slow, id=f"{name}cut, {cut}")
            for name, of in (("", ()), ("changed rows ", CHANGES))
            for cut in CUTS
        ),
        pytest.param(
            5,
            ("--kill", "before", "--cut", "lost", "--cut", "gone"),
            marks=pytest.mark.slow,
            id="killed and cut later",
        ),
    ],
)
def test_death_at_any_change_ends_as_an_undisturbed_life(
    walk: Program, folder: Path, every: int, arguments: tuple[str, ...]
) -> None:
    many = walkers()
    shares = [f"{number * every}/{many * every}" for number in range(many)]

    codes, text = walk.run(
        *([folder / str(at), "--share", share, *arguments] for at, share in enumerate(shares))
    )

    assert codes == [0] * many, text
    assert text.count("died ") == many, text


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", ["overwrites-in-store", "upserts-apart-in-store"])
@pytest.mark.skipif(not GATEWAY.exists(), reason="`make setup-s3` was not run")
def test_reader_of_a_store_never_sees_a_marker_over_what_it_does_not_list(
    walk: Program, folder: Path, scenario: str
) -> None:
    codes, text = walk.run([folder / "store", "--scenario", scenario, "--read-along"])

    assert codes == [0], text


@pytest.fixture(scope="module")
def listed_walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with (
        hive_server(tmp_path_factory.mktemp("hive")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(METASTORE, str(server.port))
        with program("crash.walk") as found:
            yield found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--kill", "after", "--named", "list ", "--most", "3"), id="killed at a few"),
        pytest.param(("--kill", "before"), marks=pytest.mark.slow, id="killed throughout"),
        pytest.param(("--read-along",), marks=pytest.mark.slow, id="read along"),
    ],
)
def test_partition_is_found_by_the_metastore_only_where_its_revision_is_whole(
    listed_walk: Program, folder: Path, arguments: tuple[str, ...]
) -> None:
    codes, text = listed_walk.run([folder, "--scenario", "upserts-apart-listed", *arguments])

    assert codes == [0], text


def test_undisturbed_life_of_changed_rows_exchanges_and_publishes_what_a_commit_changed(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path / "root", *CHANGED_ROWS.make_source(tmp_path / "source"), CHANGED_ROWS)
    between: set[str] = set()
    stopper = Stopper(between=lambda: between.update(exchanged(life.root)))
    life.prepare()

    life.live(stopping_storage(stopper))

    rows = read_committed(life.root / "published" / "orders").to_table().to_pylist()
    assert Counter((row["_change_type"], row["id"]) for row in rows) == PUBLISHED
    # One file of each side of the commit, in the load and in the replay.
    assert len(between) == 4
    assert exchanged(life.root) == []


def test_undisturbed_life_of_hudis_partitions_publishes_and_empties_them(tmp_path: Path) -> None:
    life = Life(
        tmp_path / "root", *HUDI_PARTITIONS.make_source(tmp_path / "source"), HUDI_PARTITIONS
    )
    life.prepare()

    life.live()

    rows = read_committed(life.root / "published" / "orders").to_table().to_pylist()
    assert {(row["k"], row["day"]) for row in rows} == PUBLISHED_PARTITIONS
    assert len(rows) == len(PUBLISHED_PARTITIONS)


def test_undisturbed_life_of_upserts_ends_with_the_last_state_of_each_key(tmp_path: Path) -> None:
    life = Life(tmp_path / "root", *UPSERTS.make_source(tmp_path / "source"), UPSERTS)
    life.prepare()

    life.live()

    rows = read_committed(life.root / "published" / "orders").to_table().to_pylist()
    found = {row["id"]: ((row["at"] - DAY_1).days + 1, row["amount"]) for row in rows}
    assert found == UPSERTED
    assert len(rows) == len(UPSERTED)


def test_undisturbed_life_of_overwriting_ends_with_the_days_of_the_last_windows(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path / "root", *OVERWRITES.make_source(tmp_path / "source"), OVERWRITES)
    life.prepare()

    life.live()

    rows = read_committed(life.root / "published" / "orders").to_table().to_pylist()
    # The third commit has rows of the first and third day, and of the fourth, which is not over;
    # the second has those of the second.
    assert Counter(row["dt"] for row in rows) == {
        "2026-02-01": 10,
        "2026-02-02": 19,
        "2026-02-03": 24,
    }


def test_undisturbed_life_of_assembled_rows_hands_them_on(tmp_path: Path) -> None:
    between: set[str] = set()
    ends = []
    for scenario in (APPENDS, ASSEMBLED_ROWS):
        root = tmp_path / "root"
        life = Life(root, *scenario.make_source(tmp_path / f"source-{scenario.many}"), scenario)
        stopper = Stopper(between=lambda root=root: between.update(exchanged(root)))
        life.prepare()
        life.live(stopping_storage(stopper))
        ends.append(ending(root))
        root.rename(tmp_path / f"root-{scenario.many}")

    plain, assembled = ends
    assert between
    assert assembled["exchanged"] == []
    assert assembled["rows"] == plain["rows"]
    assert assembled["visible rows"] == plain["visible rows"]
    assert len(assembled["files"]) < len(plain["files"])


@pytest.mark.timeout(300)
def test_death_while_exchanged_rows_are_swept_leaves_none_behind(
    walk: Program, folder: Path
) -> None:
    codes, text = walk.run([folder, *CHANGES, "--named", "unlink w"])

    assert codes == [0], text
    assert "died before 4 of" in text


@pytest.mark.timeout(300)
def test_killed_process_leaves_what_was_copied(walk: Program, folder: Path) -> None:
    codes, text = walk.run([folder, "--share", "7/320", "--kill", "before"])

    assert codes == [0], text


@pytest.mark.timeout(300)
def test_process_is_killed_after_a_call_that_fails_too(walk: Program, folder: Path) -> None:
    # The first marker that is retracted is not there.
    named = ("--named", "unlink _SUCCESS", "--most", "1")

    codes, text = walk.run([folder, "--kill", "after", *named])

    assert codes == [0], text


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "scenario", ["appends", "appends-apart", "overwrites-apart", "upserts-apart"]
)
def test_reader_between_any_two_changes_finds_every_marker_true(
    walk: Program, folder: Path, scenario: str
) -> None:
    """PC-V23, V24 and V31: no staged file is in the table, and no marker stands before its data."""
    codes, text = walk.run([folder, "--scenario", scenario, "--read-along"])

    assert codes == [0], text


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("arguments", "symptom"),
    [
        (("--mistake", "marker-first", "--read-along"), "which is not there"),
        (
            (
                "--kill",
                "before",
                "--mistake",
                "checkpoint-before-contributions",
                "--named",
                "INSERT INTO contribution",
                "--most",
                "2",
            ),
            "rows: expected",
        ),
        (("--mistake", "message-replaced", "--named", "link", "--most", "8"), "written again: "),
    ],
    ids=["marker first", "checkpoint before contributions", "message replaced"],
)
def test_deliberate_mistake_is_caught(
    walk: Program, folder: Path, arguments: tuple[str, ...], symptom: str
) -> None:
    codes, text = walk.run([folder, *arguments])

    assert codes == [1], text
    assert symptom in text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_thing_that_is_not_forced_to_the_disk_is_seen(folder: Path) -> None:
    many = walkers()
    shares = [f"{number}/{many}" for number in range(many)]

    with program("crash.try_unsynced") as trying:
        codes, text = trying.run(
            *([folder / str(at), "--share", share] for at, share in enumerate(shares))
        )

    told = dict(re.findall(r"^(\S+): died before .* wrong (\d+) times$", text, re.MULTILINE))
    assert codes == [0] * many, text
    assert told.keys() == UNSYNCED.keys()
    assert [name for name, wrong in told.items() if wrong == "0"] == [], text
