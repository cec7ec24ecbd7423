"""A target or work directory that was moved is followed, or refused with a way that works."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, load, local, publish, published_ids, stamps
from tidegate.cli.app import app
from tidegate.config import OWNER_FILE
from tidegate.errors import LedgerLost, PipelineChanged, TargetGone, WorkGone, WorkOwned, WorkUnfit
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.on_disk

FIRST = "dt=2026-02-01"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """A lake with a published day, and another window that is only loaded."""
    made = SmallLake(tmp_path / "lake")
    made.commit({1: 3, 9: 1})
    pipeline = made.pipeline()
    load(pipeline)
    publish(pipeline)
    made.commit({1: 2})
    load(pipeline)
    return made


def moved(lake: SmallLake, *parts: str) -> dict[str, Any]:
    """Move the target, the work directory or both; return the keys of the pipeline file."""
    elsewhere = lake.root / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    places = {"path": lake.target, "work": lake.work}
    for part in parts:
        places[part] = places[part].rename(elsewhere / places[part].name)
    return {"target": {part: str(place) for part, place in places.items()}}


@pytest.mark.parametrize("first", ["load", "publish"])
@pytest.mark.parametrize("parts", [("path", "work"), ("path",), ("work",)], ids="+".join)
def test_pipeline_goes_on_where_its_directories_are_now(
    lake: SmallLake, parts: tuple[str, ...], first: str
) -> None:
    keys = moved(lake, *parts)
    pipeline = lake.pipeline(**keys)
    ids = [1, 2, 3, 5, 6]
    if first == "load":
        ids += lake.commit({1: 1})
        load(pipeline)

    publish(pipeline)

    assert published_ids(lake.root / keys["target"]["path"]) == {FIRST: ids}
    assert list(pipeline.findings()) == []
    assert pipeline.stored_plan(1)[0].window.sequence == 1
    report = pipeline.status(NOW)
    assert report is not None
    assert report.notes == ()


@pytest.mark.follows("WorkGone")
@pytest.mark.follows("TargetGone")
@pytest.mark.parametrize("parts", [("path", "work"), ("path",), ("work",)], ids="+".join)
def test_place_that_was_left_says_where_to_write_the_new_one(
    lake: SmallLake, parts: tuple[str, ...]
) -> None:
    keys = moved(lake, *parts)

    with pytest.raises((WorkGone, TargetGone), match=r"moved, write its new path .*`target\."):
        load(lake.pipeline())

    publish(lake.pipeline(**keys))
    assert published_ids(lake.root / keys["target"].get("path", lake.target)) == {
        FIRST: [1, 2, 3, 5, 6]
    }


def test_window_that_was_open_is_finished_where_it_is_now(lake: SmallLake) -> None:
    ids = lake.commit({1: 1})
    begun = lake.pipeline()
    begun.plan(Run("same", "cli"), NOW)
    pipeline = lake.pipeline(**moved(lake, "path", "work"))

    pipeline.finish_load(pipeline.plan(Run("same", "cli"), NOW), NOW, local)
    publish(pipeline)

    assert published_ids(lake.root / "elsewhere" / "orders") == {FIRST: [1, 2, 3, 5, 6, *ids]}


def test_window_is_replayed_after_the_move_without_a_change(lake: SmallLake) -> None:
    keys = moved(lake, "path", "work")
    pipeline = lake.pipeline(**keys)
    publish(pipeline)

    again = pipeline.replay(1, Run("again", "cli"), NOW)

    assert [item.pending for item in again] == [0]


@pytest.mark.follows("WorkUnfit")
@pytest.mark.parametrize("work", ["usual", "other"])
def test_target_that_was_moved_alone_names_the_work_directory_that_it_left(
    lake: SmallLake, work: str
) -> None:
    keys = {"target": {"path": moved(lake, "path")["target"]["path"]}}
    if work == "other":
        keys["target"]["work"] = str(lake.root / "elsewhere" / ".other")

    with pytest.raises(WorkUnfit) as refused:
        load(lake.pipeline(**keys))
    assert refused.value.fits == str(lake.work)

    keys["target"]["work"] = refused.value.fits
    publish(lake.pipeline(**keys))
    assert published_ids(lake.root / "elsewhere" / "orders") == {FIRST: [1, 2, 3, 5, 6]}


def test_target_that_is_moved_back_is_followed_back(lake: SmallLake) -> None:
    keys = moved(lake, "path", "work")
    publish(lake.pipeline(**keys))
    (lake.root / "elsewhere" / "orders").rename(lake.target)
    (lake.root / "elsewhere" / lake.work.name).rename(lake.work)

    ids = lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.ids() == {FIRST: [1, 2, 3, 5, 6, *ids]}


@pytest.mark.parametrize("parts", [("path", "work"), ("path",), ("work",)], ids="+".join)
@pytest.mark.parametrize("step", [load, publish], ids=["load", "publish"])
def test_copy_beside_the_original_is_refused(
    lake: SmallLake, parts: tuple[str, ...], step: Callable[[Pipeline], object]
) -> None:
    places = {"path": lake.target, "work": lake.work}
    for part in parts:
        copied = lake.root / "elsewhere" / places[part].name
        shutil.copytree(places[part], copied)
        places[part] = copied
    keys = {"target": {part: str(place) for part, place in places.items()}}

    with pytest.raises((PipelineChanged, WorkUnfit)):
        step(lake.pipeline(**keys))

    publish(lake.pipeline())
    assert lake.ids() == {FIRST: [1, 2, 3, 5, 6]}


@pytest.mark.parametrize("step", [load, publish], ids=["load", "publish"])
def test_move_is_not_followed_into_the_work_directory_of_another_pipeline(
    lake: SmallLake, step: Callable[[Pipeline], object]
) -> None:
    other = lake.pipeline(name="other", target={"path": str(lake.root / "other")})
    load(other)
    keys = moved(lake, "path")
    own = str(lake.work.rename(lake.root / ".own"))
    keys["target"]["work"] = other.roots.work
    before = [stamps(Path(place)) for place in (other.roots.work, keys["target"]["path"])]

    with pytest.raises((WorkUnfit, WorkOwned)):
        step(lake.pipeline(**keys))

    assert before == [stamps(Path(place)) for place in (other.roots.work, keys["target"]["path"])]
    keys["target"]["work"] = own
    publish(lake.pipeline(**keys))
    assert published_ids(lake.root / "elsewhere" / "orders") == {FIRST: [1, 2, 3, 5, 6]}


def test_target_that_is_moved_with_its_work_directory_always_has_an_owner(lake: SmallLake) -> None:
    """Otherwise another pipeline could take it after a kill."""
    keys = moved(lake, "path", "work")
    owner = Path(keys["target"]["path"], OWNER_FILE)
    before = owner.stat()

    lake.pipeline(**keys).adopt(NOW)

    after = owner.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.follows("LedgerLost")
@pytest.mark.parametrize("parts", [("path", "work"), ("path",), ("work",)], ids="+".join)
def test_ledger_that_was_lost_is_restored_from_directories_that_were_moved(
    lake: SmallLake, parts: tuple[str, ...]
) -> None:
    keys = moved(lake, *parts)
    (lake.root / "ledger.db").unlink()
    pipeline = lake.pipeline(**keys)
    with pytest.raises(LedgerLost, match="fsck orders --rebuild"):
        load(pipeline)

    pipeline.restore_ledger()
    publish(pipeline)

    assert published_ids(Path(keys["target"]["path"])) == {FIRST: [1, 2, 3, 5, 6]}
    assert list(pipeline.findings()) == []


def test_work_directory_of_another_table_is_not_taken_for_one_that_was_moved(
    lake: SmallLake,
) -> None:
    keys = moved(lake, "work")
    owner = Path(keys["target"]["work"]) / "owner.json"
    owner.write_text(owner.read_text().replace('"ledger": "', '"ledger": "another '))
    (lake.root / "ledger.db").unlink()

    with pytest.raises(WorkUnfit):
        lake.pipeline(**keys).restore_ledger()


class Killed(BaseException):
    """The process died."""


def test_move_that_was_followed_half_way_is_followed_to_the_end(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = moved(lake, "work")

    def dying(_self: LocalStorage, _path: str) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete", dying)
        with pytest.raises(Killed):
            lake.pipeline(**keys).adopt(NOW)
    publish(lake.pipeline(**keys))

    assert lake.ids() == {FIRST: [1, 2, 3, 5, 6]}
    assert explained(lake.pipeline(**keys)) == 2


def explained(pipeline: Pipeline) -> int:
    return pipeline.explain(day(1), NOW).report.state.revision


def test_target_that_was_moved_before_its_first_window_is_the_pipelines(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.pipeline().adopt(NOW)
    keys = moved(lake, "path", "work")
    lake.commit({1: 1, 9: 1})

    pipeline = open_pipeline(lake.file(**keys), ledger=f"sqlite:///{lake.root}/ledger.db")
    load(pipeline)
    publish(pipeline)

    assert published_ids(lake.root / "elsewhere" / "orders") == {FIRST: [1]}


def test_relative_places_are_those_of_the_pipeline_file(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"target": {"path": "published/orders", "work": f"published/{lake.work.name}"}}
    (lake.root / "elsewhere").mkdir()
    monkeypatch.chdir(lake.root / "elsewhere")

    publish(lake.pipeline(**keys))

    assert lake.ids() == {FIRST: [1, 2, 3, 5, 6]}


@pytest.mark.parametrize("first", ["target", "work", "both"])
def test_check_of_a_moved_pipeline_decides_as_load_does(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    lake.found_by_name(monkeypatch)
    parts = {"target": ("path",), "work": ("work",), "both": ("path", "work")}
    keys = moved(lake, *parts[first])
    before = _state(lake)

    assert _checked(lake, keys)["outcome"] == "ok"
    assert "moved: the next load or publish goes on there" in _checked(lake, keys)["found"]
    told = (
        f"{keys['target']['path']}: target or work directory were moved to where the pipeline "
        "file says. The next load or publish goes on there; run `tidegate publish orders`."
    )
    assert list(lake.pipeline(**keys).findings()) == [told]
    report = lake.pipeline(**keys).status(NOW)
    assert report is not None
    assert told in report.notes
    assert not any("Set `target.work`" in note for note in report.notes)
    assert _state(lake) == before

    publish(lake.pipeline(**keys))
    assert "moved:" not in _checked(lake, keys)["found"]


def test_check_refuses_a_target_that_was_moved_without_its_work_directory(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    keys: dict[str, Any] = {"target": {"path": moved(lake, "path")["target"]["path"]}}

    found = _checked(lake, keys)
    remedy = f"Set `target.work` to {lake.work}."
    assert (found["outcome"], found["remedy"]) == ("problem", remedy)

    keys["target"]["work"] = str(lake.work)
    assert _checked(lake, keys)["outcome"] == "ok"


def _checked(lake: SmallLake, keys: dict[str, Any]) -> dict[str, str]:
    """Return the line of `check` about the target."""
    file = lake.file(**keys)
    found = CliRunner().invoke(app, ["check", str(file), "--json"], catch_exceptions=False)
    lines = json.loads(found.stdout)["lines"]
    return next(line for line in lines if line["subject"] == "orders: target")


def _state(lake: SmallLake) -> dict[str, bytes]:
    places = (lake.root / "elsewhere", lake.target, lake.work)
    return {
        str(path): path.read_bytes()
        for place in places
        for path in place.rglob("*")
        if path.is_file()
    }


# ── The first command after a move is none that loads or publishes ──


def moved_apart(lake: SmallLake) -> dict[str, Any]:
    """Move target and work directory to where the way from one to the other is a new one."""
    keys = moved(lake, "path", "work")
    work = lake.root / "beside" / "work"
    work.parent.mkdir()
    keys["target"]["work"] = str(Path(keys["target"]["work"]).rename(work))
    return keys


def tidegate(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return done.exit_code, " ".join(done.output.split())


MOVES = pytest.mark.parametrize(
    "move", [moved_apart, lambda lake: moved(lake, "path"), lambda lake: moved(lake, "work")]
)


@MOVES
def test_moved_pipeline_is_retired_where_it_is_now(
    lake: SmallLake,
    monkeypatch: pytest.MonkeyPatch,
    move: Callable[[SmallLake], dict[str, Any]],
) -> None:
    lake.found_by_name(monkeypatch)
    keys = move(lake)
    lake.file(**keys)

    code, told = tidegate("retire", "orders", "--yes")

    target = Path(keys["target"]["path"])
    assert (code, "3 rows" in told) == (0, True)
    assert (target / ".tidegate-retired-orders.record").exists()
    assert not (target / OWNER_FILE).exists()
    assert not (Path(keys["target"]["work"]) / "owner.json").exists()
    assert published_ids(target) == {FIRST: [1, 2, 3]}
    # The successor may have both places.
    lake.file("next", name="next", source={"start": "latest"}, **keys)
    tidegate("load", "next")
    more = lake.commit({2: 1, 9: 1})[:1]
    assert tidegate("load", "next")[0] == 0
    assert tidegate("publish", "next")[0] == 0
    assert published_ids(target)["dt=2026-02-02"] == more
    assert tidegate("fsck", "next")[0] == 0


@MOVES
def test_moved_pipeline_is_reset_where_it_is_now(
    lake: SmallLake,
    monkeypatch: pytest.MonkeyPatch,
    move: Callable[[SmallLake], dict[str, Any]],
) -> None:
    lake.found_by_name(monkeypatch)
    keys = move(lake)
    lake.file(**keys)

    code, told = tidegate("reset", "orders", "--drop-target", "--yes")

    target = Path(keys["target"]["path"])
    assert (code, "with 3 rows (2 files" in told) == (0, True)
    assert published_ids(target) == {}
    assert not list(target.rglob("*.parquet"))
    assert tidegate("load", "orders")[0] == 0
    assert tidegate("publish", "orders")[0] == 0
    assert published_ids(target) == {FIRST: [1, 2, 3, 5, 6]}
    assert tidegate("fsck", "orders")[0] == 0


@pytest.mark.follows("PlacesMoved")
@pytest.mark.parametrize("asked", ["gc orders", "fsck orders --rebuild", "plan orders --dry-run"])
def test_other_commands_say_how_to_go_on_after_a_move(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    lake.found_by_name(monkeypatch)
    keys = moved_apart(lake)
    lake.file(**keys)

    code, told = tidegate(*asked.split())

    assert (code, "run `tidegate publish orders`" in told) == (1, True)
    assert tidegate("publish", "orders")[0] == 0
    assert published_ids(Path(keys["target"]["path"])) == {FIRST: [1, 2, 3, 5, 6]}
    assert tidegate(*asked.split())[0] in {0, 3}


def test_check_takes_a_move_for_what_the_next_load_follows(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    keys = moved_apart(lake)
    lake.file(**keys)

    code, told = tidegate("check", "orders")

    assert (code, "moved: the next load or publish goes on there" in told) == (0, True)
    assert "✓ orders: load" in told
    assert "were moved" not in told
    assert tidegate("load", "orders")[0] in {0, 3}


@pytest.mark.follows("WorkUnfit")
@pytest.mark.parametrize("asked", ["retire", "reset --drop-target"])
def test_target_moved_alone_is_not_dropped_without_its_work_directory(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    lake.found_by_name(monkeypatch)
    path = moved(lake, "path")["target"]["path"]
    lake.file(target={"path": path})

    code, told = tidegate(*asked.split(), "orders", "--yes")

    assert (code, f"Set `target.work` to {lake.work}." in told) == (1, True)
    assert not lake.target.exists()
    lake.file(target={"path": path, "work": str(lake.work)})
    assert tidegate("publish", "orders")[0] == 0
    assert published_ids(Path(path)) == {FIRST: [1, 2, 3, 5, 6]}


@pytest.mark.follows("TargetGone")
def test_pipeline_whose_target_is_not_there_is_not_retired(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a volume is not mounted."""
    lake.found_by_name(monkeypatch)
    lake.file()
    away = lake.target.rename(lake.root / "away")

    code, told = tidegate("retire", "orders", "--yes")

    assert (code, "If it lies on a volume that is not mounted, mount it" in told) == (1, True)
    assert not lake.target.exists()
    away.rename(lake.target)
    publish(lake.pipeline())
    assert lake.ids() == {FIRST: [1, 2, 3, 5, 6]}
