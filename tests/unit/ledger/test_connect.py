"""What a database refuses is an error that names the ledger, whenever it refuses."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

from tidegate.errors import (
    LedgerAddressWrong,
    LedgerDamaged,
    LedgerNewer,
    LedgerUnreachable,
    StorageFull,
    TerminalError,
)
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.connect import READS_ONLY, newest_migration
from tidegate.ledger.schema import partition, pipeline, plan, window
from tidegate.model.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOW = datetime(2026, 3, 1, tzinfo=UTC)
# What an earlier version left, column by column as it wrote them.
OLD_ROWS = {
    "pipeline": {
        "name": "p",
        "ledger_id": "l",
        "target": "/t",
        "identity": "{}",
        "started": True,
        "next_sequence": 2,
        "registered_at": "2026-03-01T00:00:00.000000Z",
    },
    "window": {
        "pipeline": "p",
        "sequence": 1,
        "kind": "load",
        "range": "{}",
        "end_time": "2026-03-01T00:00:00.000000Z",
        "partitions": "[]",
        "run": "r",
        "state": "open",
        "attempt": 1,
        "taken_at": "2026-03-01T00:00:00.000000Z",
    },
    "plan": {
        "pipeline": "p",
        "window": 1,
        "digest": "d",
        "uri": "u",
        "fingerprint": "{}",
        "totals": "{}",
        "state": "planned",
        "planned_at": "2026-03-01T00:00:00.000000Z",
    },
}


OLD_PARTITION = {
    "pipeline": "p",
    "partition": "dt=1",
    "values": "[]",
    "revision": 2,
    "rows": 0,
    "pending": "pending",
    "claim_fence": 1,
}


@contextmanager
def old_ledger(url: str, version: str) -> Iterator[sa.Connection]:
    """Make a ledger as a version before made it; yield a connection to fill it."""
    engine = sa.create_engine(url)
    script = Config()
    script.set_main_option("script_location", "tidegate.ledger:migrations")
    with engine.begin() as connection:
        script.attributes["connection"] = connection
        command.upgrade(script, version)
        yield connection
    engine.dispose()


def insert(connection: sa.Connection, table: str, row: Mapping[str, object]) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, row))).values(row))


def register(engine: sa.Engine, name: str = "orders") -> None:
    Ledger(engine, name).pipeline.register({}, f"/{name}", NOW)


def test_ledger_is_made_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "home" / "ledger.db"

    register(open_engine(f"sqlite:///{path}"))

    assert path.exists()


def test_folder_of_a_new_ledger_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    force = os.fsync

    def forcing(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        force(descriptor)

    monkeypatch.setattr(os, "fsync", forcing)

    open_engine(f"sqlite:///{tmp_path}/home/lake/ledger.db")

    assert {tmp_path.stat().st_ino, (tmp_path / "home").stat().st_ino} <= synced


@pytest.mark.parametrize("options", [{}, {READS_ONLY: True}], ids=["writes", "reads only"])
def test_every_connection_waits_for_the_disk(tmp_path: Path, options: dict[str, bool]) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    open_engine(url)
    engine = open_engine(url)

    with (
        engine.connect().execution_options(**options) as one,
        engine.connect().execution_options(**{READS_ONLY: True}) as other,
    ):
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for connection in (one, other)
            for name in ("journal_mode", "synchronous")
        ]

    # In WAL mode a commit waits from FULL (2) on; what NORMAL (1) commits may be lost.
    assert found == ["wal", 2, "wal", 2]


def test_ledger_opened_again_keeps_what_it_has(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    register(open_engine(url))

    assert Ledger(open_engine(url), "orders").pipeline.find() is not None


@pytest.mark.parametrize("content", [b"not a database" * 100, bytes(4096) + b"x"])
def test_file_that_is_no_database_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)

    with pytest.raises(LedgerDamaged, match=r"ledger\.db.*not a database"):
        open_engine(f"sqlite:///{path}")

    assert path.read_bytes() == content


def test_database_with_overwritten_pages_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    engine = open_engine(f"sqlite:///{path}")
    register(engine)
    engine.dispose()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    with pytest.raises(LedgerDamaged, match=r"ledger\.db.*malformed"):
        register(open_engine(f"sqlite:///{path}"), "other")


def test_ledger_that_is_locked_is_unreachable(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    engine = open_engine(url)
    impatient = open_engine(url)

    @sa.event.listens_for(impatient, "connect")
    def _hurry(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA busy_timeout=1")

    with engine.begin(), pytest.raises(LedgerUnreachable, match="locked"):
        register(impatient)


def test_ledger_of_a_later_version_is_named_with_its_schema(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    schema = sa.table("alembic_version", sa.column("version_num"))
    with open_engine(url).begin() as connection:
        connection.execute(sa.update(schema).values(version_num="9999"))

    with pytest.raises(LedgerNewer, match=r"ledger\.db.*'9999'") as refused:
        open_engine(url)

    assert issubclass(LedgerNewer, TerminalError)
    assert refused.value.newest != "9999"


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"")

    with pytest.raises(LedgerUnreachable, match="home"):
        open_engine(f"sqlite:///{tmp_path}/home/ledger.db")


def test_folder_for_which_no_space_is_left_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "mkdir", fill)

    with pytest.raises(StorageFull, match=r"home: .*No space left.* Free space"):
        open_engine(f"sqlite:///{tmp_path}/home/ledger.db")


@pytest.mark.follows("LedgerAddressWrong")
@pytest.mark.parametrize(
    ("address", "found"),
    [
        pytest.param("postgres://tide:secret@localhost/x", "'postgres://…'", id="other-name"),
        pytest.param("mysql://tide:secret@localhost/x", "'mysql://…'", id="other-database"),
        pytest.param("sqlite+nothing:///x", "'sqlite\\+nothing'", id="driver"),
        pytest.param("postgresql://tide@localhost:secret/x", "no URL", id="port"),
        pytest.param("/data/secret/ledger.db", "no URL", id="path"),
    ],
)
def test_address_of_no_ledger_is_refused_with_what_one_looks_like(
    address: str, found: str, tmp_path: Path
) -> None:
    with pytest.raises(LedgerAddressWrong, match=found) as refused:
        open_engine(address)

    assert "secret" not in str(refused.value)
    assert "`sqlite:////FOLDER/ledger.db`" in str(refused.value)
    open_engine(f"sqlite:///{tmp_path}/ledger.db").dispose()


def test_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(LedgerUnreachable, match=r"tide:\*\*\*@127\.0\.0\.1:1/x") as refused:
        open_engine("postgresql+psycopg://tide:secret@127.0.0.1:1/x")

    assert "secret" not in str(refused.value)


def test_disk_that_is_full_in_a_transaction_is_transient_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    engine = open_engine(f"sqlite:///{tmp_path}/ledger.db")

    @sa.event.listens_for(engine, "connect")
    def _fill(connection: sqlite3.Connection, _record: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")

    names = [f"{number}" * 50 for number in range(1000)]
    done: list[str] = []

    def fill() -> None:
        for name in names:
            register(engine, name)
            done.append(name)

    with pytest.raises(StorageFull, match=r"ledger\.db: .* full\. Free space"):
        fill()

    with engine.connect() as connection:
        assert set(connection.scalars(sa.select(pipeline.c.name))) == set(done)


def test_mistake_of_ours_is_not_taken_for_an_unreachable_ledger(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path}/ledger.db")
    register(engine)

    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(pipeline).values(name="orders"))


def test_ledger_of_the_first_version_is_brought_up_to_date_with_what_it_has(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with old_ledger(url, "0001") as connection:
        for table, row in OLD_ROWS.items():
            insert(connection, table, row)

    engine = open_engine(url)

    with engine.begin() as connection:
        kinds = connection.execute(sa.select(window.c.sequence, window.c.kind)).all()
        plans = connection.execute(sa.select(plan.c.window, plan.c.uri)).all()
        connection.execute(
            sa.update(window).where(window.c.sequence == 1).values(kind="reload", state="sealed")
        )
    assert (kinds, plans) == ([(1, "load")], [(1, "u")])
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(sa.update(window).values(kind="guess"))


def test_numbers_that_an_earlier_version_gave_count_as_reserved(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with old_ledger(url, "0004") as connection:
        numbered = {"p": OLD_ROWS["pipeline"] | {"next_number": 7, "first_fence": 0}}
        numbered["q"] = numbered["p"] | {"name": "q", "target": "/q", "next_number": 3}
        for name, row in numbered.items():
            insert(connection, "pipeline", row)
            insert(connection, "window", OLD_ROWS["window"] | {"pipeline": name, "number": 2})
            insert(connection, "partition", OLD_PARTITION | {"pipeline": name, "number": 2})

    engine = open_engine(url)

    with engine.connect() as connection:
        for table in (window, partition):
            found = connection.execute(sa.select(table.c.pipeline, table.c.reserved)).all()
            assert dict(map(tuple, found)) == {"p": 6, "q": 2}


@pytest.mark.parametrize(
    ("path", "state", "plan"),
    [
        ("dt=1", "prepared", "publications/dt=1/3-abc.json"),
        ("", "marked", "publications/all/3-abc.json"),
        ("dt=1", "proposed", None),
    ],
)
def test_commit_that_an_earlier_version_began_keeps_its_plan(
    tmp_path: Path, path: str, state: str, plan: str | None
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    partition = OLD_PARTITION | {"partition": path}
    publication = {
        "pipeline": "p",
        "partition": path,
        "digest": "abc",
        "base_revision": 2,
        "adds": "[]",
        "removes": "[]",
        "contributions": "{}",
        "rows": 0,
        "state": state,
        "proposed_at": "2026-03-01T00:00:00.000000Z",
    }
    rows = {"pipeline": OLD_ROWS["pipeline"], "partition": partition, "publication": publication}
    with old_ledger(url, "0002") as connection:
        for table, row in rows.items():
            insert(connection, table, row)

    found = Ledger(open_engine(url), "p").publications.find(
        Partition((("dt", "1"),) if path else ()), "abc"
    )

    assert found is not None
    assert found.commit_plan == plan


def test_newest_migration_is_the_head_of_alembic() -> None:
    script = Config()
    script.set_main_option("script_location", "tidegate.ledger:migrations")

    assert newest_migration() == ScriptDirectory.from_config(script).get_current_head()


def test_ledger_that_is_up_to_date_is_opened_without_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    opened = f"from tidegate.ledger import open_engine; open_engine({url!r})"
    printed = f"import sys; {opened}; print('alembic' in sys.modules)"

    found = [
        subprocess.run([sys.executable, "-c", printed], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]

    assert [run.stdout.strip() for run in found] == ["True", "False"]


def test_ledger_is_opened_while_another_process_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    open_engine(url).dispose()
    writer = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    open_engine(url).dispose()

    writer.close()


def test_copy_that_is_put_back_beside_the_log_of_another_one_is_damaged(tmp_path: Path) -> None:
    file, log = tmp_path / "ledger.db", tmp_path / "ledger.db-wal"
    open_engine(f"sqlite:///{file}").dispose()
    writer = sqlite3.connect(file)
    writer.execute("CREATE TABLE more (number INTEGER PRIMARY KEY, text TEXT)")
    writer.execute("CREATE INDEX texts ON more (text)")
    rows = ((f"{number * 7919 % 1000:0400}",) for number in range(1000))
    writer.executemany("INSERT INTO more (text) VALUES (?)", rows)
    writer.commit()
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.read_bytes()
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("DELETE FROM more WHERE number % 3 = 0")
    writer.commit()
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.execute("UPDATE more SET text = text || 'x' WHERE number % 50 = 1")
    writer.commit()
    left = log.read_bytes()
    writer.close()
    file.write_bytes(before)
    log.write_bytes(left)

    with pytest.raises(LedgerDamaged, match="whose names begin with the same text"):
        open_engine(f"sqlite:///{file}")

    file.write_bytes(before)
    for beside in ("-wal", "-shm"):
        Path(f"{file}{beside}").unlink(missing_ok=True)
    open_engine(f"sqlite:///{file}").dispose()
