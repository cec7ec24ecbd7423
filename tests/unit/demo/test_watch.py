from __future__ import annotations

import io
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from tidegate.demo import plot, watch
from tidegate.demo.airflow_client import DagRun, Question
from tidegate.demo.places import DagIds
from tidegate.demo.watch import DemoWatch
from tidegate.errors import DemoStuck
from unit.demo.test_plot import FAILED, ending, partition_report, pipeline_report

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.model.report import PipelineReport

DAGS = DagIds.of("flights")
APPROVED_RUN = DagRun("run-8", "running", plot.APPROVED.isoformat())


@dataclass
class Client:
    """An Airflow with these runs, which takes note of what it is told."""

    found: dict[str, list[DagRun]] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)
    told: list[tuple[str, ...]] = field(default_factory=list)

    def runs(self, dag_id: str) -> list[DagRun]:
        return self.found.get(dag_id, [])

    def questions(self, dag_id: str) -> list[Question]:
        return self.asked

    def approve(self, dag_id: str, question: Question, comment: str) -> None:
        self.told.append(("approve", dag_id, question.run_id))
        self.asked.remove(question)

    def trigger(self, dag_id: str) -> None:
        self.told.append(("trigger", dag_id))


@dataclass
class Server:
    client: Client
    log: str = "standalone.log"

    def check_running(self) -> None:
        """Nothing goes down here."""


@dataclass
class Reports:
    """A pipeline that gives these reports, the last one for ever."""

    reports: list[PipelineReport | None]
    reopened: list[str] = field(default_factory=list)

    def status(self, now: object) -> PipelineReport | None:
        return self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]

    def parse_partition(self, text: str) -> str:
        return text

    def reopen(self, partition: str, _now: datetime) -> None:
        self.reopened.append(partition)


class Shown:
    def __init__(self) -> None:
        self.count = 0

    def show(self, report: PipelineReport | None) -> None:
        self.count += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves."""
    now = [0.0]
    # In this module alone: other threads of the test run sleep, too.
    fake = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    monkeypatch.setattr(watch, "time", fake)
    return now


def watch_until_end(client: Client, *reports: PipelineReport | None) -> tuple[Reports, Shown]:
    pipeline, shown = Reports(list(reports)), Shown()
    quiet: Any = Console(file=io.StringIO())
    DemoWatch(quiet, Server(client), pipeline, DAGS).until_end(shown)  # type: ignore[arg-type]
    return pipeline, shown


def at_the_end() -> PipelineReport:
    return pipeline_report(*ending().values())


def held() -> PipelineReport:
    days = ending() | {plot.APPROVED: partition_report(plot.APPROVED, "held", 0, FAILED)}
    return pipeline_report(*days.values())


def test_watch_shows_every_look_until_the_end(clock: list[float]) -> None:
    _, shown = watch_until_end(Client(), None, held(), at_the_end())

    assert shown.count == 3


def test_watch_approves_the_one_day_once_a_person_could_have_read_it(clock: list[float]) -> None:
    client = Client({DAGS.publish: [APPROVED_RUN]}, [Question("run-8", "approve", "?", "")])

    watch_until_end(client, *[held()] * 20, at_the_end())

    assert client.told == [("approve", DAGS.publish, "run-8")]
    assert clock[0] > 8


def test_watch_leaves_the_other_held_day_alone(clock: list[float]) -> None:
    other = DagRun("run-9", "running", plot.HELD.isoformat())
    client = Client({DAGS.publish: [other]}, [Question("run-9", "approve", "?", "")])

    watch_until_end(client, *[held()] * 20, at_the_end())

    assert client.told == []


def test_watch_says_so_when_a_run_fails(clock: list[float]) -> None:
    client = Client()
    pipeline = Reports([held()])
    watching = DemoWatch(Console(file=io.StringIO()), Server(client), pipeline, DAGS)  # type: ignore[arg-type]
    client.found[DAGS.load] = [DagRun("run-3", "failed", None)]

    with pytest.raises(DemoStuck, match=r"run run-3 failed.*standalone\.log"):
        watching.until_end(Shown())


def test_watch_overlooks_runs_that_failed_in_an_earlier_call(clock: list[float]) -> None:
    client = Client({DAGS.publish: [DagRun("run-1", "failed", "2013-02-05")]})

    _, shown = watch_until_end(client, held(), at_the_end())

    assert shown.count == 2


def test_watch_gives_up_and_names_the_days_that_are_missing(clock: list[float]) -> None:
    with pytest.raises(DemoStuck, match=r"within 15 minutes.*: dt=2013-02-08"):
        watch_until_end(Client({DAGS.load: [DagRun("r", "running", None)]}), held())


def test_watch_pushes_when_nothing_moves_any_more(clock: list[float]) -> None:
    client = Client()

    pipeline, _ = watch_until_end(client, *[held()] * 70, at_the_end())

    assert client.told == [("trigger", DAGS.reconcile)]
    assert pipeline.reopened == ["dt=2013-02-08"]


def test_watch_does_not_push_while_something_is_loaded(clock: list[float]) -> None:
    client = Client({DAGS.load: [DagRun("r", "running", None)]})

    watch_until_end(client, *[held()] * 200, at_the_end())

    assert client.told == []


@pytest.mark.parametrize(
    ("key", "settled_at"),
    [pytest.param(plot.HELD.isoformat(), 0.0, id="stays-open"), pytest.param("x", 20.0, id="ends")],
)
def test_settling_waits_for_runs_that_will_end(
    clock: list[float], key: str, settled_at: float
) -> None:
    client = Client({DAGS.publish: [DagRun("r", "running", key)]})
    watching = DemoWatch(Console(file=io.StringIO()), Server(client), Reports([None]), DAGS)  # type: ignore[arg-type]

    watching.let_settle()

    assert clock[0] == settled_at
