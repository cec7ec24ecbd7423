"""Windows whose files the cleaner of a Hudi table removed, read by `on_cleaned` (HUDI-W12)."""

from __future__ import annotations

import json
import re
import shutil
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import CASES, NOW, Golden, answers, texts
from small_hudi import Command, HudiLake, typed
from tidegate.errors import HudiFilesCleaned, HudiHistoryLost
from tidegate.model.instant import InstantRange
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.instant import Instant
    from tidegate.source.slicing import Units

SHORTENED = [case for case in CASES if case.endswith(("_cleaned", "_archived"))]
MODES = ["complete", "latest_state", "skip_merge"]


def units(table: Golden, window: InstantRange) -> Units:
    pin = table.source.timeline.at(table.pin, window.end_inclusive)
    return table.source.slicing.units(pin, window)


def requested_in(table: Golden, start: Instant, end: Instant) -> set[str]:
    orders = (order_of(it) for it in table.writes)
    return {order[1] for order in orders if order_of(start) < order <= order_of(end)}


@pytest.mark.parametrize("case", SHORTENED)
def test_window_that_was_cleaned_has_what_is_left_of_it_at_the_head(case: str) -> None:
    table = Golden(case, "complete", on_cleaned="snapshot")
    strict = Golden(case, "complete")
    head = answers(case)["head"]["rows"]

    fallen_back = 0
    for start, end in combinations(table.writes, 2):
        window = InstantRange(start, end)
        try:
            units(strict, window)
        except HudiFilesCleaned:
            pass
        else:
            continue
        instants = requested_in(table, start, end)
        left = texts([row for row in head if row["_hoodie_commit_time"] in instants])
        assert texts(table.rows(window)) == left, str(window)
        (note, *_) = units(table, window).notes
        assert "cleaner removed files" in note
        assert "planning it again may return other rows" in note
        fallen_back += 1
    assert fallen_back


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", ["v6_mor_cleaned", "v9_cow_cleaned", "v9_mor_cleaned"])
def test_window_that_was_cleaned_has_no_row_that_was_not_written_in_it(
    case: str, mode: str
) -> None:
    table = Golden(case, mode, on_cleaned="snapshot")
    head = answers(case)["head"]["rows"]
    live = {it["instant"]: texts(it["rows"]) for it in answers(case)["live_snapshots"]}
    first, *_, before, last = table.writes

    for window in (InstantRange(first, before), InstantRange(first, table.writes[2])):
        instants = requested_in(table, first, window.end_inclusive)
        left = texts([row for row in head if row["_hoodie_commit_time"] in instants])
        found = texts(table.rows(window))
        assert not left - found
        written = {text for requested in instants for text in live[requested]}
        assert set(found) <= written
    assert last.id


@pytest.mark.parametrize("mode", ["changelog", "with_deletes"])
def test_explain_says_that_the_next_load_of_a_feed_will_stop(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = HudiLake("v9_cow_cleaned", tmp_path, mode=mode)
    run = typed(lake.root, monkeypatch)
    read = {"mode": mode, "columns": ["k", "v", "_change_type"]}
    keys = {"source": {"read": read, "start": "latest"}}
    lake.stand_after(lake.writes[0])
    lake.take(**keys)
    lake.stand_after(lake.writes[-1])
    everything = sorted(path.name[:17] for path in (lake.root / "later").glob("2*"))
    lake.stand_after(everything[-1])

    told = run("tidegate instants PIPELINE")

    said = re.search(r"the next load will stop: (.*?) Nothing was taken", told)
    assert said is not None, told
    assert "cannot tell what was changed or deleted" in said[1]
    assert "0 writes" not in told
    assert "HudiChangesLost" in run("tidegate load PIPELINE", 1)


@pytest.mark.parametrize("case", SHORTENED)
def test_windows_of_one_write_each_end_in_the_rows_of_the_head(case: str) -> None:
    table = Golden(case, "complete", on_cleaned="snapshot")
    first, *_ = table.writes
    rows: dict[str, Any] = {}

    for start, end in zip(table.writes, table.writes[1:], strict=False):
        rows |= {row["k"]: row for row in table.rows(InstantRange(start, end))}

    kept = [
        row
        for row in answers(case)["head"]["rows"]
        if row["_hoodie_commit_time"] != order_of(first)[1]
    ]
    found = [rows[row["k"]] for row in kept]
    assert texts(found) == texts(kept)


def test_partitions_that_were_cleaned_are_read_as_they_are_by_now(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_cleaned", tmp_path, mode="rebuild_partitions")
    source = {
        "read": {"mode": "rebuild_partitions"},
        "limits": {"snapshots": 1},
        "start": {"after": lake.first},
    }
    keys = {"source": source, "target": {"path": str(tmp_path / "published")}}
    with pytest.raises(HudiFilesCleaned):
        lake.take(**keys)

    source["on_cleaned"] = "snapshot"
    for _ in lake.writes[1:]:
        lake.take(**keys)

    assert lake.published == texts(answers(lake.case)["head"]["rows"])


def test_first_window_of_a_state_that_was_cleaned_is_refused_all_the_same() -> None:
    table = Golden("v9_mor_cleaned", "complete", on_cleaned="snapshot")

    with pytest.raises(HudiFilesCleaned):
        units(table, InstantRange(None, table.writes[1]))


def _forget(lake: HudiLake, oldest: str) -> None:
    """Archive what is older than an instant, and lose the archive."""
    for path in lake.timeline.glob("2*"):
        if path.name[:17] < oldest:
            path.unlink()
    shutil.rmtree(lake.timeline / "history", ignore_errors=True)


@pytest.mark.parametrize("mode", ["complete", "rebuild_partitions"])
def test_table_whose_archive_is_gone_is_read_again_in_place_of_everything(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Command = typed(tmp_path, monkeypatch)
    lake = HudiLake("v9_cow_many_instants", tmp_path, mode=mode, by=("k",))
    everything = sorted({path.name[:17] for path in lake.timeline.glob("2*_*")})
    read: dict[str, Any] = {"mode": mode}
    read |= {"keys_repeat": True} if mode == "complete" else {}
    keys: dict[str, Any] = {"source": {"read": read}}
    if mode != "complete":
        keys["target"] = {"path": str(tmp_path / "published")}
    lake.stand_after(everything[5])
    lake.take(**keys)
    lake.stand_after(everything[-1])
    _forget(lake, everything[20])
    with pytest.raises(HudiHistoryLost):
        lake.take(**keys)

    keys["source"]["on_cleaned"] = "snapshot"
    lake.file(**keys)
    told = json.loads(run("tidegate load PIPELINE --json"))
    run("tidegate publish PIPELINE")

    assert lake.published == texts(answers(lake.case)["head"]["rows"])
    assert any("reads the whole table again" in note for note in told["notes"])
    state = lake.pipeline(**keys).checkpoint_state(NOW)
    assert state is not None
    assert state.state == "caught up"
