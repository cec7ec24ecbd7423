"""Files of the work directory that were lost or damaged: what the message says ends well."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day
from tidegate.cli.app import app
from tidegate.cli.output import NOTHING
from tidegate.pipeline.state.holders import process_owner
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

pytestmark = pytest.mark.on_disk

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"


class Command(Protocol):
    """Types a command, which ends with one of the given codes; what it wrote."""

    def __call__(self, line: str, *codes: int) -> str: ...


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})


@pytest.fixture
def tidegate(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> Command:
    lake.pipeline()
    lake.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "4000")

    def run(line: str, *codes: int) -> str:
        program, *arguments = shlex.split(line.replace("PIPELINE", "orders"))
        assert program == "tidegate"
        result: Result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code in (codes or (0,)), result.output
        return " ".join(result.output.split())

    return run


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_between_lines(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def unlink(path: Path) -> None:
    path.unlink()


def follow(lake: SmallLake, tidegate: Command, said: str, path: Path) -> None:
    """Do what a message says, but for the copy, which nobody has."""
    assert f"{path}: expected" in said
    if "move it away" in said:
        path.rename(lake.root / path.name)
    if "remove the marker" in said:
        (lake.target / FIRST / "_SUCCESS").unlink(missing_ok=True)
    commands = [line for line in said.split("`")[1::2] if line.startswith("tidegate ")]
    assert len(commands) == (3 if "remove the marker" in said else 2), said
    for line in commands:
        answer = tidegate(line, 0, NOTHING, 1)
        if "remove the marker" in answer:
            # Said by the restoration only, once nothing else stands against it.
            assert "remove the marker" not in said
            plan = re.findall(r"(\S+): expected", answer)[0]
            return follow(lake, tidegate, answer, Path(plan))
        assert "Error: " not in answer, answer
    return None


def below(lake: SmallLake, pattern: str) -> Path:
    """Find the file that was written last among some."""
    return max(lake.work.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def check_ends_well(lake: SmallLake, tidegate: Command, ids: dict[str, list[int]]) -> None:
    """Compare what stands by marker and by listing with the source; nothing is left over.

    Neither now, nor after another load, nor once the ledger is restored.
    """
    assert lake.ids() == lake.listed_ids() == ids
    assert list(lake.pipeline().findings()) == []
    more = lake.commit({1: 1})
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    tidegate("tidegate fsck orders --rebuild")
    tidegate("tidegate publish orders", 0, NOTHING)
    assert lake.ids() == lake.listed_ids() == {**ids, FIRST: ids[FIRST] + more}
    assert list(lake.pipeline().findings()) == []


@pytest.fixture
def loaded(lake: SmallLake, tidegate: Command) -> dict[str, list[int]]:
    """Publish one window and seal another one: the ids by day."""
    ids = lake.commit({1: 4, 2: 1})
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    ids += lake.commit({1: 2, 2: 1})
    tidegate("tidegate load orders")
    return {FIRST: ids[:4] + ids[5:7], SECOND: [ids[4], ids[7]]}


@pytest.mark.follows("StateFileDamaged", "StateFileLost")
@pytest.mark.parametrize("damage", [cut, empty, unlink])
def test_message_of_a_sealed_window_is_staged_again(
    lake: SmallLake,
    tidegate: Command,
    loaded: dict[str, list[int]],
    damage: Callable[[Path], None],
) -> None:
    message = below(lake, "windows/000002/*/messages/*.json")
    damage(message)

    follow(lake, tidegate, tidegate(f"tidegate publish orders {FIRST}", 1), message)

    check_ends_well(lake, tidegate, loaded)


@pytest.mark.follows("StateFileDamaged")
@pytest.mark.parametrize("damage", [cut, empty, cut_between_lines])
@pytest.mark.parametrize("name", ["plan.json", "splits.jsonl"])
def test_plan_of_an_open_window_is_made_again(
    lake: SmallLake,
    tidegate: Command,
    loaded: dict[str, list[int]],
    damage: Callable[[Path], None],
    name: str,
) -> None:
    tidegate("tidegate publish orders")
    more = lake.commit({1: 1})
    tidegate("tidegate plan orders")
    path = below(lake, f"windows/000003/*/{name}")
    damage(path)

    follow(lake, tidegate, tidegate("tidegate load orders", 1), path)

    check_ends_well(lake, tidegate, {**loaded, FIRST: loaded[FIRST] + more})


@pytest.mark.follows("StateFileLost", "StateFileDamaged")
@pytest.mark.parametrize("damage", [cut, empty, unlink])
@pytest.mark.parametrize("published", [False, True], ids=["sealed", "published"])
def test_plan_of_an_announced_window_is_found_and_made_again(
    lake: SmallLake,
    tidegate: Command,
    loaded: dict[str, list[int]],
    damage: Callable[[Path], None],
    *,
    published: bool,
) -> None:
    if published:
        tidegate("tidegate publish orders")
    path = below(lake, "windows/000002/*/plan.json")
    damage(path)

    follow(lake, tidegate, tidegate("tidegate fsck orders", 1), path)

    tidegate("tidegate publish orders", 0, NOTHING)
    check_ends_well(lake, tidegate, loaded)


@pytest.mark.follows("StateFileDamaged")
@pytest.mark.parametrize("damage", [cut, empty])
@pytest.mark.parametrize("published", [False, True], ids=["sealed", "published"])
def test_newest_announce_is_written_again(
    lake: SmallLake,
    tidegate: Command,
    loaded: dict[str, list[int]],
    damage: Callable[[Path], None],
    published: bool,
) -> None:
    if published:
        tidegate("tidegate publish orders")
    path = below(lake, "windows/000002/*/sealed*.json")
    damage(path)
    third = lake.commit({3: 1})

    follow(lake, tidegate, tidegate("tidegate load orders", 1), path)

    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    check_ends_well(lake, tidegate, {**loaded, "dt=2026-02-03": third})


@pytest.mark.follows("StateFileLost")
@pytest.mark.parametrize("ledger_is_lost", [False, True], ids=["ledger in use", "lost ledger"])
def test_work_directory_from_a_backup_is_brought_up_to_date(
    lake: SmallLake, tidegate: Command, *, ledger_is_lost: bool
) -> None:
    ids = lake.commit({1: 2})
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    shutil.copytree(lake.work, lake.root / "backup")
    ids += lake.commit({1: 1})
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    shutil.rmtree(lake.work)
    (lake.root / "backup").rename(lake.work)
    # What the files of the backup do not tell is told by a ledger in use, which a replay asks.
    announce = tidegate("tidegate fsck orders --rebuild", 1)
    tidegate(re.findall("`(tidegate replay [^`]*)`", announce)[0])
    if not ledger_is_lost:
        # It tells the commit as well.
        tidegate("tidegate fsck orders --rebuild")
        check_ends_well(lake, tidegate, {FIRST: ids})
        return
    (lake.root / "ledger.db").unlink()

    said = tidegate("tidegate fsck orders --rebuild", 1)

    plan = Path(re.findall(r"(\S+): expected", said)[0])
    assert plan.match(f"publications/{FIRST}/2-*.json")
    assert not any("out of the table" in found for found in lake.pipeline().findings())
    assert lake.ids() == lake.listed_ids() == {FIRST: ids}
    follow(lake, tidegate, said, plan)
    check_ends_well(lake, tidegate, {FIRST: ids})


def commit_plans(lake: SmallLake) -> list[Path]:
    """Find the commit plans of the first day, oldest first."""
    found = (lake.work / "publications" / FIRST).glob("*.json")
    return sorted(path for path in found if path.name.count(".") == 1)


@pytest.mark.follows("StateFileDamaged", "StateFileLost")
@pytest.mark.parametrize("damage", [cut, empty, unlink])
@pytest.mark.parametrize("revisions", [1, 2])
def test_newest_commit_plan_is_done_without(
    lake: SmallLake,
    tidegate: Command,
    loaded: dict[str, list[int]],
    damage: Callable[[Path], None],
    revisions: int,
) -> None:
    if revisions == 2:
        tidegate("tidegate publish orders")
        loaded[FIRST] += lake.commit({1: 1})
        tidegate("tidegate load orders")
    path = commit_plans(lake)[-1]
    assert path.name.startswith(f"{revisions}-")
    damage(path)

    follow(lake, tidegate, tidegate(f"tidegate publish orders {FIRST}", 1), path)

    check_ends_well(lake, tidegate, loaded)


class Died(Exception):
    """The process is gone."""


class DyingCalls(OsCalls):
    """System calls of a process that dies once it moved the first file of a commit."""

    moved = 0

    def link(self, source: str, target: str) -> None:
        if target.endswith(".parquet") and ".tidegate" not in target:
            self.moved += 1
            if self.moved > 1:
                raise Died
        super().link(source, target)


@pytest.mark.follows("StateFileDamaged", "StateFileLost")
@pytest.mark.parametrize("damage", [cut, unlink])
@pytest.mark.parametrize("revisions", [1, 2])
def test_commit_plan_of_a_commit_that_was_begun_is_done_without(
    lake: SmallLake,
    tidegate: Command,
    loaded: dict[str, list[int]],
    damage: Callable[[Path], None],
    revisions: int,
) -> None:
    if revisions == 2:
        tidegate("tidegate publish orders")
    for _ in range(2):
        loaded[FIRST] += lake.commit({1: 1})
        tidegate("tidegate load orders")
    with pytest.raises(Died):
        lake.pipeline(LocalStorage(DyingCalls())).publish(day(1), process_owner("cli"), NOW)
    path = commit_plans(lake)[-1]
    damage(path)

    said = tidegate(f"tidegate publish orders {FIRST}", 1)
    follow(lake, tidegate, said, path)

    check_ends_well(lake, tidegate, loaded)


@pytest.mark.follows("StateFileDamaged")
@pytest.mark.parametrize("name", ["1-*[0-9].json", "1-*.gate.json", "2-*.gate.json"])
def test_record_that_a_restoration_cannot_read_is_done_without(
    lake: SmallLake, tidegate: Command, loaded: dict[str, list[int]], name: str
) -> None:
    tidegate("tidegate publish orders")
    loaded[FIRST] += lake.commit({1: 1})
    tidegate("tidegate load orders")
    path = below(lake, f"publications/{FIRST}/{name}")
    cut(path)

    follow(lake, tidegate, tidegate("tidegate fsck orders --rebuild", 1), path)

    check_ends_well(lake, tidegate, loaded)
