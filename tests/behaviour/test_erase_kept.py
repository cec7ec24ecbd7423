"""Erased rows leave what is kept beside the table, and nothing else is lost with them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from behaviour.test_compaction import RULE as JOINED
from behaviour.test_erase import ADA, DAY_1, RUN, Died, erase, everywhere, grown
from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from interrupting import Interrupting
from small_lake import (
    NOW,
    SmallLake,
    day,
    interval,
    load,
    local,
    publish,
    stamps,
    stand_as_before,
)
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import ErasedSince, ErasureUnfinished, StateFileLost, UndoImpossible
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner
from tidegate.stage import layout
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    from tidegate.model.erasure import ErasureReport
    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.on_disk

ANOTHER = Run("erase", "another")
RULE = {"name": "sane", "where": "id != 2 and id != 3", "on_failure": "quarantine"}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})


def side(lake: SmallLake, name: str) -> dict[str, Any]:
    """Give the key with which late rows go to a root of this name."""
    return {"late_data": {"side": {"path": str(lake.root / "published" / name)}}}


def with_kept_rows(lake: SmallLake, form: str) -> Pipeline:
    """Keep rows 2 and 3 in quarantine, and rows 5 and 6 in a late root; publish the others."""
    lake.keys = {"commit": side(lake, "late"), "target": {"format": form}, "rows": [RULE]}
    lake.commit({1: 3})
    lake.commit({2: 1})
    lake.commit({1: 2, 3: 1})
    opened = lake.pipeline()
    for number in (1, 2, 3):
        load(opened, interval(number))
        publish(opened)
    return opened


def kept_ids(root: Path) -> list[int]:
    """Read the ids in all files with rows below a directory, hidden ones too, file by file."""
    found: list[int] = []
    for path in sorted(root.rglob("*part-*")):
        if path.is_file():
            rows = pc_csv.read_csv(path) if ".csv" in path.name else pq.read_table(path)
            found += rows["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("root", ["current", "former"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_no_kept_row_is_lost_wherever_the_process_dies_and_whatever_sweeps(
    lake: SmallLake, form: str, root: str
) -> None:
    opened = with_kept_rows(lake, form)
    quarantine, late = lake.work / "windows" / "000001", lake.root / "published" / "late"
    assert kept_ids(late) == [5, 6]
    if root == "former":
        lake.keys["commit"] = side(lake, "new")
    erasure = opened.erasure("id in (2, 5)", "ada", NOW)
    whole = lake.root.with_name("whole")
    shutil.copytree(lake.root, whole)
    deaths = deaths_while_kept_rows_go(lake, erasure)
    assert len(deaths) > 10

    for death in deaths:
        shutil.rmtree(lake.root)
        shutil.copytree(whole, lake.root)
        with pytest.raises(Died):
            erase_until(lake, erasure, Stopper(death, dying=die))
        swept = lake.pipeline()
        swept.sweep(swept.garbage(NOW.replace(year=2040), timedelta(0)))

        assert lake.pipeline().erase(None, RUN, ADA, local).left == ()
        (aside,) = quarantine.glob("*/quarantine")
        # What is read again for the sake of an erasure goes into the root of now.
        assert kept_ids(aside) == [3]
        assert kept_ids(late) + kept_ids(late.with_name("new")) == [6]


def deaths_while_kept_rows_go(lake: SmallLake, erasure: Any) -> list[int]:
    """Erase once, and number the changes from the first file that is written anew."""
    stopper = Stopper()
    erase_until(lake, erasure, stopper)
    first = next(at for at, made in enumerate(stopper.made, 1) if made.endswith(".erased"))
    return [*range(first, len(stopper.made) + 1)]


def erase_until(lake: SmallLake, erasure: Any, stopper: Stopper) -> None:
    opened = lake.pipeline(stopping_storage(stopper))
    assert opened.erase(erasure, RUN, ADA, local).left == ()


def die() -> None:
    raise Died


def test_file_that_was_written_anew_stands_after_a_power_cut(
    lake: SmallLake, tmp_path: Path
) -> None:
    grown(lake, 1, rows=[{**RULE, "where": "id > 2"}])
    (file,) = lake.work.rglob("quarantine/**/*.parquet")
    disk = Disk(lake.root, tmp_path / "kept")

    opened = lake.pipeline(stopping_storage(Stopper(disk=disk)))
    assert opened.erase(opened.erasure("id = 1", "ada", NOW), RUN, ADA, local).left == ()

    disk.leave(tmp_path / "left", chance("lost", 0))
    left = tmp_path / "left" / file.relative_to(lake.root)
    assert pq.read_table(left)["id"].to_pylist() == [2]


def test_what_an_earlier_plan_of_an_open_window_staged_is_gone_when_none_is_left(
    lake: SmallLake,
) -> None:
    grown(lake, 1)
    lake.commit({1: 2})
    load_until_messages(lake)
    assert len(erase(lake.pipeline(), 3).left) == 1
    load_until_messages(lake, NOW + timedelta(hours=1))

    assert lake.pipeline().erase(None, RUN, ADA, local).left == ()

    assert everywhere(lake) == {1, 2, 4}
    load(lake.pipeline(), interval(2))
    publish(lake.pipeline())
    assert lake.ids() == {DAY_1: [1, 2, 4]}


def load_until_messages(lake: SmallLake, now: datetime = NOW) -> None:
    """Die as soon as rows of the second window are staged."""
    storage = LocalStorage(Interrupting(pattern=r"000002/.*/messages/", happens=[die]))
    with pytest.raises(Died):
        load(lake.pipeline(storage), interval(2), now=now)


@dataclass(frozen=True)
class Writing(OsCalls):
    """System calls during whose first write to a part file below a directory something happens."""

    below: str = ""
    happens: list[Callable[[], Any]] = field(default_factory=list, hash=False)

    def create(self, path: str) -> int:
        found = super().create(path)
        if self.below in path and "/part-" in path and self.happens:
            self.happens.pop()()
        return found


def erasing_beside(
    lake: SmallLake, opened: Pipeline, erased: str, reports: list[ErasureReport]
) -> Callable[[], None]:
    """Erase row 1 `before` or `meanwhile`; return what another run does beside one that writes."""
    erasure = opened.erasure("id = 1", "ada", NOW)
    if erased == "before":
        opened.erase(erasure, RUN, ADA, local)

    def meanwhile() -> None:
        said = erasure if erased == "meanwhile" else None
        reports.append(lake.pipeline().erase(said, ANOTHER, ADA, local))

    return meanwhile


@pytest.mark.parametrize("erased", ["before", "meanwhile"])
def test_replay_that_is_writing_while_rows_are_erased_goes_on(lake: SmallLake, erased: str) -> None:
    opened = grown(lake, 2)
    reports: list[ErasureReport] = []
    meanwhile = erasing_beside(lake, opened, erased, reports)
    storage = LocalStorage(Writing(below="/000002/", happens=[meanwhile]))
    changed = lake.pipeline(storage, target={"rolling": {"file_size": "64MiB"}})
    planned = changed.replay(2, RUN, NOW)
    if erased == "before":
        changed.finish_load(planned, NOW, local)
    else:
        with pytest.raises(ErasedSince):
            changed.finish_load(planned, NOW, local)
        changed.finish_load(changed.replay(2, RUN, NOW), NOW, local)

    (left,) = reports[0].left
    assert left.path.endswith("/000002")
    assert "run cli is at work on window 2" in left.done
    assert "`tidegate erase orders --again`" in left.done
    publish(changed)
    assert lake.ids() == {DAY_1: [2, 3, 4]}
    assert changed.erase(None, RUN, ADA, local).left == ()
    assert everywhere(lake) == {2, 3, 4}
    assert list(changed.findings()) == []


@pytest.mark.parametrize("erased", ["before", "meanwhile"])
def test_compaction_that_is_writing_while_rows_are_erased_goes_on(
    lake: SmallLake, erased: str
) -> None:
    opened = grown(lake)
    reports: list[ErasureReport] = []
    meanwhile = erasing_beside(lake, opened, erased, reports)
    storage = LocalStorage(Writing(below="/units/", happens=[meanwhile]))
    assert lake.pipeline(storage).compact(day(1), JOINED, "cli", NOW) is not None

    assert [file.partition for file in reports[0].left] == [DAY_1]
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == {DAY_1: [2, 3, 4, 5, 6]}
    assert everywhere(lake) == {2, 3, 4, 5, 6}
    assert list(opened.findings()) == []


def test_what_a_dead_run_holds_is_not_waited_for(lake: SmallLake) -> None:
    opened = grown(lake, 2)
    gone = process_owner("publish").split(":")
    # A process of this number that began at another time has ended.
    owner = ":".join([*gone[:3], "1", *gone[4:]])
    claim = opened.ledger.partitions.claim(day(1), opened._holder(owner, NOW))

    assert erase(opened, 3).left == ()

    opened.ledger.partitions.release(day(1), claim)
    assert lake.ids() == {DAY_1: [1, 2, 4]}
    assert everywhere(lake) == {1, 2, 4}


@pytest.mark.follows("ErasureUnfinished")
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_undo_to_rows_that_were_not_taken_out_yet_is_refused_until_they_are(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    lake.keys |= {"target": {"format": form}}
    opened = grown(lake, 2)
    before = {path.name: path.read_bytes() for path in (lake.target / DAY_1).glob("part-*")}
    dying = LocalStorage(Interrupting(pattern=f"{DAY_1}/_SUCCESS", happens=[die]))
    with pytest.raises(Died):
        erase(lake.pipeline(dying), 3)
    publish(opened)

    with pytest.raises(ErasureUnfinished) as refused:
        opened.undo(day(1), 3, ADA, "cli", NOW)

    assert refused.value.values["rows"] == 1
    assert "`tidegate erase orders --again`" in str(refused.value)
    lake.found_by_name(monkeypatch)
    assert CliRunner().invoke(app, ["erase", "orders", "--again"]).exit_code == 0
    assert kept_ids(lake.target) == [1, 2, 4]
    assert 3 not in kept_ids(lake.work)
    with pytest.raises(UndoImpossible):
        opened.undo(day(1), 3, ADA, "cli", NOW)

    # What was put back from a copy is no way back either.
    retired = lake.work / "retired" / DAY_1 / "3"
    for name in {*before} - {path.name for path in (lake.target / DAY_1).glob("part-*")}:
        retired.mkdir(parents=True, exist_ok=True)
        (retired / name).write_bytes(before[name])
    with pytest.raises(ErasureUnfinished):
        opened.undo(day(1), 3, ADA, "cli", NOW)
    assert kept_ids(lake.target) == [1, 2, 4]


def test_undo_of_other_rows_than_the_erased_ones_goes_on(lake: SmallLake) -> None:
    opened = grown(lake)
    erase(opened, 1)
    lake.commit({1: 2})
    load(opened, interval(4))
    publish(opened)

    opened.undo(day(1), 5, ADA, "cli", NOW)

    assert lake.ids() == {DAY_1: [2, 3, 4, 5, 6]}


def test_commit_that_began_before_its_windows_were_read_again_loses_them(lake: SmallLake) -> None:
    opened = grown(lake, 2)
    lake.commit({1: 2})
    load(opened, interval(3))
    erasure = opened.erasure("id = 5", "ada", NOW)

    def meanwhile(told: str) -> None:
        if told.startswith("reading window"):
            publish(lake.pipeline())
            assert lake.ids() == {DAY_1: [1, 2, 3, 4, 5, 6]}

    assert opened.erase(erasure, RUN, ADA, local, meanwhile).left == ()

    assert lake.ids() == {DAY_1: [1, 2, 3, 4, 6]}
    assert everywhere(lake) == {1, 2, 3, 4, 6}


def test_commit_of_joined_files_that_cannot_end_yet_keeps_its_files(lake: SmallLake) -> None:
    opened = grown(lake)
    stopper = Stopper(between=lambda: die() if stopper.made[-1] == "unlink _SUCCESS" else None)
    with pytest.raises(Died):
        lake.pipeline(stopping_storage(stopper)).compact(day(1), JOINED, "cli", NOW)
    assert opened.ledger.publications.unrecorded(day(1)) is not None

    with LocalStorage().lock(layout.lock_file(opened.roots.work, day(1)), "another"):
        assert [file.partition for file in erase(opened, 3).left] == [DAY_1]

    assert opened.erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == {DAY_1: [1, 2, 4, 5, 6]}
    assert everywhere(lake) == {1, 2, 4, 5, 6}


def test_joined_file_that_cannot_be_read_yet_keeps_what_it_is_taken_apart_to(
    lake: SmallLake,
) -> None:
    opened = grown(lake)
    opened.compact(day(1), JOINED, "cli", NOW)
    (joined,) = (lake.target / DAY_1).glob("part-*")
    whole = joined.read_bytes()
    joined.write_bytes(whole[:-3])
    assert [file.partition for file in erase(opened, 3).left] == [DAY_1]
    joined.write_bytes(whole)

    assert opened.erase(None, RUN, ADA, local).left == ()

    assert lake.ids() == {DAY_1: [1, 2, 4, 5, 6]}
    assert everywhere(lake) == {1, 2, 4, 5, 6}
    assert list(opened.findings()) == []


def test_partition_that_a_restored_ledger_does_not_know_as_it_is_stays_as_it_is(
    lake: SmallLake,
) -> None:
    grown(lake, 1)
    lake.commit({1: 2})
    load(lake.pipeline(), interval(2))
    ledger, before = lake.root / "ledger.db", lake.root / "before.db"
    shutil.copy(ledger, before)
    publish(lake.pipeline())
    stand_as_before(ledger, before)
    stood = lake.stamps(), stamps(lake.work / "publications")

    report = erase(lake.pipeline(), 1)

    assert DAY_1 in {file.partition for file in report.left}
    assert any("a marker of revision 2" in file.done for file in report.left)
    assert (lake.stamps(), stamps(lake.work / "publications")) == stood
    assert not (lake.work / "units").exists()


def test_former_late_root_is_found_though_a_plan_is_lost(lake: SmallLake) -> None:
    with_kept_rows(lake, "parquet")
    lake.keys["commit"] = side(lake, "new")
    (plan,) = (lake.work / "windows" / "000001").glob("*/plan.json")
    plan.unlink()

    erase(lake.pipeline(), 5)

    published = lake.root / "published"
    assert kept_ids(published / "late") + kept_ids(published / "new") == [6]


def test_file_that_a_restored_copy_brought_back_is_left_and_told(lake: SmallLake) -> None:
    opened = grown(lake, 1)
    (file,) = (lake.target / DAY_1).glob("*.parquet")
    copy = lake.root / file.name
    shutil.copy2(file, copy)
    assert erase(opened, 1).left == ()
    shutil.copy2(copy, file)

    (left,) = opened.erase(None, RUN, ADA, local).left

    assert left.path == str(file)
    assert "move it out of the table" in left.done
    file.unlink()
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == lake.listed_ids() == {DAY_1: [2]}


def test_rows_stay_erased_after_a_reset_to_another_target(lake: SmallLake) -> None:
    opened = grown(lake, 2)
    assert erase(opened, 1, 3).left == ()
    moved = lake.pipeline(target={"path": str(lake.root / "published" / "elsewhere")})

    moved.drop("cli", NOW)
    load(moved)
    publish(moved)

    table = read_committed(lake.root / "published" / "elsewhere").to_table()
    assert sorted(table["id"].to_pylist()) == [2, 4]
    assert moved.erase(None, RUN, ADA, local).left == ()


@pytest.mark.parametrize("lost", [1, 2])
def test_erasure_whose_file_is_lost_is_found_and_named_once_more(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    opened = grown(lake, 2)
    assert erase(opened, 1).left == ()
    assert erase(opened, 3).left == ()
    (lake.work / "erasures" / f"{lost:06d}.json").unlink()
    lake.commit({1: 1})

    (finding,) = lake.pipeline().findings()
    with pytest.raises(StateFileLost) as refused:
        load(lake.pipeline(), interval(3))

    told = f"--instead {lost} --where"
    assert told in str(finding)
    assert told in str(refused.value)
    lake.found_by_name(monkeypatch)
    condition = f"id = {1 if lost == 1 else 3}"
    typed = ["erase", "orders", "--instead", str(lost), "--where", condition, "--yes"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    assert list(lake.pipeline().findings()) == []
    load(lake.pipeline(), interval(3))
    again = lake.pipeline()
    again.finish_load(again.rebuild([day(1)], RUN, NOW), NOW, local)
    publish(again)
    assert lake.ids() == {DAY_1: [2, 4, 5]}
