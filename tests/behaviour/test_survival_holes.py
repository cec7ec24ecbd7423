"""Announces whose file was lost or damaged: no ledger is restored with a hole between windows."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from behaviour.test_survival_restored import NARROW, lose, put_back, rebuild, replay, save
from crash.scenario import ledger_content
from kept_lakes import KeptLake
from small_lake import NOW, SmallLake, interval, load, look_again, publish, published_ids
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.cli.output import NOTHING
from tidegate.errors import LedgerLost, StateFileDamaged, StateFileLost, TidegateError
from tidegate.model.plan import Split
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = "dt=2026-02-01"


def take_in(lake: SmallLake, days: dict[int, int]) -> list[int]:
    ids = lake.commit(days)
    load(lake.pipeline())
    publish(lake.pipeline())
    return ids


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> KeptLake[list[int]]:
    """Publish three windows."""
    folder = tmp_path_factory.mktemp("windows")
    return KeptLake(folder, lambda lake: [take_in(lake, {1: 1, 2: 1})[0] for _ in range(3)])


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SmallLake:
    """With three windows for who wants to know their ids, else empty."""
    has_windows = "ids" in request.fixturenames
    lake = request.getfixturevalue("kept").again() if has_windows else SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    return lake


@pytest.fixture
def ids(kept: KeptLake[list[int]]) -> list[int]:
    """Give the ids of the first day."""
    return [*kept.made]


def announces(lake: SmallLake, sequence: int) -> list[Path]:
    return sorted((lake.work / "windows" / f"{sequence:06d}").rglob("sealed*.json"))


def unlink(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def forget(path: Path) -> None:
    """Take the whole window away, with its plan and its messages."""
    shutil.rmtree(path.parent.parent)


def follow(lake: SmallLake, said: str) -> None:
    """Do what a message says, but for the copy, which nobody has."""
    if "move it away" in said:
        (lake.root / "away").unlink(missing_ok=True)
        path = next(path for path in lake.work.rglob("sealed*.json") if said.startswith(str(path)))
        path.rename(lake.root / "away")
    commands = re.findall("`(tidegate [^`]*)`", said)
    assert commands, said
    for line in commands:
        arguments = shlex.split(line.replace("PIPELINE", "orders"))[1:]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code in {0, NOTHING}, result.output


def refusal(lake: SmallLake) -> TidegateError:
    """Restore the ledger, which is refused; what changes nothing."""
    pipeline = lake.pipeline()
    before, files = ledger_content(lake.root), lake.stamps()
    with pytest.raises((StateFileLost, StateFileDamaged)) as refused:
        pipeline.restore_ledger()
    assert (ledger_content(lake.root), lake.stamps()) == (before, files)
    return refused.value


def check_ends_well(lake: SmallLake, ids: list[int]) -> None:
    """Find nothing and every row, also after a further window and a restoration."""
    assert list(lake.pipeline().findings()) == []
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == sorted(ids)
    more = [*ids, take_in(lake, {1: 1, 5: 1})[0]]
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())
    assert list(lake.pipeline().findings()) == []
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == sorted(more)


@pytest.mark.on_disk
@pytest.mark.follows("StateFileLost", "StateFileDamaged")
@pytest.mark.parametrize("damage", [unlink, cut])
@pytest.mark.parametrize("sequence", [1, 2, 3], ids=["first", "middle", "last"])
def test_announce_is_written_again_as_it_was_from_ledger_plan_and_messages(
    lake: SmallLake, ids: list[int], damage: Callable[[Path], None], sequence: int
) -> None:
    (path,) = announces(lake, sequence)
    written, before = path.read_bytes(), ledger_content(lake.root)
    damage(path)

    (found,) = lake.pipeline().findings()
    assert found.startswith(f"{path}: expected")
    follow(lake, found)

    assert path.read_bytes() == written
    after = ledger_content(lake.root)
    for table in ("window", "contribution", "revision", "publication"):
        assert after[table] == before[table], table
    check_ends_well(lake, ids)


def test_announces_that_were_lost_together_are_written_again_as_they_were(
    lake: SmallLake, ids: list[int]
) -> None:
    rebuild(lake.pipeline())
    replay(lake.pipeline(**NARROW), 2)
    paths = [path for sequence in (1, 3, 4) for path in announces(lake, sequence)]
    written = [path.read_bytes() for path in paths]
    for path in paths:
        unlink(path)

    lake.pipeline().restore_ledger()

    assert [path.read_bytes() for path in paths] == written
    publish(lake.pipeline())
    check_ends_well(lake, ids)


@pytest.mark.parametrize("lost", ["a message", "a split"])
def test_announce_whose_messages_are_not_whole_is_not_told(
    lake: SmallLake, ids: list[int], lost: str
) -> None:
    (path,) = announces(lake, 2)
    unlink(path)
    if lost == "a message":
        next((path.parent / "messages").iterdir()).unlink()
    else:
        path.with_name("splits.jsonl").write_text("")

    said = refusal(lake)
    assert "tidegate replay orders 2" in str(said)
    if lost == "a message":
        follow(lake, str(said))
        check_ends_well(lake, ids)


def stages_rows(messages: Path, line: str) -> bool:
    ids = [part.id for part in Split.from_json(json.loads(line)).sub_splits]
    return any(
        json.loads((messages / f"{name}.json").read_text())["staged"]["parts"] for name in ids
    )


def test_announce_is_not_told_without_the_split_whose_rows_were_all_put_aside(
    lake: SmallLake,
) -> None:
    """What the others brought is what the ledger knows; how much was put aside would not be."""
    lake.keys = {
        "rows": [{"name": "small", "where": "amount < 50", "on_failure": "quarantine"}],
        "source": {"split": {"target_size": "1KiB", "open_cost": "1KiB"}},
    }
    lake.commit({1: 2})
    lake.commit({1: 2}, amount=100)
    load(lake.pipeline())
    (path,) = announces(lake, 1)
    path.unlink()
    splits = path.with_name("splits.jsonl")
    lines = splits.read_text().splitlines(keepends=True)
    kept = [line for line in lines if stages_rows(path.parent / "messages", line)]
    assert (len(lines), len(kept)) == (2, 1)
    splits.write_text("".join(kept))

    refusal(lake)

    assert announces(lake, 1) == []


@pytest.mark.on_disk
@pytest.mark.follows("StateFileLost")
@pytest.mark.parametrize("sequence", [1, 2, 3], ids=["first", "middle", "last"])
def test_announce_of_a_window_that_was_lost_whole_is_written_again_by_a_replay(
    lake: SmallLake, ids: list[int], sequence: int
) -> None:
    (path,) = announces(lake, sequence)
    forget(path)

    # With the whole window its messages are found to be lost as well.
    found, *_ = lake.pipeline().findings()
    assert found.startswith(f"{path}: expected")
    said = refusal(lake)
    assert str(said).startswith(f"{path}: expected")
    follow(lake, str(said))

    check_ends_well(lake, ids)


@pytest.mark.on_disk
@pytest.mark.follows("StateFileLost", "StateFileDamaged")
@pytest.mark.parametrize("damage", [unlink, cut, forget])
def test_finding_of_a_lost_announce_is_mended_by_what_it_says(
    lake: SmallLake, ids: list[int], damage: Callable[[Path], None]
) -> None:
    (path,) = announces(lake, 2)
    damage(path)

    found, *_ = lake.pipeline().findings()
    follow(lake, found)

    assert lake.ids()[FIRST] == ids
    check_ends_well(lake, ids)


@pytest.mark.parametrize("damage", [unlink, cut, forget])
@pytest.mark.parametrize("sequence", [1, 2, 3], ids=["first", "middle", "last"])
def test_hole_is_refused_where_the_ledger_is_lost_and_a_copy_helps(
    lake: SmallLake, ids: list[int], damage: Callable[[Path], None], sequence: int
) -> None:
    (path,) = announces(lake, sequence)
    shutil.copytree(lake.work / "windows", lake.root / "copy")
    damage(path)
    lose(lake)

    said = refusal(lake)
    if damage is cut:
        assert "fsck orders --rebuild" in str(said)
        path.unlink()
        said = refusal(lake)

    assert f"windows/{sequence:06d}/" in said.values["path"]
    assert "Restore it from a copy, or start a new pipeline with a new name" in str(said)
    assert "replay" not in str(said)
    with pytest.raises(LedgerLost):
        load(lake.pipeline())
    shutil.copytree(lake.root / "copy", lake.work / "windows", dirs_exist_ok=True)
    lake.pipeline().restore_ledger()
    check_ends_well(lake, ids)


@pytest.mark.follows("StateFileLost")
def test_new_pipeline_over_a_hole_reads_everything(lake: SmallLake, ids: list[int]) -> None:
    unlink(announces(lake, 2)[0])
    lose(lake)
    assert "new name and a new target" in str(refusal(lake))

    target = lake.root / "published" / "anew"
    pipeline = lake.pipeline(name="anew", target={"path": str(target)})
    load(pipeline)
    publish(pipeline)

    assert published_ids(target)[FIRST] == ids


@pytest.mark.parametrize("lost", [False, True], ids=["ledger in use", "lost ledger"])
def test_hole_between_windows_that_were_not_published_is_refused(
    lake: SmallLake, lost: bool
) -> None:
    for number in (1, 2, 3):
        lake.commit({1: 1})
        load(lake.pipeline(), interval(number))
    (path,) = announces(lake, 2)
    forget(path)
    if lost:
        lose(lake)

    said = refusal(lake)

    assert "windows/000002/" in said.values["path"]


def test_load_that_is_lost_before_a_rebuild_is_not_read_twice(lake: SmallLake) -> None:
    take_in(lake, {1: 1, 2: 1})
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    rebuild(lake.pipeline())
    unlink(announces(lake, 2)[0])
    lose(lake)

    said = refusal(lake)

    assert "windows/000002/" in said.values["path"]


@pytest.mark.on_disk
@pytest.mark.parametrize("damage", [unlink, cut])
def test_lost_plan_of_a_lost_ledger_is_told_with_what_helps(
    lake: SmallLake, ids: list[int], damage: Callable[[Path], None]
) -> None:
    path = announces(lake, 2)[0].with_name("plan.json")
    content = path.read_bytes()
    damage(path)
    lose(lake)

    said = refusal(lake)

    assert said.values["path"] == str(path)
    assert "replay" not in str(said)
    assert ("new name and a new target" in str(said)) == (damage is unlink)
    path.write_bytes(content)
    lake.pipeline().restore_ledger()
    check_ends_well(lake, ids)


@pytest.mark.on_disk
@pytest.mark.parametrize("damage", [unlink, cut])
def test_lost_commit_plan_is_a_finding_of_its_own(
    lake: SmallLake, ids: list[int], damage: Callable[[Path], None]
) -> None:
    plans = [
        path
        for path in (lake.work / "publications" / FIRST).glob("3-*.json")
        if path.name.count(".") == 1
    ]
    damage(plans[0])

    (found,) = lake.pipeline().findings()

    assert found.startswith(f"{plans[0]}: expected")
    assert len(ids) == 3


@pytest.mark.parametrize("form", ["csv", "json"])
def test_commit_plan_of_text_that_is_written_again_tells_its_columns(
    lake: SmallLake, form: str
) -> None:
    lake.keys = {"target": {"format": form}}
    take_in(lake, {1: 2, 2: 1})
    marker = lake.target / FIRST / "_SUCCESS"
    before, rows = json.loads(marker.read_text()), read_committed(lake.target).to_table()
    for path in (lake.work / "publications" / FIRST).glob("1-*.json"):
        if path.name.count(".") == 1:
            path.unlink()
    marker.unlink()

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert json.loads(marker.read_text())["reading"] == before["reading"]
    assert read_committed(lake.target).to_table() == rows


def test_last_window_of_a_lost_ledger_that_nothing_counts_is_taken_again(
    lake: SmallLake, ids: list[int]
) -> None:
    ids = [*ids, lake.commit({1: 1, 2: 1})[0]]
    load(lake.pipeline())
    forget(announces(lake, 4)[0])
    lose(lake)

    lake.pipeline().restore_ledger()
    load(lake.pipeline())
    publish(lake.pipeline())

    check_ends_well(lake, ids)


def test_number_of_a_window_that_was_given_back_is_no_hole(lake: SmallLake) -> None:
    ids = [take_in(lake, {1: 1, 2: 1})[0]]
    pipeline = lake.pipeline()
    ids += lake.commit({1: 1, 2: 1})[:1]
    draft = pipeline._loader._taker.take(Run("dropped", "cli"), NOW).windows[0]
    assert pipeline.ledger.windows.give_back(draft.window.sequence, draft.attempt)
    load(pipeline)
    publish(pipeline)
    assert [item.window.sequence for item in pipeline.ledger.windows.all()] == [1, 3]
    lose(lake)

    lake.pipeline().restore_ledger()

    check_ends_well(lake, ids)


@pytest.mark.on_disk
def test_plan_in_effect_whose_announce_is_lost_is_not_replaced_by_the_one_before(
    lake: SmallLake, ids: list[int]
) -> None:
    replay(lake.pipeline(**NARROW), 1)
    newest = max(announces(lake, 1), key=lambda path: path.stat().st_mtime_ns)
    shutil.rmtree(newest.parent)

    said = refusal(lake)

    assert said.values["path"].startswith(str(newest.parent))
    replay(lake.pipeline(**NARROW), 1)
    lake.pipeline(**NARROW).restore_ledger()
    publish(lake.pipeline(**NARROW))
    assert lake.ids()[FIRST] == ids[1:]


@pytest.mark.parametrize("lost", [False, True], ids=["ledger in use", "lost ledger"])
@pytest.mark.parametrize("published", [False, True], ids=["pending", "published"])
@pytest.mark.parametrize("name", ["sealed.json", "plan.json"])
def test_announce_or_plan_that_was_replaced_since_is_not_wanted(
    lake: SmallLake, ids: list[int], name: str, published: bool, lost: bool
) -> None:
    (old,) = announces(lake, 1)
    replay(lake.pipeline(**NARROW), 1)
    if published:
        publish(lake.pipeline(**NARROW))
    old.with_name(name).unlink()
    if lost:
        lose(lake)

    lake.pipeline().restore_ledger()

    publish(lake.pipeline())
    assert list(lake.pipeline().findings()) == []
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids[1:]


@pytest.mark.follows("StateFileLost")
def test_work_directory_of_last_week_is_filled_up_again(lake: SmallLake) -> None:
    ids = take_in(lake, {1: 2, 2: 1})[:2]
    shutil.copytree(lake.work, lake.root / "last-week")
    ids += take_in(lake, {1: 2, 2: 1})[:2]
    ids += lake.commit({1: 1, 3: 1})[:1]
    load(lake.pipeline())
    shutil.rmtree(lake.work)
    shutil.copytree(lake.root / "last-week", lake.work)
    ids += lake.commit({1: 1, 4: 1})[:1]
    load(lake.pipeline())
    # The newest commit plan of the first day is lost as well: this is what its message says.
    (lake.target / FIRST / "_SUCCESS").unlink()

    for sequence in (3, 2):
        said = refusal(lake)
        assert f"tidegate replay orders {sequence}`" in str(said)
        replay(lake.pipeline(), sequence)
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    check_ends_well(lake, ids)


@pytest.mark.on_disk
@pytest.mark.follows("StateFileLost")
def test_ledger_of_a_backup_does_not_send_to_a_replay_that_it_refuses(
    lake: SmallLake, ids: list[int]
) -> None:
    backup = save(lake)
    ids += take_in(lake, {1: 1, 2: 1})[:1]
    put_back(lake, backup)
    forget(announces(lake, 2)[0])

    said = refusal(lake)

    with pytest.raises(TidegateError, match="fsck orders --rebuild"):
        replay(lake.pipeline(), 2)
    # The reset would refuse a ledger that is behind, as long as the directory is of this ledger.
    assert f"move {lake.work}/owner.json away" in str(said)
    (lake.work / "owner.json").rename(lake.root / "away.json")
    follow(lake, str(said).replace("--drop-target", "--drop-target --yes"))
    load(lake.pipeline())
    publish(lake.pipeline())
    check_ends_well(lake, ids)


@pytest.mark.parametrize("published", [False, True], ids=["pending", "published"])
def test_announce_that_a_changed_pipeline_writes_again_is_restored(
    lake: SmallLake, ids: list[int], published: bool
) -> None:
    forget(announces(lake, 1)[0])
    lake.keys = NARROW
    follow(lake, str(refusal(lake)))
    if published:
        publish(lake.pipeline())
    lose(lake)

    lake.pipeline().restore_ledger()

    publish(lake.pipeline())
    check_ends_well(lake, ids[1:])


@pytest.mark.parametrize("lost", [False, True], ids=["ledger in use", "lost ledger"])
def test_window_in_the_middle_that_was_announced_again_keeps_its_place(
    lake: SmallLake, ids: list[int], lost: bool
) -> None:
    unlink(announces(lake, 2)[0])
    replay(lake.pipeline(), 2)
    before = ledger_content(lake.root)
    if lost:
        lose(lake)

    for _ in range(2):
        lake.pipeline().restore_ledger()

    look_again(lake.pipeline(), NOW)
    after = ledger_content(lake.root)
    for table in ("window", "contribution", "revision", "publication"):
        assert after[table] == before[table], table
    state = lake.pipeline().ledger.pipeline.get()
    newest = lake.pipeline().ledger.windows.get(3)
    assert state.next_sequence == 4
    assert state.checkpoint == newest.window.range.end_inclusive
    check_ends_well(lake, ids)
