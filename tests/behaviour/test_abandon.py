"""A window that cannot be finished is given up: nothing lost, nothing doubled, nothing stuck."""

from __future__ import annotations

import json
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import DAY, DAY_1, NOW, SmallLake, later, load, local, publish, published_ids
from tidegate.cli.app import app
from tidegate.errors import (
    AbandonRefused,
    FenceLost,
    ListedFileChanged,
    SourceFileDamaged,
    TidegateError,
    WindowNotFound,
    WindowOpen,
)
from tidegate.ledger.holder import Holder, Life
from tidegate.model.instant import DataInterval
from tidegate.model.plan import WindowKind
from tidegate.model.run import PlannedWindow, Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"
DEAD, LIVING = "dead", "living"
SOON = timedelta(minutes=10)
"""Longer than a run is believed to live that does not renew."""


class Folder:
    """Files of one day each, and a pipeline over them."""

    def __init__(self, lake: SmallLake) -> None:
        self.lake = lake
        self.root = lake.root / "landing"
        self.root.mkdir()
        lake.keys = {"commit": {"trigger": "process-time"}}

    def put(self, name: str, day: int, *ids: int) -> Path:
        at = [DAY_1 + DAY * (day - 1) + timedelta(minutes=row) for row in range(len(ids))]
        path = self.root / f"{name}.parquet"
        columns = {"id": pa.array(ids, pa.int64()), "at": pa.array(at, pa.timestamp("us", "UTC"))}
        pq.write_table(pa.table(columns), path)
        return path

    def pipeline(self, **source: Any) -> Pipeline:
        self.lake.source = {"kind": "files", "path": str(self.root), **source}
        return self.lake.pipeline()

    def plan(self, owner: str = DEAD, interval: DataInterval | None = None) -> PlannedWindow:
        """Take a window and write its plan; its process goes no further."""
        (planned,) = self.pipeline().plan(Run(owner, owner, interval), NOW)
        return planned

    def abandon(self, sequence: int, owner: str = "cli") -> None:
        """Give a window up, long after its run was last seen."""
        later(self.pipeline(), SOON).abandon(sequence, owner, NOW, by="ada", comment="gone")

    def published(self) -> dict[str, list[int]]:
        publish(self.pipeline())
        found = published_ids(self.lake.target)
        assert {name: ids for name, ids in self.lake.listed_ids().items() if ids} == found
        return found

    def lose_ledger(self) -> None:
        for path in self.lake.root.glob("ledger.db*"):
            path.unlink()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """One window that was announced, and a file for the next one."""
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", 1, 1, 2)
    load(folder.pipeline())
    folder.put("b", 2, 3)
    return folder


def check_goes_on(folder: Folder, expected: dict[str, list[int]], sequence: int) -> None:
    """Load and publish what is there, and compare; the next window has a number of its own."""
    announced = load(folder.pipeline())
    assert announced.windows == (sequence,)
    assert folder.published() == expected
    assert list(folder.pipeline().findings()) == []
    assert load(folder.pipeline()).windows == ()


def test_window_whose_file_is_gone_is_given_up_and_the_next_begins_where_it_began(
    folder: Folder,
) -> None:
    planned = folder.plan()
    (folder.root / "b.parquet").unlink()
    folder.put("c", 2, 4)
    before = folder.pipeline().ledger.pipeline.get()

    folder.abandon(planned.sequence)

    after = folder.pipeline().ledger.pipeline.get()
    assert (after.checkpoint, after.watermark) == (before.checkpoint, before.watermark)
    assert folder.pipeline().ledger.windows.open() is None
    record = json.loads(
        (folder.lake.work / "windows/000002" / planned.digest)
        .joinpath("abandoned.json")
        .read_bytes()
    )
    assert (record["by"], record["comment"], record["window"]["sequence"]) == ("ada", "gone", 2)
    check_goes_on(folder, {FIRST: [1, 2], SECOND: [4]}, 3)
    (first, next_one) = folder.pipeline().ledger.windows.all()
    assert next_one.window.range.start_exclusive == first.window.range.end_inclusive


def test_first_window_of_a_pipeline_is_given_up(tmp_path: Path) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", 1, 1)
    folder.plan()
    folder.put("a", 1, 2)

    folder.abandon(1)

    check_goes_on(folder, {FIRST: [2]}, 2)


@pytest.mark.follows("SourceFileDamaged")
def test_damaged_page_that_is_corrected_by_another_file_is_published(folder: Folder) -> None:
    """The way to the end: damaged, the window stays open, rewritten, given up, loaded."""
    whole = (folder.root / "b.parquet").read_bytes()
    damaged = whole[:4] + bytes(40) + whole[44:]
    (folder.root / "b.parquet").write_bytes(damaged)
    with pytest.raises(SourceFileDamaged, match="tidegate abandon PIPELINE"):
        load(folder.pipeline())
    folder.put("b", 2, 3, 5)
    with pytest.raises(ListedFileChanged, match="tidegate abandon PIPELINE"):
        load(folder.pipeline())

    folder.abandon(2)

    check_goes_on(folder, {FIRST: [1, 2], SECOND: [3, 5]}, 3)


def test_rebuild_whose_file_changed_again_is_given_up(folder: Folder) -> None:
    load(folder.pipeline())
    folder.put("a", 1, 7)
    pipeline = folder.pipeline()
    named = [pipeline.parse_partition(FIRST)]
    pipeline.rebuild(named, Run(DEAD, DEAD), NOW)
    folder.put("a", 1, 8)
    before = pipeline.ledger.pipeline.get()
    held = pipeline.ledger.windows.open()
    assert held is not None
    assert held.window.kind is WindowKind.REBUILD

    folder.abandon(3)
    pipeline = folder.pipeline()
    assert pipeline.ledger.pipeline.get().checkpoint == before.checkpoint
    pipeline.finish_load(pipeline.rebuild(named, Run("again", "cli"), NOW), NOW, local)

    assert folder.published() == {FIRST: [8], SECOND: [3]}
    assert list(folder.pipeline().findings()) == []
    assert load(folder.pipeline()).windows == ()


def test_history_window_is_given_up_and_its_interval_backfilled_again(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})
    early, late = lake.commit({1: 1}), lake.commit({1: 2})
    lake.source["start"] = {"after": (DAY_1 + DAY).isoformat()}
    load(lake.pipeline(), DataInterval(DAY_1 + DAY, DAY_1 + 2 * DAY))
    interval = DataInterval(DAY_1, DAY_1 + DAY)
    lake.pipeline().plan(Run(DEAD, DEAD, interval), NOW)

    later(lake.pipeline(), SOON).abandon(2, "cli", NOW, by="ada")
    load(lake.pipeline(), interval)

    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {FIRST: sorted(early + late)}


def test_window_of_an_iceberg_table_is_given_up(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})
    ids = lake.commit({1: 2})
    lake.pipeline().plan(Run(DEAD, DEAD), NOW)
    ids += lake.commit({1: 1})

    later(lake.pipeline(), SOON).abandon(1, "cli", NOW, by="ada")
    assert load(lake.pipeline()).windows == (2,)

    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {FIRST: ids}


@pytest.mark.parametrize("waits", [False, True], ids=["lives", "waits in Airflow"])
def test_window_of_a_living_run_is_kept_and_the_run_named(folder: Folder, *, waits: bool) -> None:
    owner = "airflow:orders_load:run" if waits else LIVING
    planned = folder.plan(owner)
    pipeline = later(folder.pipeline(), SOON) if waits else folder.pipeline()

    with pytest.raises(WindowOpen, match=owner):
        pipeline.abandon(2, "cli", NOW, by="ada")

    assert not list((folder.lake.work / "windows").rglob("abandoned*"))
    folder.pipeline().finish_load([planned], NOW, local)
    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}


@pytest.mark.follows("AbandonRefused")
def test_window_that_was_announced_is_refused_and_replayed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(folder.pipeline())

    with pytest.raises(AbandonRefused, match="it announced") as refused:
        folder.abandon(2)

    said = typed(folder, monkeypatch, command_in(refused.value, "replay"))
    assert said.exit_code == 0, said.output
    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}
    assert not list((folder.lake.work / "windows").rglob("abandoned*"))


@pytest.mark.follows("AbandonRefused")
def test_window_whose_announce_is_in_a_file_is_refused_and_finished(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process died before it told the ledger, or the ledger is from a backup."""
    planned = folder.plan(DEAD)
    with pytest.raises(Died):
        dying_before_the_ledger(folder.pipeline(), planned)
    (folder.root / "b.parquet").unlink()
    folder.pipeline(on_changed_file="ignore")

    with pytest.raises(AbandonRefused, match="announce by plan") as refused:
        later(folder.lake.pipeline(), SOON).abandon(2, "cli", NOW, by="ada")

    said = typed(folder, monkeypatch, command_in(refused.value, "load"))
    assert said.exit_code == 0, said.output
    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}


def test_window_that_was_never_taken_is_not_found(folder: Folder) -> None:
    with pytest.raises(WindowNotFound):
        folder.abandon(9)


class Died(Exception):
    """The process is gone."""


def dying_before_the_ledger(pipeline: Pipeline, planned: PlannedWindow) -> None:
    """Stage and announce, and die when the announce is in its file only."""
    with local("") as executor:
        pipeline.stage(planned, executor)

    def die(*_: object) -> None:
        raise Died

    # A frozen value: its class knows the way to the ledger.
    windows = pipeline.ledger.windows
    object.__setattr__(windows, "announce", die)
    pipeline.announce([planned], NOW)


ZOMBIES: dict[str, Callable[[Pipeline, PlannedWindow], object]] = {
    "announces": lambda pipeline, planned: pipeline.announce([planned], NOW),
    "does both": lambda pipeline, planned: pipeline.finish_load([planned], NOW, local),
    "renews": lambda pipeline, planned: pipeline.ledger.windows.renew(
        planned.sequence, planned.attempt, SOON
    ),
}


def stage(pipeline: Pipeline, planned: PlannedWindow) -> None:
    with local("") as executor:
        pipeline.stage(planned, executor)


@pytest.mark.parametrize("step", ["announces", "does both", "renews"])
@pytest.mark.parametrize("loaded", [False, True], ids=["", "and the next loaded"])
def test_zombie_finds_its_window_gone(folder: Folder, step: str, *, loaded: bool) -> None:
    planned = folder.plan()
    zombie = folder.pipeline()
    if step == "announces":
        stage(zombie, planned)
    folder.abandon(2)
    if loaded:
        load(folder.pipeline())

    with pytest.raises(FenceLost):
        ZOMBIES[step](zombie, planned)

    if not loaded:
        load(folder.pipeline())
    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}
    assert list(folder.pipeline().findings()) == []


@pytest.mark.parametrize("ledger", ["kept", "lost"])
def test_announce_that_a_zombie_writes_late_counts_for_nobody(folder: Folder, ledger: str) -> None:
    """It had its number before the window was given up, and writes the file afterwards."""
    planned = folder.plan()
    zombie = folder.pipeline()
    stage(zombie, planned)
    windows = zombie.ledger.windows
    reserve = windows.reserve

    def reserve_and_sleep(sequence: int, attempt: int, digest: str) -> int:
        number = reserve(sequence, attempt, digest)
        folder.abandon(2)
        return number

    object.__setattr__(windows, "reserve", reserve_and_sleep)
    with pytest.raises(FenceLost):
        zombie.announce([planned], NOW)
    assert list((folder.lake.work / "windows/000002").rglob("sealed.json"))

    assert list(folder.pipeline().findings()) == []
    if ledger == "lost":
        folder.lose_ledger()
        folder.pipeline().restore_ledger()
    check_goes_on(folder, {FIRST: [1, 2], SECOND: [3]}, 3)


@pytest.mark.parametrize("loaded", [False, True], ids=["", "and the next loaded"])
def test_restored_ledger_knows_that_the_window_was_given_up(
    folder: Folder, *, loaded: bool
) -> None:
    folder.plan()
    folder.abandon(2)
    (folder.root / "b.parquet").unlink()
    folder.put("c", 2, 4)
    if loaded:
        load(folder.pipeline())

    folder.lose_ledger()
    folder.pipeline().restore_ledger()

    assert folder.pipeline().ledger.windows.open() is None
    if loaded:
        assert folder.published() == {FIRST: [1, 2], SECOND: [4]}
        folder.put("d", 2, 5)
    ids = [4, 5] if loaded else [4]
    check_goes_on(folder, {FIRST: [1, 2], SECOND: ids}, 4 if loaded else 3)


def test_ledger_of_before_the_window_gives_its_number_to_another_plan(folder: Folder) -> None:
    """From a backup: the same window would have the same plan, which was given up."""
    backup = {path.name: path.read_bytes() for path in folder.lake.root.glob("ledger.db*")}
    planned = folder.plan()
    stage(folder.pipeline(), planned)
    folder.abandon(2)
    folder.lose_ledger()
    for name, content in backup.items():
        (folder.lake.root / name).write_bytes(content)

    check_goes_on(folder, {FIRST: [1, 2], SECOND: [3]}, 2)

    (_, again) = folder.pipeline().ledger.windows.all()
    assert again.plan_digest != planned.digest
    folder.lose_ledger()
    assert folder.pipeline().restore_ledger().windows == 2
    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}


def test_ledger_in_which_the_window_is_open_drops_it_at_the_next_load(folder: Folder) -> None:
    """From a backup that was made before the window was given up."""
    planned = folder.plan()
    stage(folder.pipeline(), planned)
    backup = {path.name: path.read_bytes() for path in folder.lake.root.glob("ledger.db*")}
    folder.abandon(2)
    folder.lose_ledger()
    for name, content in backup.items():
        (folder.lake.root / name).write_bytes(content)
    (found,) = folder.pipeline().findings()
    assert found.startswith("window 2 was abandoned, and is still open in the ledger; `tidegate")
    assert folder.pipeline().looking().preview(Run("look", "cli"), NOW).plan is not None

    pipeline = later(folder.pipeline(), SOON)
    assert load(pipeline).windows == (3,)

    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}
    assert list(folder.pipeline().findings()) == []


@pytest.mark.on_disk
def test_garbage_of_a_window_that_was_given_up_is_found_and_deleted(folder: Folder) -> None:
    planned = folder.plan()
    stage(folder.pipeline(), planned)
    folder.abandon(2)
    load(folder.pipeline())
    root = folder.lake.work / "windows/000002" / planned.digest
    left = {
        path
        for kind in ("staged", "messages")
        for path in root.joinpath(kind).rglob("*")
        if path.is_file()
    }
    assert len(left) == 2

    young = folder.pipeline().garbage(NOW, DAY * 365)
    garbage = folder.pipeline().garbage(NOW + 3650 * DAY, DAY)
    swept = folder.pipeline().sweep(garbage)

    assert young == ()
    assert {item.path for item in garbage} == {str(path) for path in left}
    assert {item.reason for item in garbage} == {"of a window that was abandoned"}
    assert swept == garbage
    assert sorted(path.name for path in root.iterdir() if path.is_file()) == [
        "abandoned.json",
        "plan.json",
        "splits.jsonl",
    ]
    assert folder.published() == {FIRST: [1, 2], SECOND: [3]}
    folder.lose_ledger()
    assert folder.pipeline().restore_ledger().windows == 2


def test_window_without_a_plan_is_given_up(folder: Folder) -> None:
    """Its process died right after it took it."""
    pipeline = folder.pipeline()
    planned = folder.plan()
    held = pipeline.ledger.windows.get(2)
    pipeline.ledger.windows.give_back(2, held.attempt, lost_plan=planned.uri)
    state = pipeline.ledger.pipeline.get()
    pipeline.ledger.windows.take(held.window, state, Holder(DEAD, NOW, timedelta(minutes=2)))

    folder.abandon(3)

    check_goes_on(folder, {FIRST: [1, 2], SECOND: [3]}, 4)


def typed(folder: Folder, monkeypatch: pytest.MonkeyPatch, line: str) -> Any:
    folder.lake.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "4000")
    program, *arguments = shlex.split(line)
    assert program == "tidegate"
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def command_in(error: TidegateError, verb: str) -> str:
    return next(part for part in str(error).split("`") if part.startswith(f"tidegate {verb} "))


def test_command_says_what_it_dropped_and_what_comes_next(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.plan("cli:elsewhere:1:2:3.4")
    monkeypatch.setattr("tidegate.pipeline.state.holders.life_of", lambda _owner: Life.GONE)
    lines = "tidegate abandon orders", "tidegate abandon orders --json"
    for line in lines:
        refused = typed(folder, monkeypatch, line)
        assert refused.exit_code == 2, refused.output
        assert "--yes" in refused.output
    assert folder.pipeline().ledger.windows.open() is not None

    unknown = typed(folder, monkeypatch, "tidegate abandon orders 0 --yes")
    assert unknown.exit_code == 2, unknown.output
    assert "window 0" in unknown.output
    assert folder.pipeline().ledger.windows.open() is not None

    said = typed(folder, monkeypatch, "tidegate abandon orders 2 --yes --comment 'file is gone'")

    assert said.exit_code == 0, said.output
    assert "Window 2 is a load with the instants (000001-" in said.output
    assert "given up: 0 sub-splits had been staged, and nothing was announced" in said.output
    assert "The next one begins where it began, after 000001-" in said.output
    assert "Next: tidegate load orders" in said.output
    again = typed(folder, monkeypatch, "tidegate abandon orders 2 --yes")
    assert (again.exit_code, again.output.strip()) == (3, "Window 2 was given up already.")
    nothing = typed(folder, monkeypatch, "tidegate abandon orders --yes")
    assert nothing.exit_code == 3
    assert "No window is open" in nothing.output
    check_goes_on(folder, {FIRST: [1, 2], SECOND: [3]}, 3)


@pytest.mark.parametrize("answer", ["y", "n"])
def test_command_asks_on_a_terminal(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    folder.plan()
    monkeypatch.setattr("tidegate.pipeline.state.holders.life_of", lambda _owner: Life.GONE)
    monkeypatch.setattr("tidegate.cli.output.at_terminal", lambda: True)
    folder.lake.found_by_name(monkeypatch)

    said = CliRunner().invoke(app, ["abandon", "orders"], input=f"{answer}\n")

    assert said.exit_code == (0 if answer == "y" else 3), said.output
    assert "It was taken by dead at 2026-06-01 00:00Z." in said.output
    assert (folder.pipeline().ledger.windows.open() is None) == (answer == "y")
