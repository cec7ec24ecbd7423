"""A commit that was begun and misses a file is taken back once something came in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from small_lake import NOW, SmallLake, day, load, local, publish
from tidegate.errors import FileLengthWrong, StagedFileMissing, TidegateError
from tidegate.ledger.publications import Publications
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.on_disk

FIRST = "dt=2026-02-01"
UNMARKED = """
class Unmarked:
    def commit(self, context):
        pass
"""
ALL_ARE_SANE = [{"name": "sane", "where": "amount > 0", "on_failure": "quarantine"}]
NONE_IS_SANE = [{"name": "sane", "where": "amount < 0", "on_failure": "quarantine"}]


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


class Died(Exception):
    """The process is gone."""


@dataclass(frozen=True)
class DyingCalls(OsCalls):
    """System calls of a process that dies after it moved the first file of a commit."""

    moved: list[str] = field(default_factory=list, hash=False)

    def link(self, source: str, target: str) -> None:
        if target.endswith(".parquet") and ".tidegate" not in target:
            if self.moved:
                raise Died
            self.moved.append(target)
        super().link(source, target)

    def sync(self, descriptor: int) -> None:
        if self.moved:
            raise Died
        super().sync(descriptor)


def die_after_the_first_file(lake: SmallLake) -> None:
    storage = LocalStorage(DyingCalls())
    with pytest.raises(Died):
        lake.pipeline(storage).publish(day(1), process_owner("cli"), NOW)
    assert not (lake.target / FIRST / "_SUCCESS").exists()


def lose(lake: SmallLake, window: int, leave: Callable[[bytes], bytes] | None = None) -> None:
    """Lose a window's rows of the first day, wherever a commit has brought them.

    Args:
        lake: its pipeline has begun a commit.
        window: its number.
        leave: what becomes of the staged file's content; otherwise there is no file any more.
    """
    (staged,) = lake.work.glob(f"windows/{window:06d}/*/staged/*/*/{FIRST}/*.parquet")
    (lake.target / FIRST / staged.name).unlink(missing_ok=True)
    content = staged.read_bytes()
    staged.unlink()
    if leave is not None:
        staged.write_bytes(leave(content))


def replay(pipeline: Pipeline, window: int) -> None:
    planned = pipeline.replay(window, Run("replay", process_owner("cli")), NOW)
    pipeline.finish_load(planned, NOW, local)


def revision(lake: SmallLake) -> int:
    return int(json.loads((lake.target / FIRST / "_SUCCESS").read_bytes())["revision"])


def check_stands(lake: SmallLake, ids: list[int]) -> None:
    publish(lake.pipeline(), process_owner("cli"))
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    assert revision(lake) == 2
    assert list(lake.pipeline().findings()) == []


@pytest.fixture
def ids(lake: SmallLake) -> list[int]:
    """Two windows of one day, the first of which a revision holds."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 2})
    load(lake.pipeline())
    return ids


LOST: list[tuple[type[TidegateError], Callable[[bytes], bytes] | None]] = [
    (StagedFileMissing, None),
    (FileLengthWrong, lambda content: content[:-1]),
]


@pytest.mark.parametrize(("error", "leave"), LOST, ids=["gone", "cut"])
def test_file_that_had_moved_is_in_the_next_commit_of_a_replay(
    lake: SmallLake,
    ids: list[int],
    error: type[TidegateError],
    leave: Callable[[bytes], bytes] | None,
) -> None:
    ids += lake.commit({1: 3})
    load(lake.pipeline())
    die_after_the_first_file(lake)
    lose(lake, 3, leave)
    with pytest.raises(error):
        lake.pipeline().publish(day(1), process_owner("cli"), NOW)

    replay(lake.pipeline(), 3)

    check_stands(lake, ids)


def test_content_that_stood_before_gets_its_marker_back(lake: SmallLake, ids: list[int]) -> None:
    die_after_the_first_file(lake)
    lose(lake, 2)

    replay(lake.pipeline(rows=NONE_IS_SANE), 2)

    check_stands(lake, ids[:4])


@pytest.mark.parametrize("base", [0, 1])
def test_marker_of_a_commit_that_is_taken_back_goes_with_it(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, base: int
) -> None:
    ids = []
    if base:
        ids += lake.commit({1: 4, 2: 1})[:4]
        load(lake.pipeline())
        publish(lake.pipeline())
    stood = set((lake.target / FIRST).glob("*.parquet"))
    lake.commit({1: 2, 3: 1})
    load(lake.pipeline())
    with monkeypatch.context() as patched:
        patched.setattr(Publications, "record", _die)
        with pytest.raises(Died):
            lake.pipeline().publish(day(1), process_owner("cli"), NOW)
    (lost,) = set((lake.target / FIRST).glob("*.parquet")) - stood
    lost.unlink()

    replay(lake.pipeline(rows=NONE_IS_SANE), base + 1)

    publish(lake.pipeline(), process_owner("cli"))
    ids += lake.commit({1: 3})
    load(lake.pipeline())
    publish(lake.pipeline(), process_owner("cli"))
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    assert list(lake.pipeline().findings()) == []


def test_content_that_stands_without_a_marker_by_policy_makes_no_revision(
    lake: SmallLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unmarked.py").write_text(UNMARKED)
    monkeypatch.syspath_prepend(tmp_path)
    lake.keys = {"commit": {"policies": [{"custom": "unmarked:Unmarked"}]}}
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())

    replay(lake.pipeline(rows=ALL_ARE_SANE), 1)

    publish(lake.pipeline())
    state = lake.pipeline().ledger.partitions.get(day(1))
    assert (state.revision, state.pending) == (1, "none")


def test_content_that_stands_under_the_former_name_of_the_marker_makes_no_revision(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.keys = {"commit": {"marker": {"name": "_DONE"}}}

    replay(lake.pipeline(rows=ALL_ARE_SANE), 1)

    publish(lake.pipeline())
    state = lake.pipeline().ledger.partitions.get(day(1))
    assert (state.revision, state.pending) == (1, "none")
    assert lake.ids()[FIRST] == ids


def test_rows_that_came_since_do_not_take_back_a_commit(lake: SmallLake, ids: list[int]) -> None:
    die_after_the_first_file(lake)
    (staged,) = lake.work.glob(f"windows/000002/*/staged/*/*/{FIRST}/*.parquet")
    copy = staged.read_bytes()
    lose(lake, 2)
    later = lake.commit({1: 1})
    load(lake.pipeline())

    with pytest.raises(StagedFileMissing):
        lake.pipeline().publish(day(1), process_owner("cli"), NOW)
    assert lake.listed_ids()[FIRST] == ids[:4]
    staged.write_bytes(copy)
    publish(lake.pipeline(), process_owner("cli"))

    # What had begun is a revision of its own; the rows that came since make the next one.
    assert (lake.ids()[FIRST], revision(lake)) == ([*ids, *later], 3)
    assert list(lake.pipeline().findings()) == []


def test_sweep_leaves_the_staged_files_of_a_commit_that_was_begun(
    lake: SmallLake, ids: list[int]
) -> None:
    ids += lake.commit({1: 3})
    load(lake.pipeline())
    die_after_the_first_file(lake)
    replay(lake.pipeline(source={"read": {"filter": f"id <> {ids[-1]}"}}), 3)
    pipeline = lake.pipeline()
    pipeline.sweep(pipeline.garbage(NOW.replace(year=2030), NOW - NOW))

    publish(lake.pipeline(), process_owner("cli"))

    # Once as it was begun, and once as the replay left it.
    assert (lake.ids()[FIRST], revision(lake)) == (ids[:-1], 3)
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("restored", [True, False], ids=["ledger lost", "ledger kept"])
def test_process_that_dies_between_disk_and_ledger_is_followed(
    lake: SmallLake, ids: list[int], monkeypatch: pytest.MonkeyPatch, *, restored: bool
) -> None:
    ids += lake.commit({1: 3})
    load(lake.pipeline())
    die_after_the_first_file(lake)
    lose(lake, 3)
    replay(lake.pipeline(), 3)
    dying = lake.pipeline()
    with monkeypatch.context() as patched:
        patched.setattr(type(dying.ledger.publications), "withdraw", _die)
        with pytest.raises(Died):
            dying.publish(day(1), process_owner("cli"), NOW)
    assert lake.listed_ids()[FIRST] == ids[:4]
    if restored:
        (lake.root / "ledger.db").unlink()
        lake.pipeline().restore_ledger()

    check_stands(lake, ids)


def _die(*_arguments: object) -> None:
    raise Died
