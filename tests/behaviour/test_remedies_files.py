"""Files that were lost or damaged: what the message says, typed as it stands, ends well."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, load, publish, published_ids
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    ContentUnreadable,
    FileLengthWrong,
    MarkerInvalid,
    SourceFileDamaged,
    SourceFileGone,
    StagedFileMissing,
    TidegateError,
)
from tidegate.pipeline.state.holders import process_owner
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

FIRST = "dt=2026-02-01"
SUITE = {
    "name": "orders",
    "expectations": [
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "amount"}}
    ],
}


class Command(Protocol):
    """Types a command, with what stands in capitals in messages filled in."""

    def __call__(self, line: str) -> Result: ...


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@pytest.fixture
def tidegate(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> Command:
    lake.pipeline()
    lake.found_by_name(monkeypatch)

    def run(line: str) -> Result:
        for word, value in {"PIPELINE": "orders", "PARTITION": FIRST}.items():
            line = line.replace(word, value)
        program, *arguments = shlex.split(line)
        assert program == "tidegate"
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    return run


def ended(result: Result, *codes: int) -> str:
    """Make sure that a command ended so (well, unless other codes are named); what it wrote."""
    assert result.exit_code in (codes or (0,)), result.output
    return " ".join(result.output.split())


def printed(text: str, verb: str) -> str:
    """Find a command in a message."""
    found = re.search(rf"`(tidegate {verb}[^`]*)`", " ".join(text.split()))
    assert found is not None, text
    return found[1]


def staged_part(lake: SmallLake) -> Path:
    return next(path for path in (lake.work / "windows").rglob("part-*") if FIRST in str(path))


def published_part(lake: SmallLake) -> Path:
    return next((lake.target / FIRST).glob("part-*"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def spoil(path: Path) -> None:
    """Overwrite the content, and leave the length."""
    path.write_bytes(bytes(path.stat().st_size))


def refused(lake: SmallLake, error: type[TidegateError]) -> str:
    with pytest.raises(error) as failed:
        lake.pipeline().publish(day(1), process_owner("cli"), NOW)
    return str(failed.value)


def refused_after_the_gate(lake: SmallLake, damage: Callable[[], None]) -> str:
    """Commit what the gate saw whole; it is damaged meanwhile."""
    pipeline = lake.pipeline()
    proposed = pipeline.propose(day(1), process_owner("cli"), NOW)
    assert proposed is not None
    pipeline.gate(day(1), proposed.digest, process_owner("cli"), NOW)
    damage()
    with pytest.raises(FileLengthWrong) as failed:
        pipeline.commit(day(1), proposed.digest, process_owner("cli"), NOW)
    return str(failed.value)


def check_ends_well(lake: SmallLake, ids: list[int]) -> None:
    """Compare what stands by marker and by listing with the source; nothing is left over."""
    assert lake.ids()[FIRST] == sorted(ids)
    assert lake.listed_ids()[FIRST] == sorted(ids)
    assert list(lake.pipeline().findings()) == []
    ids += lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == sorted(ids)


@pytest.mark.on_disk
@pytest.mark.follows("FileLengthWrong")
def test_staged_file_that_was_cut_is_removed_and_its_window_replayed(
    lake: SmallLake, tidegate: Command
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    text = refused_after_the_gate(lake, lambda: cut(staged_part(lake)))

    Path(text.partition(": ")[0]).unlink()
    ended(tidegate(printed(text, "replay")))
    ended(tidegate(f"tidegate publish orders {FIRST}"))

    check_ends_well(lake, ids)


@pytest.mark.on_disk
@pytest.mark.follows("FileLengthWrong")
def test_published_file_that_was_cut_is_removed_and_its_partition_rebuilt(
    lake: SmallLake, tidegate: Command
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 2})
    load(lake.pipeline())
    text = refused_after_the_gate(lake, lambda: cut(published_part(lake)))

    Path(text.partition(": ")[0]).unlink()
    ended(tidegate(printed(text, "rebuild")))
    ended(tidegate(f"tidegate publish orders {FIRST}"))

    check_ends_well(lake, ids)


class Died(Exception):
    """The process is gone."""


class DyingCalls(OsCalls):
    """System calls of a process that dies before it moves the first file of a commit."""

    def link(self, source: str, target: str) -> None:
        if target.endswith(".parquet") and ".tidegate" not in target:
            raise Died
        super().link(source, target)


@pytest.mark.on_disk
@pytest.mark.follows("StagedFileMissing", "FileLengthWrong")
@pytest.mark.parametrize("damage", [cut, Path.unlink], ids=["cut", "lost"])
@pytest.mark.parametrize("verb", ["replay", "rebuild"])
def test_file_that_went_after_its_commit_had_begun_is_read_again(
    lake: SmallLake, tidegate: Command, damage: Callable[[Path], None], verb: str
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    with pytest.raises(Died):
        lake.pipeline(LocalStorage(DyingCalls())).publish(day(1), process_owner("cli"), NOW)
    damage(staged_part(lake))
    text = refused(lake, FileLengthWrong if damage is cut else StagedFileMissing)
    outcome, _ = lake.pipeline().publish_all(process_owner("cli"), NOW)
    assert f"`tidegate rebuild orders {FIRST}`" in str(outcome.error)

    Path(text.partition(": ")[0]).unlink(missing_ok=True)
    ended(tidegate(printed(text, verb)))
    ended(tidegate(f"tidegate publish orders {FIRST}"))

    check_ends_well(lake, ids)


FOUND_BY_THE_GATE: dict[Callable[[Path], None], type[TidegateError]] = {
    spoil: ContentUnreadable,
    cut: FileLengthWrong,
    Path.unlink: StagedFileMissing,
}


def judged(lake: SmallLake) -> None:
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps(SUITE))
    lake.keys = {"gate": {"suite": str(suite)}}


@pytest.mark.on_disk
@pytest.mark.follows("ContentUnreadable", "FileLengthWrong", "StagedFileMissing")
@pytest.mark.parametrize("damage", FOUND_BY_THE_GATE, ids=["spoilt", "cut", "lost"])
def test_staged_file_that_the_gate_cannot_read_is_read_again(
    lake: SmallLake, tidegate: Command, damage: Callable[[Path], None]
) -> None:
    judged(lake)
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    damage(staged_part(lake))
    text = refused(lake, FOUND_BY_THE_GATE[damage])

    Path(text.partition(": ")[0]).unlink(missing_ok=True)
    ended(tidegate(printed(text, "replay")))
    ended(tidegate(f"tidegate publish orders {FIRST}"))

    check_ends_well(lake, ids)


@pytest.mark.follows("ContentUnreadable", "FileLengthWrong", "StagedFileMissing")
@pytest.mark.parametrize("damage", FOUND_BY_THE_GATE, ids=["spoilt", "cut", "lost"])
def test_published_file_that_the_gate_cannot_read_is_read_again(
    lake: SmallLake, tidegate: Command, damage: Callable[[Path], None]
) -> None:
    judged(lake)
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    damage(published_part(lake))
    ids += lake.commit({1: 2})
    load(lake.pipeline())
    text = refused(lake, FOUND_BY_THE_GATE[damage])

    Path(text.partition(": ")[0]).unlink(missing_ok=True)
    ended(tidegate(printed(text, "rebuild")))
    ended(tidegate(f"tidegate publish orders {FIRST}"))

    check_ends_well(lake, ids)


@pytest.mark.follows("MarkerInvalid")
@pytest.mark.parametrize("content", ["", "{", '{"format": 9}'], ids=["empty", "cut", "later"])
def test_marker_that_says_nothing_is_written_again_with_the_partition(
    lake: SmallLake, tidegate: Command, content: str
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    (lake.target / FIRST / "_SUCCESS").write_text(content)
    with pytest.raises(MarkerInvalid) as failed:
        read_committed(lake.target).to_table()

    ended(tidegate(printed(str(failed.value), "rebuild")))
    ended(tidegate(printed(str(failed.value), "publish")))

    assert sorted(read_committed(lake.target).to_table()["id"].to_pylist()) == ids
    check_ends_well(lake, ids)


@pytest.mark.follows("MarkerInvalid")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_marker_that_tells_no_columns_of_text_is_written_again_with_the_partition(
    lake: SmallLake, tidegate: Command, form: str
) -> None:
    lake.keys = {"target": {"format": form}}
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    marker = lake.target / FIRST / "_SUCCESS"
    says = json.loads(marker.read_text())
    marker.write_text(json.dumps({key: says[key] for key in says if key != "reading"}))
    with pytest.raises(MarkerInvalid, match="no columns") as failed:
        read_committed(lake.target)

    ended(tidegate(printed(str(failed.value), "rebuild")))
    ended(tidegate(printed(str(failed.value), "publish")))

    assert sorted(read_committed(lake.target).to_table()["id"].to_pylist()) == ids


def plans(lake: SmallLake) -> list[Path]:
    return sorted((lake.work / "windows").rglob("plan.json"))


@pytest.mark.follows("PlanMissing")
@pytest.mark.parametrize("begun", ["plan", "load"])
def test_plan_that_is_gone_is_made_again(lake: SmallLake, tidegate: Command, begun: str) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    ended(tidegate(f"tidegate {begun} orders"))
    for path in (lake.work / "windows").rglob("plan.json"):
        path.unlink()
    text = ended(tidegate("tidegate plan orders --window 1"), 1)

    ended(tidegate(printed(text, "replay")))

    ended(tidegate("tidegate plan orders --window 1"))
    ended(tidegate(f"tidegate publish orders {FIRST}"))
    check_ends_well(lake, ids)


def data_file(lake: SmallLake) -> Path:
    (task,) = lake.table.scan().plan_files()
    return Path(task.file.file_path.removeprefix("file://"))


@pytest.mark.on_disk
def test_error_of_a_partition_is_printed_whole_with_the_name_that_was_typed(
    lake: SmallLake, tidegate: Command
) -> None:
    lake.commit({1: 4, 2: 1})
    ended(tidegate("tidegate load orders"))
    cut(staged_part(lake))

    failed = tidegate("tidegate publish orders")

    assert failed.exit_code == 1
    assert str(staged_part(lake)) in failed.output
    assert "`tidegate replay orders " in failed.output
    assert "PIPELINE" not in failed.output


@pytest.mark.follows("SourceFileGone", "SourceFileDamaged")
@pytest.mark.parametrize("damage", [cut, Path.unlink], ids=["cut", "gone"])
def test_file_of_the_source_that_is_restored_is_loaded(
    lake: SmallLake, damage: Callable[[Path], None]
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    path = data_file(lake)
    content = path.read_bytes()
    damage(path)
    with pytest.raises(SourceFileDamaged if damage is cut else SourceFileGone):
        load(lake.pipeline())

    path.write_bytes(content)
    load(lake.pipeline())
    publish(lake.pipeline())

    check_ends_well(lake, ids)


def delete(lake: SmallLake, ids: list[int]) -> None:
    """Delete rows that are all of their file, and the file itself, as expiring snapshots does."""
    condition = f"id >= {ids[0]} and id <= {ids[-1]}"
    paths = [task.file.file_path for task in lake.table.scan(condition).plan_files()]
    lake.table.delete(condition)
    for path in paths:
        Path(path.removeprefix("file://")).unlink()


@pytest.fixture
def deleting(lake: SmallLake, tidegate: Command) -> list[int]:
    """A day of two commits, and a pipeline that passes over deletes: the ids of the day."""
    lake.source.pop("instant_time")
    lake.keys = {"source": {"read": {"on_non_append": "skip"}}}
    lake.pipeline()
    ids = lake.commit({1: 4, 2: 1})[:4]
    ended(tidegate("tidegate load orders"))
    ended(tidegate("tidegate publish orders"))
    return ids + lake.commit({1: 2})


@pytest.mark.follows("SourceFileGone")
def test_window_whose_files_the_source_deleted_is_rebuilt_instead_of_replayed(
    lake: SmallLake, tidegate: Command, deleting: list[int]
) -> None:
    ended(tidegate("tidegate load orders"))
    delete(lake, deleting[4:])
    ended(tidegate("tidegate load orders"))
    lake.keys = {"source": {"read": {"on_non_append": "skip", "filter": "id <> 2"}}}
    lake.pipeline()
    text = ended(tidegate("tidegate replay orders 2"), 1)
    assert "SourceFileGone" in text

    ended(tidegate(printed(text, "rebuild")))
    ended(tidegate(f"tidegate publish orders {FIRST}"))

    check_ends_well(lake, [1, 3, 4])


@pytest.mark.follows("SourceFileGone")
def test_open_window_whose_files_the_source_deleted_is_given_up_for_what_the_source_has(
    lake: SmallLake, tidegate: Command, deleting: list[int]
) -> None:
    ended(tidegate("tidegate plan orders"))
    delete(lake, deleting[4:])
    text = ended(tidegate("tidegate load orders"), 1)
    ended(tidegate(printed(text, "abandon") + " --yes"))
    assert "read it in a new pipeline" in ended(tidegate(printed(text, "load")), 1)

    target = lake.root / "published" / "anew"
    lake.file("anew", name="anew", target={"path": str(target)})
    ended(tidegate("tidegate load anew"))
    ended(tidegate("tidegate publish anew"))

    assert published_ids(target)[FIRST] == deleting[:4]
