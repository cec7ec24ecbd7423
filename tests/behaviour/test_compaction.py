"""Small files are joined on the way to a revision or by command; no row changes (PC-K02)."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from crash.faults import Stopper, stopping_storage
from interrupting import before_look
from small_lake import NOW, SmallLake, day, decide, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import PublicationLapsed
from tidegate.model.finding import FindingKind
from tidegate.model.run import Run
from tidegate.target.compaction import CompactionRule

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

APPENDS: dict[str, Any] = {"commit": {"trigger": "process-time"}}
RULE = CompactionRule(small_file=1 << 20, target_size=128 << 20)
FIRST = "dt=2026-02-01"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys=APPENDS)


class Died(BaseException):
    """What ends a process here."""


def grown(lake: SmallLake, commits: int = 3, **keys: Any) -> Pipeline:
    """Publish one small file of the first day per commit."""
    for _ in range(commits):
        lake.commit({1: 2})
        pipeline = lake.pipeline(**keys)
        load(pipeline)
        publish(pipeline)
    return pipeline


def files(lake: SmallLake) -> list[str]:
    return sorted(path.name for path in (lake.target / FIRST).glob("*.parquet"))


def marker(lake: SmallLake) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lake.target / FIRST / "_SUCCESS").read_bytes())
    return found


def replay(pipeline: Pipeline, window: int) -> None:
    pipeline.finish_load(pipeline.replay(window, Run("again", "cli"), NOW), NOW, local)
    publish(pipeline)


def test_files_of_several_windows_are_joined_in_order_to_a_rewritten_revision(
    lake: SmallLake,
) -> None:
    pipeline = grown(lake)
    assert len(files(lake)) == 3

    made = pipeline.compact(day(1), RULE, "cli", NOW)

    assert made is not None
    assert (made.revision, made.rows, made.windows) == (4, 6, (1, 2, 3))
    (only,) = files(lake)
    assert pq.read_table(lake.target / FIRST / only)["id"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert marker(lake)["rewrite"] is True
    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2, 3, 4, 5, 6]}
    # There is nothing left to join.
    assert pipeline.compact(day(1), RULE, "cli", NOW) is None


def test_joined_files_go_on_as_part_of_the_content(lake: SmallLake) -> None:
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)
    (joined,) = files(lake)

    grown(lake, 1)

    assert joined in files(lake)
    assert lake.ids() == {FIRST: [1, 2, 3, 4, 5, 6, 7, 8]}
    assert "rewrite" not in marker(lake)


@pytest.mark.parametrize("window", [1, 2, 3])
def test_replay_of_a_joined_window_brings_the_files_of_the_others_back(
    lake: SmallLake, window: int
) -> None:
    pipeline = grown(lake)
    before = set(files(lake))
    pipeline.compact(day(1), RULE, "cli", NOW)

    # The first row of each window is left out by the new filter.
    kept = {"source": {"read": {"filter": f"id <> {2 * window - 1}"}}}
    replay(lake.pipeline(**kept), window)

    assert lake.ids() == {FIRST: [it for it in range(1, 7) if it != 2 * window - 1]}
    assert len(before & set(files(lake))) == 2


def test_replay_with_the_same_rows_leaves_the_joined_file(lake: SmallLake) -> None:
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)
    stamps = lake.stamps()

    replay(lake.pipeline(), 2)

    assert lake.stamps() == stamps


def test_small_files_are_joined_after_a_replay_that_changed_nothing(lake: SmallLake) -> None:
    pipeline = grown(lake)
    # Another filter, and so another plan, with the same rows.
    replay(lake.pipeline(source={"read": {"filter": "id > 0"}}), 1)

    assert pipeline.compact(day(1), RULE, "cli", NOW) is not None

    assert len(files(lake)) == 1
    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2, 3, 4, 5, 6]}


def test_files_joined_after_a_replay_that_changed_nothing_stay_joined(lake: SmallLake) -> None:
    pipeline = grown(lake)
    # Another size of files, and so another plan, with the same bytes.
    replay(lake.pipeline(target={"rolling": {"file_size": "64MiB"}}), 1)
    assert pipeline.ledger.partitions.get(day(1)).revision == 3
    pipeline.compact(day(1), RULE, "cli", NOW)
    (joined,) = files(lake)

    grown(lake, 1)

    assert joined in files(lake)
    assert lake.ids() == {FIRST: [1, 2, 3, 4, 5, 6, 7, 8]}


def test_what_was_joined_is_joined_again_and_still_taken_apart(lake: SmallLake) -> None:
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)
    pipeline = grown(lake, 2)
    made = pipeline.compact(day(1), RULE, "cli", NOW)
    assert made is not None
    assert len(files(lake)) == 1

    replay(lake.pipeline(source={"read": {"filter": "id <> 3"}}), 2)

    assert lake.ids() == {FIRST: [1, 2, 4, 5, 6, 7, 8, 9, 10]}
    assert len(files(lake)) == 5


def test_large_joined_files_are_taken_apart_together(lake: SmallLake) -> None:
    """A file that shares ingredients with one that is joined again goes with it."""
    keys = {"target": {"rolling": {"file_size": "1KiB"}, "row_group": {"rows": 50}}}
    for _ in range(4):
        lake.commit({1: 40})
        pipeline = lake.pipeline(**keys)
        load(pipeline)
        publish(pipeline)
        if len(files(lake)) == 3:
            pipeline.compact(day(1), RULE, "cli", NOW)
            sizes = [(lake.target / FIRST / name).stat().st_size for name in files(lake)]
            assert len(sizes) == 2
    pipeline.compact(day(1), CompactionRule(1 << 20, sum(sizes) - 1), "cli", NOW)

    replay(lake.pipeline(**keys, source={"read": {"filter": "id <> 121"}}), 4)

    assert lake.ids() == lake.listed_ids() == {FIRST: [it for it in range(1, 161) if it != 121]}


def compact_until(lake: SmallLake, change: str) -> None:
    """Join the files of the first day, and die before a change."""
    stopper = Stopper()

    def die() -> None:
        if stopper.made[-1].startswith(change):
            stopper.between = None
            raise Died

    stopper.between = die
    with pytest.raises(Died):
        lake.pipeline(stopping_storage(stopper)).compact(day(1), RULE, "cli", NOW)


@pytest.mark.on_disk
def test_compaction_that_died_is_finished_by_the_next_publish(lake: SmallLake) -> None:
    pipeline = grown(lake)
    compact_until(lake, "unlink _SUCCESS")
    assert pipeline.unpublished() == (day(1),)

    publish(lake.pipeline(), owner="cli")

    assert marker(lake)["rewrite"] is True
    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2, 3, 4, 5, 6]}


def test_joined_rows_that_were_approved_need_no_approval(lake: SmallLake) -> None:
    lake.keys = {"commit": {"trigger": "process-time", "require": ["trigger", "approval"]}}
    for _ in range(2):
        lake.commit({1: 2})
        pipeline = lake.pipeline()
        load(pipeline)
        list(pipeline.publish_all("cli", NOW))
        decide(pipeline, day(1))
        publish(pipeline)

    assert pipeline.compact(day(1), RULE, "cli", NOW) is not None
    assert len(files(lake)) == 1


def test_rebuild_and_reset_replace_a_joined_file(lake: SmallLake) -> None:
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)

    pipeline.finish_load(pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW), NOW, local)
    publish(pipeline)

    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize("every", [1, 3])
def test_revisions_join_small_files_by_themselves(lake: SmallLake, every: int) -> None:
    keys = {"target": {"compaction": {"small_file": "1MiB", "every": every}}}
    counts = []
    for _ in range(6):
        grown(lake, 1, **keys)
        counts.append(len(files(lake)))

    assert counts == {1: [1, 1, 1, 1, 1, 1], 3: [1, 2, 1, 2, 3, 1]}[every]
    assert lake.ids() == lake.listed_ids() == {FIRST: list(range(1, 13))}
    # Rows came with it, so that readers must not take it for the same.
    assert "rewrite" not in marker(lake)
    replay(lake.pipeline(**keys, source={"read": {"filter": "id <> 5"}}), 3)
    assert lake.ids() == {FIRST: [it for it in range(1, 13) if it != 5]}


def test_rows_that_wait_are_published_first(lake: SmallLake) -> None:
    pipeline = grown(lake)
    lake.commit({1: 1})
    load(pipeline)

    assert pipeline.compact(day(1), RULE, "cli", NOW) is None

    assert lake.ids() == {FIRST: [1, 2, 3, 4, 5, 6]}
    publish(pipeline)
    assert pipeline.compact(day(1), RULE, "cli", NOW) is not None


def test_large_files_stay_and_bins_have_a_size(lake: SmallLake) -> None:
    pipeline = grown(lake, 4)
    size = (lake.target / FIRST / files(lake)[0]).stat().st_size
    assert pipeline.compact(day(1), CompactionRule(size // 2, 1 << 20), "cli", NOW) is None

    pipeline.compact(day(1), CompactionRule(size * 3, size * 2 + size // 2), "cli", NOW)

    assert len(files(lake)) == 2
    assert lake.ids() == {FIRST: list(range(1, 9))}


def test_restored_ledger_knows_what_was_joined(lake: SmallLake) -> None:
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)
    (lake.root / "ledger.db").unlink()

    pipeline = lake.pipeline()
    pipeline.restore_ledger()
    assert list(pipeline.findings()) == []
    replay(lake.pipeline(source={"read": {"filter": "id <> 1"}}), 1)

    assert lake.ids() == {FIRST: [2, 3, 4, 5, 6]}


def test_joined_file_of_a_sorted_table_is_sorted(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake", keys={**APPENDS, "target": {"sort_by": ["amount", "-id"]}})
    for amount in (3, 1, 2):
        lake.commit({1: 2}, amount=amount)
        pipeline = lake.pipeline()
        load(pipeline)
        publish(pipeline)

    pipeline.compact(day(1), RULE, "cli", NOW)

    (only,) = (lake.target / FIRST).glob("*.parquet")
    found = pq.read_table(only)
    assert found["id"].to_pylist() == [4, 3, 6, 5, 2, 1]
    assert pq.ParquetFile(only).metadata.row_group(0).sorting_columns


def test_upserted_files_are_joined_too(tmp_path: Path) -> None:
    keys = {**APPENDS, "target": {"write": "upsert", "keys": ["id"], "keys_stay": True}}
    lake = SmallLake(tmp_path / "lake", keys=keys)
    rolled = {"target": {"rolling": {"file_size": "1KiB"}}}
    pipeline = grown(lake, **rolled)
    assert len(files(lake)) == 3

    pipeline.compact(day(1), RULE, "cli", NOW)
    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2, 3, 4, 5, 6]}
    assert marker(lake)["rewrite"] is True
    grown(lake, 1)

    assert lake.ids() == {FIRST: [1, 2, 3, 4, 5, 6, 7, 8]}


class TestCommand:
    """`tidegate compact`."""

    def test_joins_the_named_partitions_and_says_so(
        self, lake: SmallLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grown(lake)
        lake.found_by_name(monkeypatch)

        done = CliRunner().invoke(app, ["compact", "orders", FIRST])
        again = CliRunner().invoke(app, ["compact", "orders", "--json"])

        assert done.exit_code == 0, done.output
        assert FIRST in done.output
        assert again.exit_code == 3
        assert json.loads(again.stdout)["compacted"] == []
        assert len(files(lake)) == 1

    def test_size_that_is_none_is_refused(
        self, lake: SmallLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grown(lake, 1)
        lake.found_by_name(monkeypatch)

        refused = CliRunner().invoke(app, ["compact", "orders", "--small-file", "much"])

        assert refused.exit_code == 2
        assert "--small-file" in refused.output


def test_sweep_leaves_what_a_joined_file_is_taken_apart_to(lake: SmallLake) -> None:
    pipeline = grown(lake)
    before = set(files(lake))
    pipeline.compact(day(1), RULE, "cli", NOW)

    swept = pipeline.sweep(pipeline.garbage(NOW.replace(year=2036), NOW - NOW))
    replay(lake.pipeline(source={"read": {"filter": "id <> 1"}}), 1)

    assert [item.path for item in swept if "/retired/" in item.path] == []
    assert lake.ids() == {FIRST: [2, 3, 4, 5, 6]}
    assert len(before & set(files(lake))) == 2


@pytest.mark.on_disk
def test_sweep_leaves_a_joined_file_that_a_commit_took_up_since(lake: SmallLake) -> None:
    pipeline = grown(lake)
    compact_until(lake, "unlink part-")
    garbage = pipeline.garbage(NOW.replace(year=2036), NOW - NOW)
    found = {item.path for item in garbage if "/units/" in item.path}
    assert found
    compact_until(lake, "unlink _SUCCESS")

    swept = pipeline.sweep(garbage)
    publish(lake.pipeline())

    assert found.isdisjoint(item.path for item in swept)
    assert len(files(lake)) == 1
    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2, 3, 4, 5, 6]}


def test_lost_part_of_a_joined_file_is_missed_and_what_is_told_helps(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)
    assert list(pipeline.findings()) == []
    shutil.rmtree(lake.work / "retired")

    (found,) = pipeline.inspect()

    assert found.kind is FindingKind.JOINED_PART_LOST
    assert "3 of 3" in found.text
    lake.found_by_name(monkeypatch)
    for told in found.commands:
        ended = CliRunner().invoke(app, shlex.split(told)[1:])
        assert ended.exit_code == 0, ended.output
    assert list(lake.pipeline().findings()) == []
    assert lake.ids() == {FIRST: [1, 2, 3, 4, 5, 6]}


def test_files_are_found_where_they_went_when_revisions_are_compared(lake: SmallLake) -> None:
    """A joined file is taken apart, so that files come back that were retired, and go again."""
    pipeline = grown(lake)
    pipeline.compact(day(1), RULE, "cli", NOW)
    narrow = lake.pipeline(source={"read": {"filter": "id <> 1"}})
    replay(narrow, 1)
    narrow.compact(day(1), RULE, "cli", NOW)

    found = {
        (one, other): (difference.added, difference.removed)
        for one, other in ((3, 4), (4, 5), (3, 5), (5, 6), (3, 6))
        if (difference := pipeline.difference(day(1), one, other).found)
    }

    assert found == {(3, 4): (0, 0), (4, 5): (0, 1), (3, 5): (0, 1), (5, 6): (0, 0), (3, 6): (0, 1)}


def test_rows_that_are_announced_before_any_look_of_compaction_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0
    acted = True
    while acted:
        number += 1
        lake = SmallLake(tmp_path / str(number), keys=APPENDS)
        pipeline = grown(lake, 2)
        ids = [1, 2, 3, 4, *lake.commit({1: 2})]
        with (
            before_look(monkeypatch, pipeline, number, partial(load, pipeline)) as happened,
            contextlib.suppress(PublicationLapsed),
        ):
            pipeline.compact(day(1), RULE, "cli", NOW)
        acted = bool(happened)
        load(pipeline)
        publish(pipeline)

        assert lake.ids()[FIRST] == ids, number
    assert number > 3
