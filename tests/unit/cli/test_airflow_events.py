"""What Airflow is told about partitions that a command published, over HTTP."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlparse

import httpx
import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, known, load
from tidegate.cli import publish_commands
from tidegate.cli.app import app
from tidegate.ledger.holder import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result


ASSETS = {"orders_published_2": 1, "orders_published": 7}
BOTH = "2026-02-01, 2026-02-02"


@dataclass
class Airflow:
    """Answers as Airflow's API does, for the requests that are made."""

    assets: dict[str, int] = field(default_factory=ASSETS.copy)
    refuses_after: int = 100
    known: list[dict[str, Any]] = field(default_factory=list)
    """Events that others have created."""
    page: int = 60
    """The most that one answer has."""
    events: list[dict[str, Any]] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)

    def answer(self, request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        self.tokens.add(request.headers["Authorization"])
        path = urlparse(request.path)
        asked = {name: value for name, (value,) in parse_qs(path.query).items()}
        if request.command == "GET" and path.path == "/api/v2/assets":
            wanted = asked["name_pattern"]
            found = [{"id": id, "name": name} for name, id in self.assets.items() if wanted in name]
            return 200, self.some("assets", found, asked)
        if request.command == "GET" and path.path == "/api/v2/assets/events":
            since = datetime.fromisoformat(asked["timestamp_gte"])
            known = [it for it in self.known if it.get("timestamp", NOW) >= since]
            shown = [
                {name: value for name, value in it.items() if name != "timestamp"} for it in known
            ]
            return 200, self.some("asset_events", shown + self.events, asked)
        if len(self.events) >= self.refuses_after or path.path != "/api/v2/assets/events":
            return 403, {"detail": "Forbidden"}
        self.events.append(json.loads(request.rfile.read(int(request.headers["Content-Length"]))))
        return 200, {}

    def some(self, key: str, found: list[dict[str, Any]], asked: dict[str, str]) -> dict[str, Any]:
        first, size = int(asked["offset"]), min(int(asked["limit"]), self.page)
        return {key: found[first : first + size], "total_entries": len(found)}


@contextmanager
def served(airflow: Airflow) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            status, body = airflow.answer(self)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _answer  # noqa: N815 (the names of the base class)

        def log_message(self, *_arguments: Any) -> None:
            """Keep silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """Two days can be published, a third one waits."""
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 3, 2: 2})
    lake.commit({3: 1})
    lake.found_by_name(monkeypatch)
    monkeypatch.setenv("NO_PROXY", "*")
    load(lake.pipeline(), until=known(5))
    return lake


def publish(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["publish", "orders", *arguments], catch_exceptions=False)


def test_airflow_that_is_named_is_told_each_revision_as_the_dag_tells_it(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {f"orders_published_{number}": 100 + number for number in range(70)}
    airflow = Airflow(assets=others | ASSETS)
    with served(airflow) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        monkeypatch.setenv("TIDEGATE_AIRFLOW_TOKEN", "secret")
        published = publish()
        again = publish("2026-02-01")

    assert airflow.tokens == {"Bearer secret"}
    watermark = "2026-02-03T00:01:00+00:00"
    extra = {"pipeline": "orders", "revision": 1, "watermark": watermark, "windows": [1]}
    made = lake.pipeline().ledger.publications.revisions(day(1))[0].committed_at
    assert airflow.events[0]["extra"].pop("committed_at") == made.isoformat()
    assert airflow.events[1]["extra"].pop("committed_at")
    assert airflow.events == [
        {
            "asset_id": 7,
            "partition_key": f"2026-02-0{number}",
            "extra": {**extra, "rows": rows, "rows_added": rows},
        }
        for number, rows in ((1, 3), (2, 2))
    ]
    assert "Airflow was told: 2026-02-01, 2026-02-02." in published.output
    assert "secret" not in published.output
    assert "Airflow" not in again.output


@pytest.mark.parametrize(
    ("airflow", "problem", "untold"),
    [
        pytest.param(Airflow(refuses_after=1), "403", "2026-02-02", id="refused"),
        pytest.param(
            Airflow(assets={}),
            "no asset `orders_published`",
            "2026-02-01, 2026-02-02",
            id="unknown",
        ),
        pytest.param(None, "onnect", BOTH, id="down"),
    ],
)
def test_partitions_that_airflow_was_not_told_are_published_and_named(
    lake: SmallLake,
    monkeypatch: pytest.MonkeyPatch,
    airflow: Airflow | None,
    problem: str,
    untold: str,
) -> None:
    with served(airflow or Airflow()) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        if airflow is not None:
            published = publish()
    if airflow is None:
        published = publish()

    assert published.exit_code == 0
    assert sorted(lake.ids()) == ["dt=2026-02-01", "dt=2026-02-02"]
    assert f"was not told about {untold}: " in published.output
    assert problem in published.output


def test_no_airflow_is_asked_unless_one_is_named(lake: SmallLake) -> None:
    published = publish("--json")

    assert published.exit_code == 0
    assert set(json.loads(published.stdout)) == {"outcomes"}


def test_what_was_told_is_part_of_the_json(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Airflow()) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        published = publish("2026-02-02", "--json")

    assert json.loads(published.stdout)["airflow"] == ["Airflow was told: 2026-02-02."]


def test_revision_that_another_one_publishes_meanwhile_is_not_told_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishing = publish_commands._published

    def beside(*arguments: Any) -> Any:
        other = lake.pipeline()
        assert other.publish(day(1), "a run of Airflow", NOW).state == "committed"
        return publishing(*arguments)

    monkeypatch.setattr(publish_commands, "_published", beside)
    airflow = Airflow()
    with served(airflow) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        published = publish("2026-02-02")

    assert [event["partition_key"] for event in airflow.events] == ["2026-02-02"]
    assert "Airflow was told: 2026-02-02." in published.output


def test_revision_of_the_same_partition_that_another_one_made_is_not_told_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishing = publish_commands._published

    def beside(*arguments: Any) -> Any:
        other = lake.pipeline()
        assert other.publish(day(1), "a run of Airflow", NOW).state == "committed"
        lake.commit({1: 1})
        load(other, until=known(5))
        return publishing(*arguments)

    monkeypatch.setattr(publish_commands, "_published", beside)
    airflow = Airflow()
    with served(airflow) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        publish("2026-02-01")

    told = [(event["partition_key"], event["extra"]["revision"]) for event in airflow.events]
    assert told == [("2026-02-01", 2)]


@pytest.mark.parametrize("before", [0, 250], ids=["newest", "among many"])
def test_revision_that_was_announced_already_is_not_told_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(publish_commands, "utc_now", lambda: NOW)
    same = {
        "partition_key": "2026-02-01",
        "extra": {"committed_at": NOW.isoformat()},
        # Airflow's clock is behind.
        "timestamp": NOW - timedelta(minutes=59),
    }
    others = [
        {"partition_key": "2026-02-01", "extra": None},
        {"partition_key": "2026-02-02", "extra": {"committed_at": "2025"}},
    ]
    airflow = Airflow(known=[*(others[:1] * before), *others, same])
    with served(airflow) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        publish()

    assert [event["partition_key"] for event in airflow.events] == ["2026-02-02"]


def test_partition_is_told_before_the_next_one_is_published(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is killed leaves at most one revision untold."""
    publishing = publish_commands._published

    def killed(*arguments: Any) -> Any:
        yield next(iter(publishing(*arguments)))
        raise KeyboardInterrupt

    monkeypatch.setattr(publish_commands, "_published", killed)
    airflow = Airflow()
    with served(airflow) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        CliRunner().invoke(app, ["publish", "orders"])

    assert [event["partition_key"] for event in airflow.events] == ["2026-02-01"]
    assert list(lake.ids()) == ["dt=2026-02-01"]


def test_several_partitions_of_which_one_is_claimed_are_published_and_told(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Holder("a run of Airflow", datetime.now(UTC), timedelta(hours=1))
    lake.pipeline().ledger.partitions.claim(day(1), holder)
    airflow = Airflow()
    with served(airflow) as place:
        monkeypatch.setenv("TIDEGATE_AIRFLOW_API", place)
        mistyped = publish("2026-02-02", "2026-02-20")
        assert airflow.events == []
        published = publish("2026-02-01", "2026-02-02")

    assert mistyped.exit_code == 2
    assert "2026-02-20" in mistyped.output
    assert published.exit_code == 1
    assert "is claimed by a run of Airflow" in " ".join(published.output.split())
    assert list(lake.ids()) == ["dt=2026-02-02"]
    assert [event["partition_key"] for event in airflow.events] == ["2026-02-02"]
    assert "Airflow was told: 2026-02-02." in published.output


def test_airflow_that_does_not_answer_is_asked_once(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(_client: object, url: str, **_keys: object) -> None:
        asked.append(url)
        problem = "nobody is there"
        raise httpx.ConnectTimeout(problem)

    monkeypatch.setattr(httpx.Client, "get", refuse)
    monkeypatch.setenv("TIDEGATE_AIRFLOW_API", "http://127.0.0.1:1")

    published = publish()

    assert len(asked) == 1
    assert f"was not told about {BOTH}: nobody is there" in published.output
