"""Hudi timelines that are not as usual: pending, restored, half written, done out of order."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden_hudi import NOW, Golden, answers, copied, texts
from hudi_writer import PLAIN, START, HudiTable
from small_hudi import Command, HudiLake, typed
from small_lake import load, publish
from tidegate import read_committed
from tidegate.errors import HollowInstant, HudiInstantGone
from tidegate.model.instant import InstantRange
from tidegate.pipeline import open_pipeline
from tidegate.source.hudi.table.avro import first_record
from tidegate.source.hudi.timeline.times import moment_of, order_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tidegate.pipeline import Pipeline

HOLLOW = ["v6_cow_inflight_left", "v6_mor_inflight_left"]
HOUR = timedelta(hours=1)
SOURCE = {"read": {"mode": "complete", "keys_repeat": True}}


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


def pending_of(case: str) -> str:
    (found,) = (it for it in answers(case)["timeline"] if it["state"] != "completed")
    return str(found["requested"])


def made(key: str) -> dict[str, Any]:
    return {"k": key, "ts": 1, "v": "1"}


def taken(table: HudiTable, root: Path, mode: str, until: datetime | None = None) -> Pipeline:
    """Load and publish the table as it is now."""
    repeats = {"keys_repeat": True} if mode == "complete" else {}
    raw = {
        "name": "trips",
        "source": {"kind": "hudi", "path": str(table.root), "read": {"mode": mode, **repeats}},
        "target": {"path": str(root / "published"), "partition_by": {"p": "k"}},
        "commit": {"trigger": "process-time"},
    }
    file = root / "trips.yaml"
    file.write_text(json.dumps(raw))
    pipeline = open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")
    load(pipeline, now=START + 12 * HOUR, until=until)
    publish(pipeline, now=START + 12 * HOUR)
    return pipeline


def published_keys(root: Path) -> list[str]:
    """The keys that a reader of markers sees."""
    found = read_committed(str(root / "published")).to_table().to_pylist()
    return sorted(it["p"] for it in found)


def taken_by(lake: HudiLake, **keys: Any) -> Counter[str]:
    """How often each write was taken in, by its requested time."""
    pipeline = lake.pipeline(**keys)
    timeline, pin = pipeline.source.timeline, pipeline.source.timeline.pin(NOW)
    found: Counter[str] = Counter()
    for state in pipeline.ledger.windows.all():
        window = state.window.range
        after = timeline.instants(timeline.at(pin, window.end_inclusive), window.start_exclusive)
        found.update(order_of(it)[1] for it in after)
    return found


# ── Hollow instants (HUDI-W5) ──


@pytest.mark.parametrize("case", HOLLOW)
def test_write_that_stays_pending_is_named_wherever_its_pipeline_is_looked_at(
    case: str, tmp_path: Path, tidegate: Command
) -> None:
    lake, pending = HudiLake(case, tmp_path), pending_of(case)
    lake.file(source={**SOURCE, "start": "earliest"})
    said = f"the write of {pending} has been pending for"

    assert said in tidegate("tidegate plan PIPELINE --dry-run")
    assert said in " ".join(json.loads(tidegate("tidegate load PIPELINE --json"))["notes"])
    assert said in tidegate("tidegate plan PIPELINE --window 1")
    nothing = tidegate("tidegate load PIPELINE", 3)
    assert said in nothing
    assert "CALL run_clean" in nothing
    assert said in tidegate("tidegate instants PIPELINE")
    assert said in tidegate("tidegate explain PIPELINE part_k=b")


@pytest.mark.parametrize("case", HOLLOW)
def test_write_that_was_rolled_back_holds_nothing_back_any_more(case: str, tmp_path: Path) -> None:
    lake, pending = HudiLake(case, tmp_path, by=("k",)), pending_of(case)
    keys = {"source": {**SOURCE, "start": {"from": lake.writes[0]}}}
    lake.take(**keys)

    for path in lake.timeline.glob(f"{pending}.*"):
        path.unlink()
    lake.take(**keys)

    assert lake.pipeline(**keys).source.timeline.pin(NOW).held_back is None
    assert taken_by(lake, **keys) == Counter(lake.writes)


def test_idle_watermark_waits_for_writes_that_a_pending_one_holds_back(tmp_path: Path) -> None:
    at = {"type": "long", "logicalType": "timestamp-micros"}
    columns = {**PLAIN, "at": (at, pa.timestamp("us", "UTC"))}
    table = HudiTable(tmp_path / "table", 6, "COPY_ON_WRITE", columns=columns, ordering="")
    file = tmp_path / "orders.yaml"
    keys = {
        "name": "orders",
        "source": {"kind": "hudi", "path": str(table.root), **SOURCE},
        "event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"},
        "target": {"path": str(tmp_path / "target"), "partition_by": {"dt": "day(at)"}},
    }
    file.write_text(json.dumps(keys))
    pipeline = open_pipeline(file, ledger=f"sqlite:///{tmp_path}/ledger.db")

    def published() -> list[str]:
        files = (tmp_path / "target").rglob("*.parquet")
        return sorted(key for file in files for key in pq.read_table(file)["k"].to_pylist())

    table.insert("g-0", [{"k": "a", "at": START - HOUR}])
    load(pipeline, now=START + HOUR)
    hanging = table.begin()
    hanging.base("g-1", [{"k": "b", "at": START - HOUR}])
    table.insert("g-2", [{"k": "c", "at": START - HOUR}])

    announced = load(pipeline, now=START + 9 * HOUR)
    publish(pipeline, now=START + 9 * HOUR)
    assert (announced.windows, published()) == ((), [])

    hanging.done("INSERT")
    load(pipeline, now=START + 9 * HOUR)
    load(pipeline, now=START + 12 * HOUR)
    publish(pipeline, now=START + 12 * HOUR)
    assert published() == ["a", "b", "c"]
    (partition,) = pipeline.ledger.partitions.all()
    assert partition.revision == 1


def test_write_that_is_done_after_later_ones_is_in_one_window(tmp_path: Path) -> None:
    """Requested before the one that is done first, it is not passed over."""
    lake = HudiLake("v6_cow_occ", tmp_path)
    keys = {"source": {**SOURCE, "start": {"from": lake.writes[0]}}}
    late = next(lake.timeline.glob("20261121122009805.commit"))
    lake.stand_after("20261121122010224")
    aside = shutil.move(late, tmp_path / late.name)
    lake.take(**keys)
    assert taken_by(lake, **keys) == Counter(["20261121122006371"])

    shutil.move(aside, late)
    lake.stand_after(lake.writes[-1])
    lake.take(**keys)

    assert taken_by(lake, **keys) == Counter(lake.writes)


@pytest.mark.parametrize("mode", ["complete", "snapshot"])
@pytest.mark.parametrize(("version", "archived"), [(6, False), (9, False), (9, True)])
def test_write_that_is_done_after_the_checkpoint_is_taken_in_by_the_next_load(
    tmp_path: Path, mode: str, archived: bool, version: int
) -> None:
    table = HudiTable(tmp_path / "table", version, columns=PLAIN)
    first = table.insert("0000-0", [made("a")])
    late = table.begin()
    late.base("0000-1", [made("late")])
    table.insert("0000-2", [made("b")])
    pipeline = taken(table, tmp_path, mode)
    seen = ["a"] if version == 6 else ["a", "b"]
    assert published_keys(tmp_path) == seen

    late.done("INSERT")
    if archived:
        table.insert("0000-3", [made("c")])
        table.archive(first, late.requested)
    taken(table, tmp_path, mode)

    assert published_keys(tmp_path) == ["a", "b", *(["c"] if archived else []), "late"]
    load(pipeline, now=START + 12 * HOUR)
    assert len(pipeline.ledger.windows.all()) == 2


@pytest.mark.parametrize("mode", ["complete", "snapshot"])
def test_run_whose_interval_ends_before_the_head_reads_up_to_its_end(
    tmp_path: Path, mode: str
) -> None:
    """Else a table that is written all the time would never be read."""
    table = HudiTable(tmp_path / "table", 9, columns=PLAIN)
    for number in range(3):
        table.insert(f"0000-{number}", [made(f"a{number}")])
        until = moment_of(table.tick(), ZoneInfo("UTC"))
        table.insert(f"0001-{number}", [made(f"b{number}")])

        taken(table, tmp_path, mode, until=until)

        later = [f"b{it}" for it in range(number)]
        assert published_keys(tmp_path) == [*(f"a{it}" for it in range(number + 1)), *later]


def test_write_at_work_after_all_others_does_not_fail_a_load(tmp_path: Path) -> None:
    lake, pending = HudiLake("v6_cow_inflight_left", tmp_path), pending_of("v6_cow_inflight_left")
    keys = {"source": {**SOURCE, "on_hollow_instant": "fail"}}
    lake.stand_after(pending)

    load(lake.pipeline(**keys), now=NOW)

    lake.stand_after(lake.writes[-1])
    with pytest.raises(HollowInstant, match=f"{pending} has been pending for"):
        load(lake.pipeline(**keys), now=NOW)


@pytest.mark.parametrize(
    "case",
    [f"v6_{name}" for name in ("cow_clustering_pending", "mor_clustering_pending")]
    + ["v6_mor_compaction_pending", "v6_mor_compaction_inflight"],
)
def test_pending_service_does_not_end_windows(case: str) -> None:
    table = Golden(case, "complete")

    assert table.pin.held_back is None
    assert table.pin.head is not None
    assert table.pin.head.id == answers(case)["snapshots"][-1]["as_of"]


@pytest.mark.parametrize("case", ["v6_cow_replace", "v6_mor_replace"])
def test_pending_overwrite_ends_windows_before_it(case: str, tmp_path: Path) -> None:
    table = copied(case, tmp_path)
    done = min((table / ".hoodie").glob("2*.replacecommit"))
    done.unlink()

    pin = Golden(case, "complete", table).pin

    assert pin.head is not None
    assert pin.head.id < done.name[:17]
    assert done.name[:17] in str(pin.held_back)


# ── History that changes (HUDI-T6, T7) ──


@pytest.mark.parametrize("case", ["v6_cow_restore", "v6_mor_restore", "v9_cow_restore"])
def test_checkpoint_that_was_restored_away_stops_the_pipeline(case: str) -> None:
    table = Golden(case, "complete")
    gone = table.writes[-1]
    requested = str(int(order_of(gone)[1]) - 1)
    away = type(gone)(gone.id.replace(order_of(gone)[1], requested), gone.time)

    with pytest.raises(HudiInstantGone, match=requested):
        table.source.timeline.instants(table.pin, away)


@pytest.mark.parametrize("case", ["v6_cow_restore", "v6_mor_restore", "v9_cow_restore"])
def test_checkpoint_before_a_restore_is_continued_with_what_came_after_it(case: str) -> None:
    table = Golden(case, "complete")
    (restore,) = (it for it in answers(case)["timeline"] if it["action"] == "restore")
    before = [it for it in table.writes if order_of(it)[1] < restore["requested"]]

    found = table.source.timeline.instants(table.pin, before[-1])

    assert found
    assert all(order_of(it)[1] > restore["requested"] for it in found)


@pytest.mark.parametrize("case", ["v6_cow_basic", "v6_mor_basic"])
def test_empty_done_file_is_a_write_without_rows(case: str, tmp_path: Path) -> None:
    table = Golden(case, "complete", copied(case, tmp_path))
    first, second, third, *_ = table.writes
    folder = table.source._access.timeline(table.pin).table.timeline_folder
    (done,) = (tmp_path / "table" / folder).glob(f"{second.id}.*commit")
    done.write_bytes(b"")
    table = Golden(case, "complete", tmp_path / "table")

    assert table.source.timeline.instants(table.pin, first)[:2] == (second, third)
    assert table.rows(InstantRange(first, second)) == []


@pytest.mark.parametrize("case", ["v9_mor_basic", "v9_cow_replace"])
def test_metadata_in_json_beside_avro_has_the_same_rows(case: str, tmp_path: Path) -> None:
    """An upgraded table may have both (HUDI-T7)."""
    place = copied(case, tmp_path)
    for done in sorted((place / ".hoodie" / "timeline").glob("*_*.*commit"))[::2]:
        done.write_text(json.dumps(first_record(done.read_bytes())))
    mixed, plain = Golden(case, "complete", place), Golden(case, "complete")

    assert mixed.writes == plain.writes
    for start, end in zip(plain.writes, plain.writes[1:], strict=False):
        window = InstantRange(start, end)
        assert texts(mixed.rows(window)) == texts(plain.rows(window)), str(window)
    assert texts(mixed.rows()) == texts(plain.rows())


@pytest.mark.parametrize("case", ["v9_mor_archived", "v6_cow_archived"])
def test_write_that_a_savepoint_holds_leaves_the_others_archived(case: str, tmp_path: Path) -> None:
    """A hole before the held write is not the start of the timeline (HUDI-T11)."""
    place = copied(case, tmp_path)
    plain = Golden(case, "complete")
    held = order_of(plain.writes[1])
    layout = answers(case)["table"]["timeline_layout"]
    folder = place / ".hoodie" / ("timeline" if layout == 2 else "")
    kind = answers(case)["archived"][1]["action"]
    name = held[1] if layout == 1 else f"{held[1]}_{held[0]}"
    metadata = plain.source._access.timeline(plain.pin).archived[held[1]].content
    content = metadata if isinstance(metadata, bytes) else json.dumps(metadata).encode()
    (folder / f"{name}.{kind}").write_bytes(content)
    (folder / f"{name}.savepoint").write_bytes(b"")
    table = Golden(case, "complete", place)

    assert table.writes == plain.writes
    assert table.source.timeline.instants(table.pin, plain.writes[0]) == plain.writes[1:]
    assert texts(table.rows()) == texts(plain.rows())


# ── Out of order (HUDI-W3) ──


def redone(place: Path, requested: str, completed: str) -> None:
    """Let a write of layout 2 be done at another time."""
    (done,) = (place / ".hoodie" / "timeline").glob(f"{requested}_*commit")
    done.rename(done.with_name(f"{requested}_{completed}.{done.suffix[1:]}"))


NBCC = [f"v{version}_mor_nbcc_{mode}" for version in (8, 9) for mode in ("commit", "event")]


@pytest.mark.parametrize("case", NBCC)
def test_windows_of_one_write_each_bring_a_late_one_of_the_same_key(case: str) -> None:
    """Each window has its writes' keys, and together they end in the head's rows."""
    table = Golden(case, "complete")
    assert [order_of(it)[1] for it in table.writes] != sorted(
        order_of(it)[1] for it in table.writes
    ), "expected a write that was requested earlier and done later"
    first, *_ = table.writes
    rows = {row["k"]: row for row in table.rows(InstantRange(None, first))}

    for start, end in zip(table.writes, table.writes[1:], strict=False):
        rows |= {row["k"]: row for row in table.rows(InstantRange(start, end))}

    assert texts(list(rows.values())) == texts(table.rows())


@pytest.mark.parametrize("case", ["v9_cow_replace", "v9_mor_replace"])
def test_overwrite_that_is_done_after_the_end_is_not_in_its_state(
    case: str, tmp_path: Path
) -> None:
    """Requested before the next write, done after it."""
    place = copied(case, tmp_path)
    plain = Golden(case, "snapshot")
    at = next(
        number
        for number, it in enumerate(plain.writes)
        if plain.source.timeline.describe(plain.pin, [it])[0].operation == "insert_overwrite"
    )
    before, overwrite = plain.writes[at - 1], plain.writes[at]
    last = max(order_of(it)[0] for it in plain.writes)
    redone(place, order_of(overwrite)[1], str(int(last) + 1))
    table = Golden(case, "snapshot", place)
    known = {order_of(it)[1]: it for it in table.writes}

    assert order_of(table.writes[-1])[1] == order_of(overwrite)[1]
    state = InstantRange(None, known[order_of(before)[1]])
    assert texts(table.rows(state)) == texts(plain.rows(InstantRange(None, before)))


# ── What each write changed is told ──


@pytest.mark.parametrize("case", ["v6_cow_basic", "v9_cow_basic", "v9_cow_replace"])
def test_numbers_of_a_write_are_those_of_the_rows_that_it_changed(case: str) -> None:
    """A rewritten file has other rows, too, which are not counted."""
    table = Golden(case, "complete")
    known = {order_of(it)[1]: it for it in table.writes}
    before: set[str] = set()

    for state in answers(case)["snapshots"]:
        instant = known[state["as_of"]]
        (told,) = table.source.timeline.describe(table.pin, [instant])
        written = [it for it in state["rows"] if it["_hoodie_commit_time"] == state["as_of"]]
        keys = {it["_hoodie_record_key"] for it in state["rows"]}
        assert told.rows_added == len(written), state["as_of"]
        assert told.rows_removed == (None if told.files_removed else len(before - keys))
        before = keys


# ── What was overwritten is told (HUDI-R10) ──


@pytest.mark.parametrize(
    "mode", ["complete", "with_deletes", "changelog", "latest_state", "skip_merge"]
)
def test_overwrites_of_a_window_are_events_of_its_plan(mode: str) -> None:
    table = Golden("v9_cow_replace", mode)
    window = InstantRange(table.writes[0], table.writes[-1])

    events = table.source.slicing.units(table.pin, window).listed.events

    timeline = table.source._access.timeline(table.pin)
    expected = [
        (requested, partition, set(groups))
        for _, requested in map(order_of, table.writes[1:])
        for partition, groups in sorted(timeline.metadata_of(requested).replaced.items())
    ]
    assert expected
    assert [(it.instant, it.partition, set(it.replaced)) for it in events or ()] == expected
    assert {it.operation for it in events or ()} >= {"insert_overwrite", "delete_partition"}


def test_plan_shows_what_was_overwritten(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_cow_replace", tmp_path)
    lake.file(source={**SOURCE, "start": {"after": lake.writes[0]}})
    tidegate("tidegate load PIPELINE")

    listed = json.loads(tidegate("tidegate plan PIPELINE --window 1 --json"))["record"]["listed"]

    operations = {it["operation"] for it in listed["events"]}
    assert "insert_overwrite" in operations
    assert "by insert_overwrite 2" in tidegate("tidegate plan PIPELINE --window 1")


# ── What the cleaner keeps is told (HUDI-W14) ──


def test_checkpoint_near_what_was_cleaned_is_warned_of(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_mor_archived", tmp_path)
    columns = [*answers(lake.case)["head"]["rows"][0], "_change_type"]
    read = {"mode": "with_deletes", "columns": columns}
    source = {"read": read, "start": {"after": lake.writes[-2]}}
    lake.file(source={**source, "warn_kept_below": 0})
    assert "up to the checkpoint" not in json.dumps(
        json.loads(tidegate("tidegate plan PIPELINE --dry-run --json"))["plan"]["notes"]
    )

    lake.file(source=source)
    told = json.loads(tidegate("tidegate load PIPELINE --json"))

    (note,) = (it for it in told["notes"] if "up to the checkpoint" in it)
    assert "keeps 1 write up to the checkpoint" in note
    assert "hoodie.cleaner.commits.retained" in note
    assert "keeps 1 write up to the checkpoint" in told["records"]["1"]["checkpoint"]
    shown = json.loads(tidegate("tidegate instants PIPELINE --json"))["checkpoint"]
    assert shown["kept"] == 2
    assert "keeps 2 writes up to the checkpoint" in shown["detail"]
