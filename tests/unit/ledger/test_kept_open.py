"""Connections that stay open while a step lasts: few, and never to a file that is gone."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.connect import reading
from tidegate.ledger.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "ledger.db"
    open_engine(f"sqlite:///{found}").dispose()
    return found


@pytest.fixture
def engine(path: Path) -> sa.Engine:
    return open_engine(f"sqlite:///{path}")


def register(engine: sa.Engine, name: str) -> None:
    Ledger(engine, name).pipeline.register({}, f"/{name}", NOW)


def is_known(engine: sa.Engine, name: str) -> bool:
    return Ledger(engine, name).pipeline.find() is not None


def names_in(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM pipeline")}


def opened(engine: sa.Engine) -> list[int]:
    """Count from now on; one item per connection that is opened."""
    found: list[int] = []
    sa.event.listen(engine, "connect", lambda connection, _entry: found.append(id(connection)))
    return found


def test_step_opens_one_connection_for_all_that_it_asks_and_writes(engine: sa.Engine) -> None:
    connections = opened(engine)

    with Ledger(engine, "a").keeping_open():
        for name in "abc":
            register(engine, name)
            assert is_known(engine, name)

    assert len(connections) == 1


def test_nothing_is_open_after_the_outermost_step(engine: sa.Engine, path: Path) -> None:
    ledger = Ledger(engine, "a")
    with ledger.keeping_open():
        with ledger.keeping_open():
            register(engine, "a")
        assert path.with_name("ledger.db-wal").exists()

    assert not path.with_name("ledger.db-wal").exists()
    connections = opened(engine)
    assert is_known(engine, "a")
    assert len(connections) == 1
    assert not path.with_name("ledger.db-wal").exists()


def test_what_was_written_stands_in_the_file_alone_while_the_step_goes_on(
    engine: sa.Engine, path: Path, tmp_path: Path
) -> None:
    with Ledger(engine, "a").keeping_open():
        register(engine, "a")
        shutil.copy(path, tmp_path / "copy.db")

    assert names_in(tmp_path / "copy.db") == {"a"}


def put_in_place(backup: Path, path: Path) -> None:
    shutil.copy(backup, path)


def put_beside_and_rename(backup: Path, path: Path) -> None:
    shutil.copy(backup, path.with_name("new.db"))
    path.with_name("new.db").rename(path)


def remove_and_copy(backup: Path, path: Path) -> None:
    for item in path.parent.glob("ledger.db*"):
        item.unlink()
    shutil.copy(backup, path)


@pytest.mark.parametrize("replace", [put_in_place, put_beside_and_rename, remove_and_copy])
@pytest.mark.parametrize("last", ["read", "write"])
def test_ledger_that_is_restored_inside_a_step_is_the_one_that_is_asked(
    engine: sa.Engine,
    path: Path,
    tmp_path: Path,
    replace: Callable[[Path, Path], None],
    last: str,
) -> None:
    backup = tmp_path / "backup.db"
    register(engine, "a")
    shutil.copy(path, backup)

    with Ledger(engine, "a").keeping_open():
        register(engine, "b")
        if last == "read":
            assert is_known(engine, "b")
        replace(backup, path)

        # Already the first question: it opens the file again, if it has to be.
        assert not is_known(engine, "b")
        assert is_known(engine, "a")
        register(engine, "c")

    assert names_in(path) == {"a", "c"}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("replace", [put_in_place, put_beside_and_rename, remove_and_copy])
def test_ledger_that_is_restored_while_it_is_being_read_is_asked_next(
    engine: sa.Engine, path: Path, tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    register(engine, "a")

    with Ledger(engine, "a").keeping_open():
        with reading(engine) as connection:
            connection.exec_driver_sql("SELECT * FROM pipeline").fetchall()
            replace(backup, path)

        assert not is_known(engine, "a")


def test_ledger_that_was_replaced_just_before_it_was_opened_is_asked(
    engine: sa.Engine, path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    register(engine, "a")

    @sa.event.listens_for(engine, "connect", once=True)
    def _replace(_connection: object, _entry: object) -> None:
        put_beside_and_rename(backup, path)

    with Ledger(engine, "a").keeping_open():
        assert is_known(engine, "a")
        assert not is_known(engine, "a")


def test_what_others_write_inside_a_step_is_seen(engine: sa.Engine, path: Path) -> None:
    other = open_engine(f"sqlite:///{path}")

    with Ledger(engine, "a").keeping_open():
        assert not is_known(engine, "a")
        register(other, "a")
        assert is_known(engine, "a")
        with Ledger(other, "a").keeping_open():
            register(other, "b")
            assert is_known(engine, "b")
            register(engine, "c")
            assert is_known(other, "c")


def test_write_waits_for_nobody_who_reads_an_older_state(engine: sa.Engine, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM pipeline").fetchall()

        with Ledger(engine, "a").keeping_open():
            register(engine, "a")
            register(engine, "b")

            assert reader.execute("SELECT * FROM pipeline").fetchall() == []
            assert is_known(engine, "b")


def test_threads_of_one_step_have_connections_of_their_own(engine: sa.Engine) -> None:
    connections = opened(engine)
    both = threading.Barrier(2, timeout=10)

    def look() -> None:
        with engine.connect():
            both.wait()

    with Ledger(engine, "a").keeping_open():
        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not is_known(engine, "a")

    assert len(connections) == 2


def test_child_that_is_forked_inside_a_step_opens_its_own(engine: sa.Engine) -> None:
    with Ledger(engine, "a").keeping_open():
        register(engine, "a")
        child = os.fork()
        if child == 0:
            connections = opened(engine)
            register(engine, "b")
            os._exit(0 if len(connections) == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

        assert is_known(engine, "b")


def test_transaction_that_is_refused_leaves_a_step_that_goes_on(engine: sa.Engine) -> None:
    with Ledger(engine, "a").keeping_open():
        register(engine, "a")
        with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO pipeline (name) VALUES ('a')")

        assert is_known(engine, "a")
        register(engine, "b")

    assert is_known(engine, "b")


def test_what_was_written_beside_a_reader_stands_in_the_file_once_it_has_read(
    engine: sa.Engine, path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    register(engine, "a")
    shutil.copy(path, backup)

    with Ledger(engine, "a").keeping_open():
        with reading(engine) as reader:
            reader.exec_driver_sql("SELECT * FROM pipeline").fetchall()
            register(engine, "b")
        put_in_place(backup, path)

        assert is_known(engine, "a")
        assert not is_known(engine, "b")

    assert names_in(path) == {"a"}


def test_connection_that_could_not_write_back_is_not_kept(
    engine: sa.Engine, path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    register(engine, "a")
    shutil.copy(path, backup)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM pipeline").fetchall()

    with Ledger(engine, "a").keeping_open():
        register(engine, "b")
        reader.close()
        put_in_place(backup, path)

        assert not is_known(engine, "b")

    assert names_in(path) == {"a"}


def test_write_that_the_file_has_no_room_for_yet_is_done(engine: sa.Engine, path: Path) -> None:
    """It stands in the log. The next one is told that there is no room, if so."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Ledger(engine, "a").keeping_open():
        register(engine, "a")
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, unlimited[1]))
        try:
            Ledger(engine, "b").pipeline.register({"long": "x" * 20_000}, "/b", NOW)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

        assert is_known(engine, "b")

    assert names_in(path) == {"a", "b"}


def test_connections_that_come_and_go_are_no_steps_of_tidegate(
    engine: sa.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="tidegate")

    register(engine, "orders")
    engine.dispose()

    assert caplog.messages == []


def test_threads_of_a_step_write_by_one_connection_and_all_of_it_stands_in_the_file(
    engine: sa.Engine, path: Path, tmp_path: Path
) -> None:
    connections, written_back = opened(engine), list[str]()
    sa.event.listen(
        engine,
        "connect",
        lambda connection, _: connection.set_trace_callback(
            lambda said: (
                written_back.append(said) if said.startswith("PRAGMA wal_checkpoint") else None
            )
        ),
    )
    names = [f"{thread}-{number}" for thread in range(4) for number in range(20)]

    with Ledger(engine, "a").keeping_open():
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda name: register(engine, name), names))
        shutil.copy(path, tmp_path / "copy.db")

    assert names_in(tmp_path / "copy.db") == set(names)
    assert len(connections) == 1
    # Not after each of them, as long as another thread goes on with the log.
    assert len(written_back) < len(names)


def test_log_that_is_handed_on_again_and_again_is_written_back_at_times(
    engine: sa.Engine, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turns, "is_awaited", True)
    found = []

    with Ledger(engine, "a").keeping_open():
        for number in range(40):
            register(engine, f"{number}")
            shutil.copy(path, tmp_path / "copy.db")
            found.append(len(names_in(tmp_path / "copy.db")))

    # Once in seventeen uses, and a registration is one; in between a copy lacks what came since.
    assert found == [0] * 16 + [17] * 17 + [34] * 7
    assert names_in(path) == {f"{number}" for number in range(40)}
