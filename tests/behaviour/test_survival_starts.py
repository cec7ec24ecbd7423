"""Where the first window begins, whatever the first run was for: of files, and of a table."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import DAY, DAY_1, NOW, SCHEMA, SmallLake, interval, known, load, publish
from tidegate.cli.app import app
from tidegate.cli.output import NOTHING
from tidegate.errors import StateFileLost
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

DAYS = 5
FIRST = 4
"""The day that the pipelines start from."""
START = known(FIRST - 1)
ORDERS = (
    ("1", "2", "3", "4", "5"),
    ("5", "4", "3", "2", "1"),
    ("3", "2", "4"),
    ("2", "all", "3"),
    ("all", "3", "1"),
    ("4", "3", "3", "all"),
    ("until 2", "all"),
    ("until 3", "2", "5"),
    ("until 4", "3"),
)


class Days:
    """A source that brings one row on each day, and the pipeline over it."""

    def __init__(self, root: Path, kind: str, start: object) -> None:
        keys = {"commit": {"trigger": "process-time"}, "source": {"start": start}}
        self.lake = SmallLake(root, keys=keys)
        self.kind = kind
        self.landing = root / "landing"
        if kind == "files":
            self.landing.mkdir()
            self.lake.source = {"kind": "files", "path": str(self.landing)}

    def bring(self, number: int) -> None:
        """Bring the row of a day, at noon of it."""
        if self.kind == "iceberg":
            self.lake.commits = number - 1
            self.lake.commit({number: 1})
            return
        rows = {"id": [number], "at": [DAY_1 + DAY * (number - 1)], "amount": [1]}
        path = self.landing / f"{number}.parquet"
        pq.write_table(pa.table(rows, SCHEMA), path)
        os.utime(path, (known(number - 0.5).timestamp(),) * 2)

    def pipeline(self) -> Pipeline:
        return self.lake.pipeline()

    def published(self) -> set[int]:
        """Give the days whose rows are out."""
        publish(self.pipeline())
        found = self.lake.ids()
        assert all(len(ids) == 1 for ids in found.values())
        return {int(name[-2:]) for name in found}


def run_of(word: str) -> Run:
    """Give the run of a word: of a day's interval, up to the end of a day, or of everything."""
    if word == "all":
        return Run("run", "cli")
    number = int(word.removeprefix("until "))
    if word.startswith("until"):
        return Run("run", "cli", until=known(number))
    return Run("run", "cli", interval(number))


def expected(order: tuple[str, ...]) -> set[int]:
    """Say which days are out: from the start on what any run reached, before it what was named."""
    reached = max(DAYS if word == "all" else int(word[-1]) for word in order)
    named = {int(word) for word in order if word.isdecimal()}
    return {*range(FIRST, reached + 1), *(number for number in named if number < FIRST)}


@pytest.fixture(params=["files", "iceberg"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def days(root: Path, kind: str, start: object, numbers: range = range(1, DAYS + 1)) -> Days:
    source = Days(root / "lake", kind, start)
    for number in numbers:
        source.bring(number)
    return source


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_runs_in_any_order_read_what_they_name_and_what_follows_the_start(
    tmp_path: Path, kind: str, order: tuple[str, ...]
) -> None:
    source = days(tmp_path, kind, {"from": START.isoformat()})

    for word in order:
        run = run_of(word)
        load(source.pipeline(), run.interval, until=run.until)

    assert source.published() == expected(order)


@pytest.mark.parametrize("word", ["1", "3", "4", "until 3", "until 4", "all"])
def test_dry_run_before_the_first_load_says_what_it_will_take(
    tmp_path: Path, kind: str, word: str
) -> None:
    source, run = days(tmp_path, kind, {"from": START.isoformat()}), run_of(word)

    previewed = source.pipeline().looking().preview(run, NOW).range
    load(source.pipeline(), run.interval, until=run.until)

    taken = [item.window.range for item in source.pipeline().ledger.windows.all()]
    assert taken == ([previewed] if previewed else [])


@pytest.mark.parametrize("word", ["2", "until 2", "3", "all"])
def test_latest_begins_after_all_that_stands_whatever_the_first_run_is_for(
    tmp_path: Path, kind: str, word: str
) -> None:
    source, run = days(tmp_path, kind, "latest", range(1, FIRST)), run_of(word)
    previewed = source.pipeline().looking().preview(run, NOW).range
    load(source.pipeline(), run.interval, until=run.until)
    taken = [item.window.range for item in source.pipeline().ledger.windows.all()]
    for number in range(FIRST, DAYS + 1):
        source.bring(number)

    load(source.pipeline())

    assert taken == ([previewed] if previewed else [])
    assert source.published() == {*range(FIRST, DAYS + 1), *([2] if word == "2" else [])}


def test_start_that_lies_in_an_interval_leaves_its_first_part_out_until_it_is_asked_for_again(
    tmp_path: Path, kind: str
) -> None:
    """The first run of an interval is none that names what lies before the start."""
    source = days(tmp_path, kind, {"from": START.isoformat()})
    around = interval(FIRST - 1, days=2)

    load(source.pipeline(), around)
    once = source.published()
    load(source.pipeline(), around)

    assert once == {FIRST}
    assert source.published() == {FIRST - 1, FIRST}


@pytest.mark.parametrize("side", ["from", "after"])
def test_load_with_nothing_after_the_start_takes_no_window(
    tmp_path: Path, kind: str, side: str
) -> None:
    source = days(tmp_path, kind, {side: START.isoformat()}, range(1, FIRST))

    load(source.pipeline())

    assert source.pipeline().ledger.windows.all() == ()


@pytest.mark.parametrize("side", ["from", "after"])
def test_start_in_the_future_reads_nothing_that_comes_before_it(
    tmp_path: Path, kind: str, side: str
) -> None:
    source = days(tmp_path, kind, {side: START.isoformat()}, range(1, FIRST - 1))
    run, waits = Run("run", "cli"), "source.start lies in the future (2026-02-04T00:00:00Z)"
    for moment in (known(FIRST - 2), START - timedelta(seconds=1)):
        look = source.pipeline().look(run, moment)
        preview = source.pipeline().looking().preview(run, moment)
        assert load(source.pipeline(), now=moment).windows == ()
        assert (look.kind, look.detail) == ("none", waits)
        assert (preview.plan, preview.waits) == (None, waits)
        if moment < known(FIRST - 1.5):
            source.bring(FIRST - 1)

    assert not list(source.lake.work.glob("start-*"))
    load(source.pipeline(), now=START)
    source.bring(FIRST)
    load(source.pipeline(), now=known(FIRST))

    assert source.published() == {FIRST}


def test_start_that_is_put_into_the_future_later_stays_where_it_was(
    tmp_path: Path, kind: str
) -> None:
    source = days(tmp_path, kind, {"from": START.isoformat()}, range(1, FIRST))
    load(source.pipeline(), now=START)
    source.lake.keys["source"] = {"start": {"from": known(40).isoformat()}}
    source.bring(FIRST)

    load(source.pipeline(), now=known(FIRST))

    assert source.published() == {FIRST}


def test_commands_before_the_start_say_what_they_wait_for(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = days(tmp_path, kind, {"from": "2999-01-01T01:00:00+01:00"})
    source.lake.found_by_name(monkeypatch)
    source.pipeline()

    for line in (["plan", "--dry-run", "orders"], ["load", "orders"]):
        result = CliRunner().invoke(app, line, catch_exceptions=False)

        says = " ".join(result.output.split())
        assert "Nothing to load: source.start lies in the future (2999-01-01T00:00:00Z)." in says
        assert result.exit_code == NOTHING


def test_interval_after_the_start_is_done_again_without_the_listing_of_the_start(
    tmp_path: Path,
) -> None:
    source = days(tmp_path, "files", {"from": START.isoformat()}, range(1, FIRST + 1))
    load(source.pipeline(), interval(FIRST))
    source.bring(FIRST + 1)
    load(source.pipeline(), interval(FIRST + 1))
    (source.lake.work / "listings" / "000001.json").unlink()

    again = load(source.pipeline(), interval(FIRST + 1))

    assert again.windows == (2,)
    with pytest.raises(StateFileLost, match="leave the interval out"):
        load(source.pipeline(), interval(FIRST - 1))
    assert source.published() == {FIRST, FIRST + 1}
