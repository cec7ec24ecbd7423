"""Plans of real tables: dense files, run limits, bounds, order, and what the command line says."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from driver import Driver
from golden_iceberg import golden, golden_copy
from tidegate.config import read_source
from tidegate.errors import StatsMissing
from tidegate.execute.local import LocalExecutor
from tidegate.model.instant import InstantRange
from tidegate.model.message import CommitMessage
from tidegate.model.plan_record import InstantAction
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.pipeline.changes import read_changes
from tidegate.source.iceberg import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.model.plan import Piece, ScanPlan, Split

NOW = datetime(2027, 1, 1, tzinfo=UTC)


@contextmanager
def _local(_engine: str) -> Iterator[LocalExecutor]:
    with LocalExecutor(1) as executor:
        yield executor


def _pipeline(folder: Path, case: str, **keys: Any) -> Pipeline:
    source = golden(case).config(**keys.pop("source", {}))
    usual = {
        "name": "planned",
        "source": source,
        "commit": {"trigger": "process-time"},
        "target": {"path": str(folder / "target" / "out")},
    }
    file = folder / "planned.yaml"
    file.write_text(json.dumps({**usual, **keys}))
    (folder / "target").mkdir(exist_ok=True)
    return open_pipeline(file, ledger=f"sqlite:///{folder}/ledger.db")


def _plan(folder: Path, case: str, **keys: Any) -> tuple[ScanPlan, Sequence[Split]]:
    pipeline = _pipeline(folder, case, **keys)
    (planned,) = pipeline.plan(Run("run", "run"), NOW)
    return pipeline.stored_plan(planned.sequence)


def _pieces(splits: Sequence[Split]) -> list[Piece]:
    return [piece for split in splits for sub in split.sub_splits for piece in sub.pieces]


def test_limit_of_a_pipeline_counts_the_rows_of_all_its_files(tmp_path: Path) -> None:
    read = {"mode": "snapshot", "limit": 25}
    pipeline = _pipeline(tmp_path, "small_files_v2", source={"read": read})
    pipeline.load(Run("run", "run"), NOW, _local)

    (published,) = pipeline.publish_all("run", NOW)

    assert published.state == "committed"
    files = list((tmp_path / "target" / "out").glob("*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) == 25


def test_dense_file_of_less_than_a_megabyte_gives_several_splits(tmp_path: Path) -> None:
    plan, splits = _plan(tmp_path, "dense_file_v2")

    pieces = _pieces(splits)
    covered = sorted((piece.row_start, piece.row_end) for piece in pieces)
    assert len(splits) >= 3
    assert plan.totals.bytes < 1_000_000
    assert [start for start, _ in covered] == [0, *(end for _, end in covered[:-1])]
    assert covered[-1][1] == 2_000_000
    assert all(piece.slice.deltas for piece in pieces)
    assert plan.record
    assert plan.record.footers_read == 0
    assert set(plan.record.terms) == {"rows"}
    assert plan.record.deletes["positions"].files == 1


def test_file_of_many_row_groups_is_cut_at_its_offsets_and_read_whole(tmp_path: Path) -> None:
    pipeline = _pipeline(
        tmp_path,
        "many_row_groups_v2",
        source={"split": {"target_size": "4KiB", "open_cost": "1KiB"}},
    )
    (planned,) = pipeline.plan(Run("run", "run"), NOW)
    plan, splits = pipeline.stored_plan(planned.sequence)

    announced = pipeline.finish_load([planned], NOW, _local)

    pieces = _pieces(splits)
    assert len(splits) > 4
    assert all(piece.byte_range for piece in pieces)
    assert plan.record
    assert plan.record.footers_read == 0
    assert announced.summary.rows_kept == golden("many_row_groups_v2").answers["head"]["row_count"]


@pytest.mark.parametrize(
    ("limits", "runs"), [({"snapshots": 40}, 7), ({"rows": 100, "files": 40}, 7)], ids=str
)
def test_long_history_in_many_runs_gives_each_row_once(
    limits: dict[str, int], runs: int, tmp_path: Path
) -> None:
    source = {"start": "earliest", "limits": limits, "read": {"on_non_append": "skip"}}
    pipeline = _pipeline(tmp_path, "long_history_v2", source=source)
    cuts = []

    for number in range(runs):
        (planned,) = pipeline.plan(Run(f"run-{number}", f"run-{number}"), NOW)
        cuts.append(pipeline.stored_plan(planned.sequence)[0].record)
        pipeline.finish_load([planned], NOW, _local)

    assert pipeline.plan(Run("last", "last"), NOW) == ()
    named = [record.limit.limit if record and record.limit else None for record in cuts]
    assert named[-1] is None
    assert set(named[:-1]) <= set(limits)
    left = [record.limit.left for record in cuts if record and record.limit]
    assert left == sorted(left, reverse=True)
    ids = _staged(pipeline, "id")
    appended = [it["operation"] for it in golden("long_history_v2").answers["snapshots"]]
    assert set(ids.values()) == {1}
    assert len(ids) == appended.count("append")


def _staged(pipeline: Pipeline, column: str) -> Counter[object]:
    """Count the values of a column in the staged files that messages name."""
    found: Counter[object] = Counter()
    for name, content in _messages(pipeline).items():
        message = CommitMessage.from_text(content)
        root = f"{pipeline.roots.work}/{name.partition('/messages/')[0]}"
        for part in message.staged.parts:
            table = pq.read_table(f"{root}/{part.staged}", columns=[column])
            found.update(table[column].to_pylist())
    return found


@pytest.mark.parametrize(
    ("column", "unit"), [("ts", "us"), ("tz", "us"), ("epoch", "s")], ids=["wall", "moment", "long"]
)
def test_order_by_event_time_follows_the_lower_bounds(
    column: str, unit: str, tmp_path: Path
) -> None:
    source = {"split": {"order": "event_time"}}
    when = {"column": column, "unit": unit, "on_missing_bounds": "null"}

    plan, splits = _plan(tmp_path, "event_time_v2", source=source, event_time=when)

    lows = [piece.event_times.smallest for piece in _pieces(splits) if piece.event_times]
    known = [low for low in lows if low is not None]
    assert len(known) > 1
    assert known == sorted(known)
    assert plan.record
    assert plan.record.event_times
    assert plan.record.event_times.smallest == known[0]


@pytest.mark.follows("StatsMissing")
def test_file_without_bounds_fails_only_where_bounds_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "ordered").mkdir()
    said = {"column": _time_column("no_metrics_v2")}

    plan, _ = _plan(tmp_path / "plain", "no_metrics_v2", event_time=said)
    with pytest.raises(StatsMissing, match="on_missing_bounds"):
        _plan(
            tmp_path / "ordered",
            "no_metrics_v2",
            event_time=said,
            source={"split": {"order": "event_time"}},
        )
    # What the message says to do.
    (tmp_path / "footer").mkdir()
    said["on_missing_bounds"] = "read_footer"
    mended, _ = _plan(
        tmp_path / "footer",
        "no_metrics_v2",
        event_time=said,
        source={"split": {"order": "event_time"}},
    )

    assert mended.totals == plan.totals
    assert plan.record
    assert plan.record.files_without_bounds == plan.totals.files
    assert plan.record.event_times is None


def _time_column(case: str) -> str:
    columns = dict(golden(case).answers["head"]["columns"])
    times = ("timestamp", "timestamp_ntz", "date", "bigint", "int")
    return next(name for kind in times for name in columns if columns[name] == kind)


@pytest.mark.follows("StatsMissing")
def test_order_by_file_sequence_is_refused_for_format_v1(tmp_path: Path) -> None:
    with pytest.raises(StatsMissing, match="a file sequence number"):
        _plan(tmp_path, "append_v1", source={"split": {"order": "file_sequence"}})

    # What the message says to do.
    plan, _ = _plan(tmp_path, "append_v1", source={"split": {"order": "path"}})
    assert plan.totals.files


def test_window_of_a_thousand_compactions_opens_no_data_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    tables = importlib.import_module("benchmarks.metadata_tables")
    metadata = tables.write_many_replaces(tmp_path / "table", 1_000)
    for manifest in (tmp_path / "table" / "metadata").glob("*-m0.avro"):
        manifest.unlink()
    source = IcebergSource(read_source({"kind": "iceberg", "metadata": str(metadata)}))
    pin = source.timeline.pin(NOW)
    assert pin.head
    first = source.timeline.retained(pin)[0]

    units = source.slicing.units(pin, InstantRange(first, pin.head))

    assert len(units) == 0
    assert "skipped 1000 replace snapshots" in units.notes
    assert units.listed.instants == (InstantAction("replace", "skipped", 1_000),)
    assert units.listed.manifests_read == 0


@dataclass(frozen=True)
class _DenseLake:
    """The dense table, as drivers in a process of their own take lakes."""

    root: Path

    def file(self) -> Path:
        return self.root / "planned.yaml"


def test_kill_inside_a_dense_file_reads_no_finished_sub_split_again(tmp_path: Path) -> None:
    split = {"max_rows": 100_000}
    pipeline = _pipeline(tmp_path, "dense_file_v2", source={"split": split})
    lake: Any = _DenseLake(tmp_path)
    killed = Driver.start(
        lake, "load", NOW, after=r"link \.[0-9a-f]{12}\.json", stop="create part-"
    )
    killed.kill()
    before = _messages(pipeline)

    announced = pipeline.load(Run("again", "again"), NOW, _local)

    after = _messages(pipeline)
    assert 0 < len(before) < len(after)
    # The message of a sub-split that was read again would name another attempt.
    assert {name: after[name] for name in before} == before
    assert announced.summary.rows_kept == 1_997_000
    assert sum(_staged(pipeline, "id").values()) == 1_997_000


def _messages(pipeline: Pipeline) -> dict[str, bytes]:
    """Read the messages that stand; a process that died may leave hidden ones without a name."""
    root = pipeline.roots.work
    names = [name for name in pipeline.storage.list_files(root) if "/messages/" in name]
    return {
        name: pipeline.storage.read_bytes(f"{root}/{name}")
        for name in names
        if not name.rpartition("/")[2].startswith(".")
    }


def _changes(case: str, limit: int | None, **read: Any) -> list[dict[str, Any]]:
    source = golden(case).config(read=read)
    return read_changes(source, limit=limit).read_all().to_pylist()


@pytest.mark.parametrize(
    ("case", "read"),
    [
        ("long_history_v2", {"on_non_append": "skip"}),
        ("append_v2", {"mode": "snapshot"}),
        ("mor_v2", {"mode": "snapshot"}),
        ("append_v2", {"mode": "snapshot", "filter": "id > 3"}),
        ("cow_v2", {"mode": "changelog"}),
    ],
    ids=["appends", "snapshot", "deletes", "filter", "changelog"],
)
def test_limit_gives_the_first_rows_of_the_plan(case: str, read: dict[str, Any]) -> None:
    everything = _changes(case, None, **read)

    for limit in (1, 3, len(everything), len(everything) + 1):
        assert _changes(case, limit, **read) == everything[:limit]


def test_limit_ends_listing_and_reading_early(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    source = table.source(start="earliest")
    pin = source.timeline.pin(NOW)
    assert pin.head
    window = InstantRange(None, pin.head)
    whole = source.slicing.units(pin, window)

    few = source.slicing.units(pin, window, enough=1)

    assert whole.pieces[: len(few)] == few.pieces
    assert len(few) < len(whole)
    assert few.listed.manifests_read < whole.listed.manifests_read


def test_watermark_from_commit_time_is_that_of_the_last_commit_read(tmp_path: Path) -> None:
    said = {"watermark_from": "commit_time", "lateness": "1m"}
    source = {"start": "earliest", "limits": {"snapshots": 2}}
    pipeline = _pipeline(tmp_path, "append_v2", source=source, event_time=said)
    (planned,) = pipeline.plan(Run("run", "run"), NOW)
    end = pipeline.stored_plan(planned.sequence)[0].window.range.end_inclusive

    announced = pipeline.finish_load([planned], NOW, _local)

    assert announced.watermark == end.time - timedelta(minutes=1)
