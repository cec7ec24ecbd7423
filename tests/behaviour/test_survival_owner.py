"""One target has one pipeline, one ledger, one work directory, whatever path leads to them."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from kept_lakes import KeptLake
from small_lake import NOW, SmallLake, day, load, publish, published_ids, stamps, stand_as_before
from tidegate.cli.app import app
from tidegate.cli.output import FAILED
from tidegate.errors import (
    LedgerLost,
    OwnerInvalid,
    PlaceOwned,
    TargetAround,
    TargetGone,
    TargetOwned,
    TidegateError,
    WorkGone,
    WorkOwned,
    WorkUnfit,
)
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OWNER = ".tidegate.owner"


def published(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 2, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> KeptLake[None]:
    return KeptLake(tmp_path_factory.mktemp("owned"), published)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 3, 2: 2, 3: 1})
    return lake


@pytest.fixture
def owned(kept: KeptLake[None]) -> SmallLake:
    """A lake whose pipeline `orders` has published."""
    return kept.again()


def as_the_version_before(lake: SmallLake) -> None:
    """Leave the target as it was published before targets said whose they are."""
    (lake.target / OWNER).unlink()


def second(lake: SmallLake, ledger: str = "ledger.db", **target: str) -> Pipeline:
    """Open a pipeline of another name over the same source."""
    path = lake.file("second", name="second", target=target)
    return open_pipeline(path, ledger=f"sqlite:///{lake.root}/{ledger}")


def rows_listed(lake: SmallLake) -> list[int]:
    """Read the ids as a reader does who lists files and looks at no marker."""
    return sorted(row for ids in lake.listed_ids().values() for row in ids)


def link(lake: SmallLake) -> str:
    path = lake.root / "link"
    path.symlink_to(lake.target)
    return str(path)


def link_above(lake: SmallLake) -> str:
    path = lake.root / "lake_link"
    path.symlink_to(lake.target.parent)
    return str(path / lake.target.name)


WAYS: dict[str, Callable[[SmallLake], str]] = {
    "same path": lambda lake: str(lake.target),
    "link": link,
    "link above": link_above,
}


@pytest.mark.follows("TargetOwned")
@pytest.mark.parametrize("before", [False, True], ids=["this version", "version before"])
@pytest.mark.parametrize(
    ("way", "work", "ledger"),
    [
        pytest.param("same path", False, "ledger.db", id="same path and ledger"),
        pytest.param("same path", True, "other.db", id="other work and ledger"),
        pytest.param("link", False, "ledger.db", id="link with the same ledger"),
        pytest.param("link", True, "other.db", id="link with all else its own"),
        pytest.param("link above", True, "ledger.db", id="link above with other work"),
    ],
)
def test_second_pipeline_is_refused_whatever_way_it_comes(
    owned: SmallLake, way: str, work: bool, ledger: str, before: bool
) -> None:
    rows = rows_listed(owned)
    if before:
        as_the_version_before(owned)
    place = {"work": str(owned.root / "published" / ".second")} if work else {}
    other = second(owned, ledger, path=WAYS[way](owned), **place)
    before_files = stamps(owned.root / "published")

    for _ in range(2):
        with pytest.raises(TargetOwned, match="'orders', not to 'second'"):
            load(other)
        if not before:
            with pytest.raises(TargetOwned):
                list(other.publish_all("cli", NOW))

    assert stamps(owned.root / "published") == before_files
    assert rows_listed(owned) == rows
    assert other.ledger.pipeline.find() is None

    # What the message says to do.
    elsewhere = second(owned, ledger, path=str(owned.root / "published" / "second"))
    load(elsewhere)
    publish(elsewhere)
    assert published_ids(owned.root / "published" / "second") == owned.ids()


def test_second_pipeline_that_was_let_in_before_is_stopped_by_its_next_publish(
    owned: SmallLake,
) -> None:
    """The version before accepted it through a link; what it staged must not come out."""
    other = second(owned, "other.db", path=str(owned.root / "published" / "second"))
    load(other)
    shutil.rmtree(owned.root / "published" / "second")
    (owned.root / "published" / "second").symlink_to(owned.target)
    before = stamps(owned.target)

    with pytest.raises(TargetOwned):
        list(other.publish_all("cli", NOW))
    with pytest.raises(TargetOwned):
        other.publish(other.ledger.partitions.all()[0].partition, "cli", NOW)
    with pytest.raises(TargetOwned):
        other.garbage(NOW, NOW - NOW)
    assert any("belongs to pipeline 'orders'" in found for found in other.findings())

    assert stamps(owned.target) == before


@pytest.mark.follows("TargetAround")
@pytest.mark.parametrize("published", [False, True], ids=["without markers", "with markers"])
def test_target_above_the_target_of_another_pipeline_is_refused(
    lake: SmallLake, *, published: bool
) -> None:
    load(lake.pipeline())
    if published:
        publish(lake.pipeline())
    above = second(lake, path=str(lake.target.parent), work=str(lake.root / "second-work"))

    with pytest.raises(TargetAround, match="belongs to pipeline 'orders'") as refused:
        load(above)
    assert refused.value.below == str(lake.target)
    assert "set `name` back" not in str(refused.value)
    assert not (lake.root / "second-work").exists()

    lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert rows_listed(lake) == [1, 2, 3, 4, 5, 7]
    # What the message says to do.
    elsewhere = second(lake, path=str(lake.root / "second"))
    load(elsewhere)
    publish(elsewhere)
    assert published_ids(lake.root / "second") == lake.ids()


@pytest.mark.parametrize("ledger", ["ledger.db", "other.db"])
def test_target_below_the_target_of_another_pipeline_is_refused(
    owned: SmallLake, ledger: str
) -> None:
    nested = second(owned, ledger, path=str(owned.target / "nested"))

    with pytest.raises(TargetOwned, match="belongs to pipeline 'orders'"):
        load(nested)

    published = [row for ids in owned.ids().values() for row in ids]
    assert rows_listed(owned) == sorted(published)


@pytest.mark.on_disk
@pytest.mark.parametrize("way", ["link", "link above"])
@pytest.mark.parametrize("before", [False, True], ids=["this version", "version before"])
def test_same_pipeline_through_a_link_goes_on(owned: SmallLake, way: str, before: bool) -> None:
    if before:
        as_the_version_before(owned)
    works = owned.root / "works"
    works.symlink_to(owned.work)
    owned.keys = {"target": {"path": WAYS[way](owned), "work": str(works)}}
    ids = owned.commit({1: 2})

    load(owned.pipeline())
    publish(owned.pipeline())

    assert owned.ids()["dt=2026-02-01"] == sorted([1, 2, 3, *ids])
    assert json.loads((owned.target / OWNER).read_bytes())["pipeline"] == "orders"


def test_target_and_work_directory_moved_together_stay_the_pipelines(owned: SmallLake) -> None:
    """As another mount point in a container does."""
    (owned.root / "published").rename(owned.root / "moved")
    (owned.root / "published").symlink_to(owned.root / "moved")
    owned.commit({1: 1})

    load(owned.pipeline())
    publish(owned.pipeline())

    assert sum(len(ids) for ids in owned.ids().values()) == 6


@pytest.mark.on_disk
@pytest.mark.follows("WorkUnfit")
@pytest.mark.parametrize("before", [False, True], ids=["this version", "version before"])
def test_work_directory_that_does_not_fit_is_refused_and_the_fitting_one_named(
    owned: SmallLake, before: bool
) -> None:
    if before:
        as_the_version_before(owned)
    owned.commit({1: 1})
    other = str(owned.root / "published" / ".other")

    with pytest.raises(WorkUnfit) as refused:
        load(owned.pipeline(target={"work": other}))
    assert not (owned.root / "published" / ".other").exists()
    assert str(owned.work) == refused.value.fits

    # What the message says to do.
    fitting = {"target": {"work": refused.value.fits}}
    load(owned.pipeline(**fitting))
    publish(owned.pipeline(**fitting))
    assert sum(len(ids) for ids in owned.ids().values()) == 6


@pytest.mark.follows("WorkOwned")
def test_work_directory_of_another_pipeline_is_refused(owned: SmallLake) -> None:
    target = str(owned.root / "published" / "second")
    other = second(owned, path=target, work=str(owned.work))
    before = stamps(owned.work)

    with pytest.raises(WorkOwned, match="of pipeline 'orders', not of 'second'"):
        load(other)
    with pytest.raises(WorkOwned):
        other.garbage(NOW, NOW - NOW)

    assert stamps(owned.work) == before
    # What the message says to do.
    again = second(owned, path=target, work=str(owned.root / "published" / ".second"))
    load(again)


INSIDE = {
    "work is a table": ("work", lambda lake: lake.target),
    "work in a table": ("work", lambda lake: lake.target / "w"),
    "work in a table, by a link": ("work", lambda lake: Path(link(lake)) / "deep" / "w"),
    "work in a work directory": ("work", lambda lake: lake.work / "w"),
    "target is a work directory": ("path", lambda lake: lake.work),
    "target in a work directory": ("path", lambda lake: lake.work / "windows" / "t"),
}


@pytest.mark.follows("PlaceOwned")
@pytest.mark.parametrize("inside", INSIDE)
def test_place_inside_a_directory_of_another_pipeline_is_refused(
    owned: SmallLake, inside: str
) -> None:
    key, place_in = INSIDE[inside]
    published = owned.root / "published"
    usual = {"path": str(published / "second"), "work": str(published / ".second")}
    other = second(owned, "other.db", **{**usual, key: str(place_in(owned))})
    before = stamps(published)

    for _ in range(2):
        with pytest.raises(PlaceOwned, match="of pipeline 'orders', not of 'second'"):
            load(other)

    assert stamps(published) == before
    assert other.ledger.pipeline.find() is None
    # What the message says to do.
    load(second(owned, "other.db", **usual))
    publish(second(owned, "other.db", **usual))
    assert published_ids(published / "second") == owned.ids()
    assert list(owned.pipeline().findings()) == []


@pytest.mark.follows("PlaceOwned")
def test_place_in_use_inside_a_directory_of_another_pipeline_is_moved_out(lake: SmallLake) -> None:
    """A version before accepted it."""
    published = lake.root / "published"
    path, inside, outside = published / "second", lake.target / "w", published / ".second"
    published.mkdir()
    other = second(lake, path=str(path), work=str(inside))
    load(other)
    publish(other)
    (lake.target / OWNER).write_text('{"format": 1, "pipeline": "orders", "ledger": "L1"}')

    with pytest.raises(PlaceOwned):
        load(other)
    # What the message says to do.
    inside.rename(outside)
    moved = second(lake, path=str(path), work=str(outside))
    lake.commit({1: 1})
    load(moved)
    publish(moved)

    assert sum(map(len, published_ids(path).values())) == 6


@pytest.mark.on_disk
def test_target_around_the_work_directory_of_another_pipeline_is_refused(lake: SmallLake) -> None:
    works = lake.root / "works"
    load(lake.pipeline(target={"work": str(works / "orders")}))

    with pytest.raises(TargetOwned, match="belongs to pipeline 'orders'"):
        load(second(lake, path=str(works)))


def test_file_of_another_that_is_called_owner_is_no_reason_to_refuse(lake: SmallLake) -> None:
    published = lake.root / "published"
    published.mkdir()
    for content in ("not ours", '{"format": 1, "pipeline": "x", "ledger": "y"}'):
        (lake.root / "owner.json").write_text(content)
        load(lake.pipeline())

    publish(lake.pipeline())
    assert sum(map(len, lake.ids().values())) == 5


@pytest.mark.follows("WorkGone", "TargetGone")
@pytest.mark.parametrize("mounted", [True, False], ids=["empty", "not there"])
@pytest.mark.parametrize("what", ["both", "work", "target"])
def test_volume_that_is_not_mounted_is_missed_before_anything_is_written(
    owned: SmallLake, what: str, *, mounted: bool
) -> None:
    owned.commit({1: 1})
    lost = {"both": owned.root / "published", "work": owned.work, "target": owned.target}[what]
    lost.rename(owned.root / "elsewhere")
    if mounted:
        lost.mkdir()
    gone = TargetGone if what == "target" else WorkGone
    steps: list[Callable[[Pipeline], object]] = [
        load,
        lambda pipeline: list(pipeline.publish_all("cli", NOW)),
        lambda pipeline: pipeline.replay(1, Run("again", "cli"), NOW),
        lambda pipeline: pipeline.looking().preview(Run("look", "cli"), NOW),
    ]
    if what != "both":
        steps.append(lambda pipeline: pipeline.restore_ledger())
    for step in steps:
        with pytest.raises(gone):
            step(owned.pipeline())
    assert [path for path in lost.rglob("*") if path.is_file()] == []

    shutil.rmtree(lost, ignore_errors=True)
    (owned.root / "elsewhere").rename(lost)
    load(owned.pipeline())
    publish(owned.pipeline())

    assert rows_listed(owned) == [1, 2, 3, 4, 5, 7]
    assert list(owned.pipeline().findings()) == []


@pytest.mark.parametrize("folder_stands", [False, True])
def test_ledger_is_not_restored_from_nothing_over_a_published_table(
    owned: SmallLake, *, folder_stands: bool
) -> None:
    rows = rows_listed(owned)
    owned.work.rename(owned.root / "elsewhere")
    if folder_stands:
        owned.work.mkdir()
    for path in owned.root.glob("ledger.db*"):
        path.unlink()

    with pytest.raises(WorkGone):
        owned.pipeline().restore_ledger()

    shutil.rmtree(owned.work, ignore_errors=True)
    (owned.root / "elsewhere").rename(owned.work)
    owned.pipeline().restore_ledger()
    load(owned.pipeline())
    publish(owned.pipeline())
    assert rows_listed(owned) == rows


STEPS: dict[str, Callable[[Pipeline], object]] = {
    "load": load,
    "publish": lambda pipeline: list(pipeline.publish_all("cli", NOW)),
}


@pytest.mark.parametrize("lost", ["its file", "the folder"])
def test_ledger_is_restored_where_the_target_was_lost_before_anything_was_published(
    lake: SmallLake, lost: str
) -> None:
    load(lake.pipeline())
    (lake.target / OWNER).unlink()
    if lost == "the folder":
        lake.target.rmdir()
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    with pytest.raises(LedgerLost):
        load(lake.pipeline())

    lake.pipeline().restore_ledger()
    load(lake.pipeline())
    publish(lake.pipeline())

    assert rows_listed(lake) == [1, 2, 3, 4, 5]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
@pytest.mark.parametrize("lost", ["its file", "the folder"])
def test_target_that_was_lost_before_anything_was_published_is_made_anew(
    lake: SmallLake, lost: str, step: Callable[[Pipeline], object]
) -> None:
    load(lake.pipeline())
    (lake.target / OWNER).unlink()
    if lost == "the folder":
        lake.target.rmdir()
    assert list(lake.pipeline().findings()) == []

    step(lake.pipeline())
    with pytest.raises(TargetOwned, match="'orders', not to 'second'"):
        load(second(lake, path=str(lake.target), work=str(lake.root / "published" / ".second")))
    publish(lake.pipeline())

    assert (lake.target / OWNER).exists()
    assert rows_listed(lake) == [1, 2, 3, 4, 5]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_target_that_only_the_work_directory_knows_as_published_is_missed(
    lake: SmallLake, step: Callable[[Pipeline], object]
) -> None:
    load(lake.pipeline())
    shutil.copy(lake.root / "ledger.db", lake.root / "yesterday.db")
    publish(lake.pipeline())
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    (lake.root / "yesterday.db").rename(lake.root / "ledger.db")
    lake.target.rename(lake.root / "elsewhere")

    with pytest.raises(TargetGone):
        step(lake.pipeline())

    assert not lake.target.exists()


@pytest.mark.follows("LedgerLost")
@pytest.mark.parametrize("before", [False, True], ids=["this version", "version before"])
@pytest.mark.parametrize("remedy", ["that ledger", "rebuild"])
def test_new_empty_ledger_on_an_owned_target_is_lost(
    owned: SmallLake, before: bool, remedy: str
) -> None:
    if before:
        as_the_version_before(owned)
    ledger = owned.root / "ledger.db"
    ledger.rename(owned.root / "kept.db")
    files = stamps(owned.root / "published")

    with pytest.raises(LedgerLost, match="fsck orders --rebuild"):
        load(owned.pipeline())
    if not before:
        with pytest.raises(LedgerLost):
            list(owned.pipeline().publish_all("cli", NOW))
        with pytest.raises(LedgerLost):
            owned.pipeline().status(NOW)
    assert stamps(owned.root / "published") == files

    if remedy == "that ledger":
        for path in owned.root.glob("ledger.db*"):
            path.unlink()
        (owned.root / "kept.db").rename(ledger)
    else:
        owned.pipeline().restore_ledger()
    owned.commit({1: 1})
    load(owned.pipeline())
    publish(owned.pipeline())
    assert sum(len(ids) for ids in owned.ids().values()) == 6
    assert rows_listed(owned) == [1, 2, 3, 4, 5, 7]


def typed(line: str, code: int = 0) -> str:
    """Type a command that ends so; what it wrote."""
    result = CliRunner().invoke(app, shlex.split(line), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def ledger_of(file: Path) -> str:
    return str(json.loads(file.read_text())["ledger"])


def printed_commands(text: str) -> list[str]:
    return re.findall(r"`tidegate ([^`]*)`", text)


@pytest.mark.on_disk
@pytest.mark.follows("OwnersDiffer")
@pytest.mark.parametrize("old", ["target", "work"])
@pytest.mark.parametrize("ledger", ["in use", "old", "lost"])
def test_directory_from_before_the_pipeline_began_anew_is_given_up(
    owned: SmallLake, monkeypatch: pytest.MonkeyPatch, old: str, ledger: str
) -> None:
    owned.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "4000")
    place, copy = {"target": owned.target, "work": owned.work}[old], owned.root / "copy"
    shutil.copytree(place, copy)
    (owned.root / "ledger.db").rename(owned.root / "old.db")
    shutil.rmtree(owned.root / "published")
    owned.commit({1: 1, 3: 1})
    load(owned.pipeline())
    publish(owned.pipeline())
    stand_as_before(place, copy)
    if ledger != "in use":
        for path in owned.root.glob("ledger.db*"):
            path.unlink()
    if ledger == "old":
        (owned.root / "old.db").rename(owned.root / "ledger.db")
    before = stamps(owned.target)
    files = (owned.target / OWNER, owned.work / "owner.json")
    names = " and ".join(f"{path} names ledger {ledger_of(path)}" for path in files)
    for line in ("publish orders", "load orders", "fsck orders --rebuild"):
        text = typed(line, FAILED)
        assert names in text.replace(", and ", " and ")
        assert stamps(owned.target) == before

    # What the messages say to do, each until it succeeds.
    found = re.search(r"move (\S+) away", text)
    assert found is not None
    Path(found[1]).rename(owned.root / "away.json")
    (reset,) = printed_commands(text)
    if ledger == "lost":
        (rebuild,) = printed_commands(typed(f"{reset} --yes", FAILED))
        typed(rebuild)
    typed(f"{reset} --yes")
    for line in ("load orders", "publish orders", "fsck orders"):
        typed(line)
    assert rows_listed(owned) == [1, 2, 3, 4, 5, 7]


@pytest.mark.parametrize(
    "line",
    [
        *("status orders", "instants orders", "load orders", "publish orders", "gc orders"),
        *("plan orders", "plan orders --dry-run", "plan orders --window 1", "replay orders 1"),
        *("explain orders dt=2026-02-01", "rebuild orders dt=2026-02-01"),
        *("publish orders dt=2026-02-01", "reopen orders dt=2026-02-01"),
        *("approve orders dt=2026-02-01 --digest x", "reject orders dt=2026-02-01 --digest x"),
        "fsck orders",
    ],
)
def test_command_beside_a_ledger_that_was_lost_says_so(
    owned: SmallLake, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    owned.found_by_name(monkeypatch)
    (owned.root / "ledger.db").unlink()

    result = CliRunner().invoke(app, shlex.split(line))

    assert result.exit_code == FAILED
    assert "published with ledger" in result.output
    assert "`tidegate fsck orders --rebuild`" in result.output


ASKED_IN_AIRFLOW: dict[str, Callable[[Pipeline], object]] = {
    "evaluate": lambda pipeline: pipeline.evaluate(day(1), NOW),
    "gate": lambda pipeline: pipeline.gate(day(1), "x", "cli", NOW),
    "pending": lambda pipeline: pipeline.pending(NOW),
}


@pytest.mark.parametrize("step", ASKED_IN_AIRFLOW.values(), ids=ASKED_IN_AIRFLOW.keys())
def test_step_in_airflow_beside_a_ledger_that_was_lost_says_so(
    owned: SmallLake, step: Callable[[Pipeline], object]
) -> None:
    (owned.root / "ledger.db").unlink()

    with pytest.raises(LedgerLost, match="fsck orders --rebuild"):
        step(owned.pipeline())


@pytest.mark.follows("OwnerInvalid")
@pytest.mark.parametrize("name", ["target", "work"])
@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 2}'], ids=["empty", "list", "later"])
def test_owner_file_that_says_nothing_is_refused_and_written_again(
    owned: SmallLake, name: str, content: bytes
) -> None:
    file = {"target": owned.target / OWNER, "work": owned.work / "owner.json"}[name]
    file.write_bytes(content)
    owned.commit({1: 1})

    with pytest.raises(OwnerInvalid, match=file.name):
        load(owned.pipeline())

    # What the message says to do.
    file.unlink()
    load(owned.pipeline())
    assert json.loads(file.read_bytes())["pipeline"] == "orders"


def test_readers_who_list_files_skip_the_owner_file(owned: SmallLake) -> None:
    import polars as pl

    target = str(owned.target)

    by_arrow = ds.dataset(target, format="parquet", partitioning="hive").to_table()
    by_polars = pl.scan_parquet(f"{target}/**/*.parquet").collect()

    assert (owned.target / OWNER).exists()
    assert sorted(by_arrow["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert sorted(by_polars["id"].to_list()) == [1, 2, 3, 4, 5]


def test_fsck_and_gc_know_the_owner_file(owned: SmallLake) -> None:
    assert list(owned.pipeline().findings()) == []

    pipeline = owned.pipeline()
    pipeline.sweep(pipeline.garbage(NOW.replace(year=2036), NOW - NOW))

    assert (owned.target / OWNER).exists()


@pytest.mark.on_disk
def test_no_temporary_file_ever_lies_in_the_target(lake: SmallLake) -> None:
    seen: list[set[str]] = []

    class Watching(LocalStorage):
        def write_once(
            self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
        ) -> bool:
            if path.endswith(OWNER):
                seen.append({scratch or "the target"})
            return super().write_once(path, content, scratch)

    load(lake.pipeline(Watching()))

    assert seen == [{str(lake.work / "scratch")}]


@dataclass(frozen=True)
class Meeting(LocalStorage):
    """Waits for the other one before it puts the target's file."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2), hash=False)

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Write as all do, together."""
        if path.endswith(OWNER):
            with contextlib.suppress(threading.BrokenBarrierError):
                self.barrier.wait(20)
        return super().write_once(path, content, scratch)


@pytest.mark.on_disk
@pytest.mark.parametrize("ledger", ["ledger.db", "other.db"], ids=["same ledger", "other ledger"])
def test_of_two_that_adopt_at_once_one_wins_and_the_other_is_free_to_go(
    lake: SmallLake, ledger: str
) -> None:
    storage = Meeting()
    first = lake.pipeline(storage)
    file = lake.file("second", name="second", target={"path": link(lake)})
    (lake.root / "published").mkdir(exist_ok=True)
    lake.target.mkdir()
    other = open_pipeline(file, ledger=f"sqlite:///{lake.root}/{ledger}", storage=storage)
    refused: dict[str, TidegateError] = {}

    def adopt(pipeline: Pipeline) -> None:
        try:
            pipeline.adopt(NOW)
        except TidegateError as error:
            refused[pipeline.config.name] = error
            storage.barrier.abort()

    threads = [threading.Thread(target=adopt, args=(item,)) for item in (first, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    said = json.loads((lake.target / OWNER).read_bytes())["pipeline"]
    (loser,) = refused
    assert {said, loser} == {"orders", "second"}
    assert isinstance(refused[loser], TargetOwned)
    pipelines: dict[str, Pipeline] = {"orders": first, "second": other}
    assert pipelines[loser].ledger.pipeline.find() is None
    winner = pipelines[said]
    winner.adopt(NOW)
    assert winner.ledger.pipeline.find() is not None


@pytest.mark.parametrize("changed", [False, True], ids=["same file", "another target"])
def test_pipeline_that_died_between_registering_and_losing_is_free_to_go(
    owned: SmallLake, changed: bool
) -> None:
    other = second(owned, "other.db", path=str(owned.target))
    other.ledger.pipeline.register(other.config.identity(), str(owned.target), NOW)

    if not changed:
        with pytest.raises(TargetOwned):
            load(other)
    free = second(owned, "other.db", path=str(owned.root / "published" / "second"))
    load(free)
    publish(free)

    assert published_ids(owned.root / "published" / "second") == owned.ids()


@pytest.mark.parametrize("file", [OWNER, "owner.json"])
def test_pipeline_that_died_before_it_put_a_file_goes_on(lake: SmallLake, file: str) -> None:
    class Dying(LocalStorage):
        def write_once(
            self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
        ) -> bool:
            if path.endswith(f"/{file}"):
                raise KeyboardInterrupt
            return super().write_once(path, content, scratch)

    with pytest.raises(KeyboardInterrupt):
        load(lake.pipeline(Dying()))
    ledger_id = lake.pipeline().ledger.pipeline.find()

    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.pipeline().ledger.pipeline.find().ledger_id == ledger_id.ledger_id
    assert sum(len(ids) for ids in lake.ids().values()) == 5


def test_ledger_lost_before_the_work_directory_was_marked_is_restored(lake: SmallLake) -> None:
    lake.pipeline().adopt(NOW)
    (lake.work / "owner.json").unlink()
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    with pytest.raises(LedgerLost):
        load(lake.pipeline())

    lake.pipeline().restore_ledger()
    load(lake.pipeline())
    publish(lake.pipeline())

    assert sum(len(ids) for ids in lake.ids().values()) == 5


def test_ledger_restored_from_before_its_pipeline_came_anew_is_lost(lake: SmallLake) -> None:
    """An old copy knows the pipeline by an id that it has no more, and no window of it."""
    lake.pipeline().ledger.pipeline.register({"target.path": "/other"}, "/other", NOW)
    shutil.copy(lake.root / "ledger.db", lake.root / "backup.db")
    load(lake.pipeline())
    publish(lake.pipeline())
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    shutil.copy(lake.root / "backup.db", lake.root / "ledger.db")

    with pytest.raises(LedgerLost):
        load(lake.pipeline())
    lake.pipeline().restore_ledger()
    load(lake.pipeline())

    assert sum(len(ids) for ids in lake.ids().values()) == 5


@pytest.mark.parametrize("place", ["target", "work"])
def test_restore_of_what_is_another_pipelines_is_refused(owned: SmallLake, place: str) -> None:
    published = owned.root / "published"
    usual = {"path": str(published / "second"), "work": str(published / ".second")}
    taken = {"target": {"path": str(owned.target)}, "work": {"work": str(owned.work)}}[place]
    load(second(owned, "other.db", **usual))

    with pytest.raises(TargetOwned if place == "target" else WorkUnfit):
        second(owned, "third.db", **{**usual, **taken}).restore_ledger()


def test_two_targets_of_a_pipeline_whose_variable_changed_are_refused(
    owned: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(owned.root / "one"))
    target = {"path": "${env:PLACE}/orders", "work": "${env:PLACE}/.orders"}
    file = owned.file("third", name="third", target=target)
    ledger = f"sqlite:///{owned.root}/ledger.db"
    (owned.root / "one").mkdir()
    load(open_pipeline(file, ledger=ledger))
    monkeypatch.setenv("PLACE", str(owned.root / "two"))
    (owned.root / "two").mkdir()

    with pytest.raises(WorkUnfit) as refused:
        load(open_pipeline(file, ledger=ledger))

    assert refused.value.fits == str(owned.root / "one" / ".orders")
    assert list((owned.root / "two").iterdir()) == []
