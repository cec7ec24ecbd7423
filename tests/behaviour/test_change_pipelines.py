"""Pipelines publish rows with their kinds: upsert streams, compactions, attempts that died."""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import expected, golden
from golden_pipeline import NOW
from small_lake import load, local, publish
from tidegate import read_committed
from tidegate.config import read_source
from tidegate.errors import (
    ChangelogInconsistent,
    ConfigInvalid,
    ExchangeFileLost,
    StorageFull,
    TransientError,
)
from tidegate.execute.local import LocalExecutor
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.load.change_stream import ChangeStream
from tidegate.pipeline.state.reading import Reading
from tidegate.source.iceberg import IcebergSource
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidegate.execute.protocol import StageTask
    from tidegate.model.message import CommitMessage
    from tidegate.pipeline import Pipeline

COLUMNS = ["id", "v", "_change_type"]
EXCHANGED = {"target_size": 2048, "open_cost": 1, "max_rows": 2}
SPLITS = [
    pytest.param({}, id="in-memory"),
    pytest.param(EXCHANGED, id="exchanged"),
]
Change = tuple[str, Any, Any, int]


@dataclass
class Stream:
    """A pipeline that publishes the changes of a golden table by their kinds."""

    case: str
    root: Path
    split: Mapping[str, Any]

    def at(self, version: int, start: str = "earliest", **read: Any) -> Pipeline:
        """Open the pipeline while the table has metadata `v<version>`."""
        table = golden(self.case)
        said = {
            **table.config(),
            "metadata": str(table.folder / f"table/metadata/v{version}.metadata.json"),
            "start": start,
            "read": {"mode": "changelog", "columns": COLUMNS, **read},
            "split": dict(self.split),
        }
        target = {"path": str(self.root / "published"), "partition_by": {"kind": "_change_type"}}
        trigger = {"trigger": "process-time"}
        raw = {"name": "changes", "source": said, "target": target, "commit": trigger}
        file = self.root / "changes.yaml"
        file.write_text(json.dumps(raw))
        return open_pipeline(file, ledger=f"sqlite:///{self.root}/ledger.db")

    def published(self) -> Counter[Change]:
        """Count the published changes."""
        found = read_committed(self.root / "published").to_table().to_pylist()
        return Counter(
            (row["kind"], row["id"], row["v"], row["_commit_snapshot_id"]) for row in found
        )

    def engines(self) -> Counter[Change]:
        """Count the changes that the engine says, paired as the specification does."""
        answer = expected(self.case)
        found: Counter[Change] = Counter()
        commits = {commit for _, commit in answer["expect"]["changelog"][0]["ordinals"]}
        for snapshot in answer["snapshots"]:
            if snapshot["snapshot_id"] in commits:
                found += _changes(snapshot, paired=bool(answer["identifier_columns"]))
        return found


def _changes(snapshot: Mapping[str, Any], *, paired: bool) -> Counter[Change]:
    deletes, inserts = (snapshot["changes"][kind]["rows"] for kind in ("delete", "insert"))
    keys = [Counter(row[0] for row in rows) for rows in (deletes, inserts)]
    found: Counter[Change] = Counter()
    for rows, names in (
        (deletes, ("DELETE", "UPDATE_BEFORE")),
        (inserts, ("INSERT", "UPDATE_AFTER")),
    ):
        for row in rows:
            is_update = paired and keys[0][row[0]] == keys[1][row[0]] == 1
            found[names[is_update], row[0], row[1], snapshot["snapshot_id"]] += 1
    return found


@pytest.mark.parametrize("split", SPLITS)
def test_upsert_stream_commit_by_commit_publishes_the_changes_of_the_engine(
    tmp_path: Path, split: Mapping[str, Any]
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, split)

    for version in (2, 3, 5, 8):
        pipeline = stream.at(version)
        load(pipeline, now=NOW)
        publish(pipeline, now=NOW)

    assert stream.published() == stream.engines()
    assert {kind for kind, *_ in stream.published()} > {"UPDATE_BEFORE", "UPDATE_AFTER"}


@pytest.mark.parametrize("split", SPLITS)
def test_compaction_in_the_middle_of_a_window_publishes_no_change_of_its_own(
    tmp_path: Path, split: Mapping[str, Any]
) -> None:
    stream = Stream("compaction_v2", tmp_path, split)

    pipeline = stream.at(12)
    announced = load(pipeline, now=NOW)
    publish(pipeline, now=NOW)

    assert stream.published() == stream.engines()
    assert announced.summary.rows_read == sum(stream.engines().values())


@pytest.mark.spark
@pytest.mark.parametrize("case", ["flink_upsert_v2", "compaction_v2"])
def test_changes_loaded_in_spark_are_published_like_those_loaded_here(
    tmp_path: Path, spark: Any, case: str
) -> None:
    from tidegate.execute.spark import SparkExecutor

    stream = Stream(case, tmp_path, EXCHANGED)
    pipeline = stream.at(8 if case == "flink_upsert_v2" else 12)
    planned = pipeline.plan(Run("run", "cli"), NOW)

    for window in planned:
        pipeline.stage(window, SparkExecutor(spark.sparkContext))
    pipeline.announce(planned, NOW)
    publish(pipeline, now=NOW)

    assert stream.published() == stream.engines()


class _Dying(LocalExecutor):
    """Stages some splits and then fails, as a driver does that is killed."""

    def run(
        self, task: StageTask, plan_uri: str, indexes: Sequence[int], attempt: str
    ) -> Iterator[CommitMessage]:
        yield from super().run(
            functools.partial(_die_after, self.left, task), plan_uri, indexes, attempt
        )

    left: list[int]


def _die_after(
    left: list[int], task: StageTask, plan_uri: str, index: int, attempt: str
) -> tuple[CommitMessage, ...]:
    if not left[0]:
        raise StorageFull(path=plan_uri, problem="no space left on device")
    left[0] -= 1
    return task(plan_uri, index, attempt)


def _messages(pipeline: Pipeline, uri: str) -> dict[str, bytes]:
    root = layout.messages_root(uri)
    storage = pipeline.storage
    return {name: storage.read_bytes(f"{root}/{name}") for name in storage.list_files(root)}


@pytest.mark.parametrize("finished", [0, 2, 7, 11])
def test_attempt_that_died_between_its_splits_is_gone_on_with_and_not_begun_again(
    tmp_path: Path, finished: int
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, EXCHANGED)
    pipeline = stream.at(8)
    (window,) = pipeline.plan(Run("run", "cli"), NOW)
    dying = _Dying(1)
    object.__setattr__(dying, "left", [finished])

    with pytest.raises(TransientError):
        pipeline.stage(window, dying)
    before = _messages(pipeline, window.uri)
    pipeline.stage(window, LocalExecutor(2))
    after = _messages(pipeline, window.uri)
    pipeline.announce((window,), NOW)
    publish(pipeline, now=NOW)

    assert len(before) >= finished
    assert before.items() <= after.items()
    assert stream.published() == stream.engines()


def test_exchanged_rows_are_counted_once_and_gone_when_their_window_is_sealed(
    tmp_path: Path,
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, EXCHANGED)
    pipeline = stream.at(8)
    (window,) = pipeline.plan(Run("run", "cli"), NOW)
    pipeline.stage(window, LocalExecutor(2))
    exchanged = pipeline.storage.list_files(layout.exchange_root(window.uri))

    announced = pipeline.announce((window,), NOW)

    assert exchanged
    assert pipeline.storage.list_files(layout.exchange_root(window.uri)) == []
    assert announced.summary.rows_read == announced.summary.rows_kept
    assert announced.summary.rows_read == sum(stream.engines().values())


def test_replay_spreads_rows_again_where_a_sealed_window_lost_the_message_of_those_gathered(
    tmp_path: Path,
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, EXCHANGED)
    pipeline = stream.at(8)
    (window,) = pipeline.plan(Run("first", "cli"), NOW)
    pipeline.finish_load((window,), NOW, local)
    for path in Path(layout.messages_root(window.uri)).iterdir():
        if json.loads(path.read_text())["staged"]["parts"]:
            path.unlink()

    again = pipeline.replay(window.sequence, Run("again", "cli"), NOW)
    pipeline.finish_load(again, NOW, local)
    publish(pipeline, now=NOW)

    assert [item.digest for item in again] == [window.digest]
    assert stream.published() == stream.engines()
    assert pipeline.storage.list_files(layout.exchange_root(window.uri)) == []


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("case", "version"), [("flink_upsert_v2", 8), ("compaction_v2", 12)])
def test_checked_changes_of_a_sound_plan_are_announced(
    tmp_path: Path, case: str, version: int, split: Mapping[str, Any]
) -> None:
    stream = Stream(case, tmp_path, split)
    pipeline = stream.at(version, verify_changelog=True)

    announced = load(pipeline, now=NOW)
    publish(pipeline, now=NOW)

    assert stream.published() == stream.engines()
    assert announced.summary.rows_read == sum(stream.engines().values())


def test_checked_changes_with_a_piece_missing_are_refused_before_anything_is_sealed(
    tmp_path: Path,
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, {"max_rows": 4})
    pipeline = stream.at(8, verify_changelog=True)
    (window,) = pipeline.plan(Run("run", "cli"), NOW)
    file = Path(layout.splits_file(window.uri))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    split = next(line for line in lines if "sub_splits" in line)
    split["sub_splits"][0]["pieces"].pop()
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pipeline.stage(window, LocalExecutor(2))

    with pytest.raises(ChangelogInconsistent):
        pipeline.announce((window,), NOW)

    assert not any(state.sealed for state in pipeline.ledger.windows.all())


def test_changes_without_their_kind_are_refused_for_a_target_that_appends(
    tmp_path: Path,
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, {})

    with pytest.raises(ConfigInvalid, match="_change_type"):
        stream.at(8, columns=["id", "v"])


@pytest.mark.parametrize("split", SPLITS)
def test_window_that_a_policy_reads_as_a_difference_pairs_no_updates(
    split: Mapping[str, Any],
) -> None:
    answer = expected("rollback_v2")
    pair = answer["expect"]["diff"][0]
    read = {"mode": "changelog", "identifier_columns": [answer["head"]["columns"][0][0]]}
    said = golden("rollback_v2").config(
        read=read, split=dict(split), on_off_lineage="snapshot_diff"
    )
    config = read_source(said)
    source = IcebergSource(config)
    pin = source.timeline.pin(NOW)
    end = source.timeline.named(pin, str(pair["to"]))
    assert end
    window = InstantRange(Instant(str(pair["from"]), NOW), end)
    pinned = source.timeline.at(pin, window.end_inclusive)
    stream = ChangeStream("golden", Reading.of(config, source, pinned), config.split)

    batches = stream.batches(source.slicing.units(pinned, window).pieces)

    kinds = Counter(kind for batch in batches for kind in batch.column("_change_type").to_pylist())
    assert kinds == {
        "DELETE": pair["delete"]["row_count"],
        "INSERT": pair["insert"]["row_count"],
    }


@pytest.mark.parametrize("split", SPLITS)
def test_first_load_of_a_changelog_inserts_the_table_as_it_stands(
    tmp_path: Path, split: Mapping[str, Any]
) -> None:
    stream = Stream("compaction_v2", tmp_path, split)
    pipeline = stream.at(12, start="full", verify_changelog=True)

    load(pipeline, now=NOW)
    publish(pipeline, now=NOW)

    head = expected("compaction_v2")["head"]["rows"]
    commit = expected("compaction_v2")["current_snapshot_id"]
    assert stream.published() == Counter(("INSERT", *row, commit) for row in head)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.follows("ExchangeFileLost")
@pytest.mark.parametrize("damage", [Path.unlink, _empty], ids=["gone", "cut"])
@pytest.mark.parametrize("by_hand", [True, False], ids=["message deleted", "load again"])
def test_exchanged_rows_that_were_lost_are_spread_again(
    tmp_path: Path, damage: Callable[[Path], None], *, by_hand: bool
) -> None:
    stream = Stream("flink_upsert_v2", tmp_path, EXCHANGED)
    pipeline = stream.at(8)
    (window,) = pipeline.plan(Run("run", "cli"), NOW)
    pipeline.stage(window, LocalExecutor(2))
    messages = Path(layout.messages_root(window.uri))
    spread = sorted(Path(layout.exchange_root(window.uri)).rglob("*.arrow"))
    for message in messages.iterdir():
        if message.stem not in {path.parent.name for path in spread}:
            message.unlink()
    damage(spread[0])
    with pytest.raises(ExchangeFileLost, match="below `messages/` of the same plan") as lost:
        pipeline.stage(window, LocalExecutor(2))

    if by_hand:
        (messages / f"{Path(lost.value.path).parent.name}.json").unlink()
    else:
        (window,) = pipeline.plan(Run("run", "cli"), NOW)
    pipeline.stage(window, LocalExecutor(2))
    pipeline.announce((window,), NOW)
    publish(pipeline, now=NOW)

    assert stream.published() == stream.engines()
