from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tidegate.demo.airflow_client import AirflowClient, DagRun, Question
from tidegate.errors import AirflowBusy, AirflowRefused

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = tuple[int, dict[str, Any]]


class Api:
    """Answers requests in turn and remembers them."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer[0], json=answer[1])

    def client(self, patience_seconds: float = 30) -> AirflowClient:
        return AirflowClient(
            "http://127.0.0.1:1", patience_seconds, transport=httpx.MockTransport(self)
        )


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)


def _run(number: int) -> dict[str, Any]:
    return {"dag_run_id": f"r{number}", "state": "success", "partition_key": None}


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param((503, {"detail": "Database is locked"}), id="sqlite-locked"),
        pytest.param((409, {"detail": "already a running backfill"}), id="backfill-not-over"),
        pytest.param((500, {}), id="server-error"),
        pytest.param(httpx.ConnectError("refused"), id="not-listening"),
        pytest.param(httpx.ReadTimeout("late"), id="late"),
    ],
)
def test_backfill_refused_for_now_is_asked_again(trouble: Answer | Exception) -> None:
    api = Api(trouble, trouble, (200, {"id": 7}))
    start, end = datetime(2013, 2, 5, 5, tzinfo=UTC), datetime(2013, 2, 12, 5, tzinfo=UTC)

    number = api.client().backfill("flights_load", start, end, reprocess="failed")

    assert number == 7
    assert len(api.requests) == 3
    assert json.loads(api.requests[-1].content) == {
        "dag_id": "flights_load",
        "from_date": "2013-02-05T05:00:00+00:00",
        "to_date": "2013-02-12T05:00:00+00:00",
        "reprocess_behavior": "failed",
        "max_active_runs": 1,
        "run_backwards": False,
    }


def test_request_refused_for_good_names_request_and_answer() -> None:
    api = Api((404, {"detail": "Dag not found"}))

    with pytest.raises(AirflowRefused, match=r"PATCH /dags/none with status 404.*Dag not found"):
        api.client().unpause("none")


def test_request_that_stays_refused_is_given_up() -> None:
    api = Api(*[(503, {"detail": "Database is locked"})] * 5)

    with pytest.raises(AirflowBusy, match="POST /dags/flights_reconcile/dagRuns: 503"):
        api.client(patience_seconds=0).trigger("flights_reconcile")


def test_runs_longer_than_a_page_are_all_listed() -> None:
    pages = [[_run(number) for number in range(100)], [_run(100)]]
    api = Api(*[(200, {"dag_runs": page, "total_entries": 101}) for page in pages])

    found = api.client().runs("flights_load")

    assert [run.run_id for run in found] == [f"r{number}" for number in range(101)]
    assert api.requests[1].url.params["offset"] == "100"


@pytest.mark.parametrize(
    ("state", "active"),
    [("queued", True), ("running", True), ("success", False), ("failed", False)],
)
def test_run_is_active_until_it_is_over(state: str, active: bool) -> None:
    assert DagRun("r", state, None).is_active is active


def _health(**parts: str) -> Answer:
    names = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    return 200, {name: {"status": parts.get(name, "healthy")} for name in names}


@pytest.mark.parametrize(
    ("answers", "ready"),
    [
        pytest.param([_health(), (200, {"dag_id": "a"})], True, id="all-there"),
        pytest.param([_health(scheduler="unhealthy")], False, id="scheduler-missing"),
        pytest.param([_health(), (404, {})], False, id="dag-not-parsed-yet"),
        pytest.param([httpx.ConnectError("refused")], False, id="not-listening"),
    ],
)
def test_server_is_ready_when_all_parts_and_dags_are_there(
    answers: list[Answer | Exception], ready: bool
) -> None:
    assert Api(*answers).client().is_ready(("a",)) is ready


@pytest.mark.parametrize(
    ("answers", "up"),
    [
        pytest.param(
            [_health(triggerer="unhealthy"), (200, {}), (404, {})],
            {"metadatabase", "scheduler", "dag_processor", "a"},
            id="on-its-way",
        ),
        pytest.param([httpx.ConnectError("refused")], set(), id="not-listening"),
    ],
)
def test_what_a_server_has_reached_is_what_answers(
    answers: list[Answer | Exception], up: set[str]
) -> None:
    assert Api(*answers).client().reached(("a", "b")) == up


@pytest.mark.parametrize(
    ("completed", "expected"), [(["2026-01-01T00:00:00Z", None], True), ([], False)]
)
def test_backfill_is_under_way_until_each_is_completed(
    completed: list[str | None], expected: bool
) -> None:
    backfills = [{"completed_at": moment} for moment in completed]
    api = Api((200, {"backfills": backfills, "total_entries": len(backfills)}))

    assert api.client().is_backfilling("flights_load") is expected


def test_question_is_answered_where_it_was_asked() -> None:
    detail = {
        "task_instance": {"dag_run_id": "run-8", "task_id": "approve"},
        "subject": "publish?",
        "body": None,
    }
    api = Api((200, {"hitl_details": [detail], "total_entries": 1}), (200, {}))
    client = api.client()

    (question,) = client.questions("flights_publish")
    client.approve("flights_publish", question, "it was a blizzard")

    assert question == Question("run-8", "approve", "publish?", "")
    path = "/api/v2/dags/flights_publish/dagRuns/run-8/taskInstances/approve/-1/hitlDetails"
    assert api.requests[1].url.path == path
    assert json.loads(api.requests[1].content) == {
        "chosen_options": ["Approve"],
        "params_input": {"comment": "it was a blizzard"},
    }


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://nowhere.invalid:3128")
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, json={"dag_runs": [], "total_entries": 0})

    carry: Callable[[httpx.Request], httpx.Response] = answer
    client = AirflowClient("http://127.0.0.1:1", transport=httpx.MockTransport(carry))

    assert client.runs("a") == []
    assert seen[0].startswith("http://127.0.0.1:1/api/v2/dags/a/dagRuns")
