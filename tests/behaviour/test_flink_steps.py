"""Files that arrive one by one, and which hours are committed after each: as Flink does, or not.

Four files have rows of three hours (`oracle/questions/commits.py`); each is one run. Flink's own
triggers were led through the same steps (PC-V40).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crash.promises import visible_below
from oracle.questions import commits
from oracle.recorded import recorded
from small_lake import load, merged
from tidegate import read_committed
from tidegate.config.part_files import TargetFormat
from tidegate.model.watermark import Reason
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

DAY = datetime(2020, 12, 1, tzinfo=UTC)
START = datetime(2020, 12, 2, tzinfo=UTC)
"""Of the test clock: after the day, because event times of the future do not count."""
FLINK = {case["ask"]["name"]: case for case in recorded("commits")}
BY_VALUES = {"dt": "dt", "hr": "hr"}
BY_TIME = {"dt": "day(at)", "hr": "hour(at)"}
PATTERN = "$dt $hr:00:00"


@dataclass
class Inbox:
    """A folder into which files come, and a pipeline that publishes them by hour."""

    root: Path
    keys: dict[str, Any]
    arrived: int = 0

    @property
    def target(self) -> Path:
        return self.root / "out"

    @cached_property
    def pipeline(self) -> Pipeline:
        usual = {
            "name": "hours",
            "source": {"kind": "files", "path": str(self.root / "raw")},
            "event_time": "at",
            "target": {"path": str(self.target), "partition_by": BY_VALUES},
        }
        path = self.root / "hours.yaml"
        path.write_text(json.dumps(merged(usual, self.keys)))
        return open_pipeline(path, ledger=f"sqlite:///{self.root}/ledger.db")

    def drop(self, *times: str) -> None:
        """Let a file come with a row for each event time."""
        moments = [
            datetime.fromisoformat(f"{DAY:%Y-%m-%d}T{time}").replace(tzinfo=UTC) for time in times
        ]
        columns = {
            "id": [f"{self.arrived}-{time}" for time in times],
            "at": moments,
            "dt": [f"{moment:%Y-%m-%d}" for moment in moments],
            "hr": [f"{moment:%H}" for moment in moments],
        }
        raw = self.root / "raw"
        raw.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), raw / f"{self.arrived}.parquet")
        self.arrived += 1

    def run(self, second: int) -> dict[str, tuple[int, int]]:
        """Load and publish at a second of the clock; what was committed: hour → revision, rows."""
        before = self.committed()
        assert "failed" not in self.outcomes(second)
        return dict(self.committed().items() - before.items())

    def outcomes(self, second: int) -> list[str]:
        """Load and publish at a second of the clock; what became of each partition."""
        now = START + timedelta(seconds=second)
        load(self.pipeline, now=now)
        return [outcome.state for outcome in self.pipeline.publish_all("cli", now)]

    def read(self, column: str) -> list[Any]:
        """Read a column of what is committed."""
        found: list[Any] = read_committed(str(self.target)).to_table()[column].to_pylist()
        return found

    def committed(self) -> dict[str, tuple[int, int]]:
        """Read the markers: hour → revision, rows."""
        markers = {
            path.parent.name.removeprefix("hr="): json.loads(path.read_bytes())
            for path in self.target.rglob("_SUCCESS")
        }
        return {hour: (found["revision"], found["rows"]) for hour, found in markers.items()}

    def live(self, case: dict[str, Any]) -> list[dict[str, tuple[int, int]]]:
        """Go through the steps that Flink was led through."""
        files = iter(commits.FILES)
        found = []
        for step in case["ask"]["steps"]:
            if step["add"]:
                self.drop(*next(files))
            found.append(self.run(step["clock"]))
        return found


@pytest.fixture
def inbox(tmp_path: Path) -> Callable[..., Inbox]:
    return lambda **keys: Inbox(tmp_path, keys)


def hours(found: list[dict[str, tuple[int, int]]]) -> list[list[str]]:
    return [sorted(step) for step in found]


FLINKS_WAY = {"delay": "1 h", "partition_time": {"pattern": PATTERN}}
V01 = [{}, {"10": (1, 2)}, {"10": (2, 3)}, {"11": (1, 2)}]


@pytest.mark.parametrize("form", get_args(TargetFormat))
def test_hours_are_committed_when_the_watermark_has_passed_them(
    inbox: Callable[..., Inbox], form: str
) -> None:
    """PC-V01; PC-V02: what is not committed is not visible, whatever the format."""
    made = inbox(target={"format": form}, commit=FLINKS_WAY)

    found = made.live(FLINK["V01"])

    assert found == V01
    assert hours(found) == FLINK["V01"]["flink"]
    assert {path.parent.name for path in visible_below(made.target)} == {"hr=10", "hr=11"}


def test_hours_of_known_length_need_no_delay(inbox: Callable[..., Inbox]) -> None:
    """PC-V01, as a pipeline file would say it."""
    read = {"columns": ["id", "at"]}
    made = inbox(source={"read": read}, target={"partition_by": BY_TIME})

    assert made.live(FLINK["V01"]) == V01


def test_hours_of_another_zone_are_committed_too_early(inbox: Callable[..., Inbox]) -> None:
    """PC-V03: the values were formed in UTC and are read in another zone, as in PC-T22."""
    made = inbox(timezone="Asia/Shanghai", commit=FLINKS_WAY)

    found = made.live(FLINK["V03"])

    assert found == [
        {"10": (1, 2)},
        {"11": (1, 1)},
        {"10": (2, 3), "11": (2, 2)},
        {"12": (1, 1)},
    ]
    assert hours(found) == FLINK["V03"]["flink"]


def test_hour_of_a_silent_source_is_committed_once_it_is_idle(
    inbox: Callable[..., Inbox],
) -> None:
    """PC-V04, for the one source that a pipeline has."""
    idle = {"column": "at", "idle_timeout": "10 min", "when_idle": "advance"}
    made = inbox(event_time=idle, commit=FLINKS_WAY)

    made.drop("10:05", "10:30")

    found = [made.run(second) for second in (6, 6 + 599, 6 + 600)]

    assert found == [{}, {}, {"10": (1, 2)}]


def test_hours_by_process_time_are_committed_with_the_load_that_touches_them(
    inbox: Callable[..., Inbox],
) -> None:
    """PC-V05."""
    found = inbox(commit={"trigger": "process-time"}).live(FLINK["V05"])

    assert found == [
        {"10": (1, 2)},
        {"11": (1, 1)},
        {"10": (2, 3), "11": (2, 2)},
        {"12": (1, 1)},
    ]
    assert hours(found) == FLINK["V05"]["flink"]


def test_hours_by_process_time_with_delay_are_committed_later_and_by_runs_without_input(
    inbox: Callable[..., Inbox],
) -> None:
    """PC-V06: first seen is forgotten after a commit, so that the second one waits again."""
    found = inbox(commit={"trigger": "process-time", "delay": "5 s"}).live(FLINK["V06"])

    assert found == [
        {},
        {"10": (1, 2)},
        {"11": (1, 1)},
        {},
        {"10": (2, 3), "11": (2, 2)},
    ]
    assert hours(found) == FLINK["V06"]["flink"]


def test_same_rows_that_come_twice_are_there_twice(inbox: Callable[..., Inbox]) -> None:
    """PC-V12: they are two inputs; a file that is read again is one."""
    made = inbox(commit={"trigger": "process-time"})
    made.drop("10:05", "10:30")
    once = made.run(6)
    nothing = made.run(7)
    made.drop("10:05", "10:30")

    twice = made.run(8)

    assert (once, nothing, twice) == ({"10": (1, 2)}, {}, {"10": (2, 4)})


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [(PATTERN, Reason.WATERMARK_BEHIND), ("$hr of $dt", Reason.TIME_UNPARSABLE)],
    ids=["delay", "no time"],
)
def test_trigger_delay_and_values_count_in_every_run(
    inbox: Callable[..., Inbox], pattern: str, reason: Reason
) -> None:
    """PC-V20: Flink's batch jobs mark each partition that they touched, whatever these say."""
    made = inbox(commit={"delay": "9999 d", "partition_time": {"pattern": pattern}})
    made.drop("10:05")

    found = made.run(6)

    (state,) = made.pipeline.ledger.partitions.all()
    assert found == {}
    assert made.pipeline.evaluate(state.partition, START).reason is reason
    assert visible_below(made.target) == []


def test_end_of_a_run_is_not_the_end_of_the_data(inbox: Callable[..., Inbox]) -> None:
    """PC-V21: Flink commits what is pending when its input ends."""
    case = FLINK["V21"]

    found = inbox(commit=FLINKS_WAY).live(case)

    assert hours(found) == case["ours"]
    assert case["flink"] == [*case["ours"][:-1], ["12"]]


UNABLE = """
from pathlib import Path

class Unable:
    def __init__(self, tally):
        self.tally = Path(tally)

    def commit(self, context):
        if context.partition.path.endswith("hr=11"):
            with self.tally.open("a") as calls:
                calls.write("x")
            if self.tally.stat().st_size <= 2:
                raise ConnectionError("the catalog is out of reach")
"""


def test_commits_that_fail_half_way_twice_leave_each_row_once(
    inbox: Callable[..., Inbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PC-V22: Flink's batch job writes the partitions before the failure again each time."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unable.py").write_text(UNABLE)
    policies = [{"custom": "unable:Unable", "parameters": [f"{tmp_path}/tally"]}, "success-file"]
    made = inbox(commit={"trigger": "process-time", "policies": policies})
    made.drop("10:05", "10:30", "11:05", "12:01")

    states = [made.outcomes(second) for second in (6, 7, 8)]

    assert states == [
        ["committed", "failed", "committed"],
        ["failed"],
        ["committed"],
    ]
    assert made.committed() == {"10": (1, 2), "11": (1, 1), "12": (1, 1)}
    assert sorted(made.read("id")) == ["0-10:05", "0-10:30", "0-11:05", "0-12:01"]
    rows = [pq.read_metadata(path).num_rows for path in visible_below(made.target)]
    assert sum(rows) == 4


def test_null_and_dates_of_a_target_are_read_back_by_a_source(
    inbox: Callable[..., Inbox], tmp_path: Path
) -> None:
    """PC-V27: Flink writes days since 1970, and a partition of NULL makes its table unreadable."""
    first, second = date(2020, 12, 1), date(1969, 12, 31)
    columns = {
        "id": pa.array([1, 2, 3, 4]),
        "d": pa.array([first, second, None, first], pa.date32()),
        "k": pa.array(["x", None, "a/b", ""]),
        "at": pa.array([DAY] * 4),
    }
    written = {(1, first, "x"), (2, second, None), (3, None, "a/b"), (4, first, None)}
    made = inbox(
        target={"partition_by": {"d": "d", "k": "k", "hr": None, "dt": None}},
        commit={"trigger": "process-time"},
    )
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "raw" / "a.parquet")
    made.run(6)
    source = {"path": str(made.target), "partition_by": {"d": "date", "k": "string"}}
    (tmp_path / "again").mkdir()

    again = Inbox(
        tmp_path / "again",
        {
            "source": source,
            "target": {"partition_by": {"dt": "day(at)", "hr": None}},
            "commit": {"trigger": "process-time"},
        },
    )
    again.run(6)

    columns_read = [again.read(name) for name in ("id", "d", "k")]
    assert set(zip(*columns_read, strict=True)) == written
