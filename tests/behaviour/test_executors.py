"""What every executor promises, on real files: one suite for threads and for Spark tasks."""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hooked_reader import PlainHooks, piece_of, read_pieces
from tidegate.errors import SourceFileGone, StorageFull
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage
from tidegate.model.partition import PartitionField, Transform
from tidegate.predicate import Predicate
from tidegate.stage.sub_split import AttemptPlace, StageSpec, stage_sub_split
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.execute import Executor

FILES = 5
ROWS = 400
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEPT = [number for number in range(FILES * ROWS) if number % 5 < 2]


def stage_file(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
    """Two sub-splits: the halves of one source file."""
    path = f"{plan_uri}/source/{index}.parquet"
    schema = pq.read_schema(path)
    wanted = Predicate.parse("region in ('eu', 'us')", schema, "source.read.filter")
    spec = StageSpec(
        fields=(PartitionField("dt", "at", Transform.DAY),),
        event_time="at",
        counts_until=NOON + timedelta(days=100),
    )
    messages = []
    for half in (0, 1):
        piece = piece_of(path, ROWS // 2, row_start=half * ROWS // 2)
        place = AttemptPlace(plan_uri, "d1d1", f"sub-{index}-{half}", f"{attempt}.x{half}")
        batches = read_pieces([piece], PlainHooks(), filter=wanted, batch_rows=64)
        done = stage_sub_split(batches, schema, spec, place, LocalStorage())
        messages.append(CommitMessage(place.sub_split, place.attempt, done))
    return tuple(messages)


def stage_or_miss(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
    if index == 2:
        raise SourceFileGone(path=f"{plan_uri}/source/zwei „2“.parquet")
    return stage_file(plan_uri, index, attempt)


def stage_or_fill(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
    if index == 2:
        raise StorageFull(path=plan_uri, problem='no space: {"left": 0}\nnone at all')
    return stage_file(plan_uri, index, attempt)


def stage_with_mistake(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
    return (1 / 0,)  # type: ignore[return-value]


@pytest.fixture(
    params=[
        pytest.param("threads", id="threads"),
        pytest.param("one-thread", id="one-thread"),
        pytest.param("spark", marks=pytest.mark.spark, id="spark"),
    ]
)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param != "spark":
        yield LocalExecutor(1 if request.param == "one-thread" else 2)
        return
    from pyspark import cloudpickle

    from tidegate.execute.spark import SparkExecutor

    # Workers cannot import a test module; the product's own tasks travel by their names.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield SparkExecutor(request.getfixturevalue("spark").sparkContext)
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def plan(tmp_path: Path) -> str:
    source = tmp_path / "source"
    source.mkdir()
    regions = ["eu", "us", "apac", "latam", "mea"]
    for index in range(FILES):
        numbers = range(index * ROWS, (index + 1) * ROWS)
        rows = pa.table(
            {
                "n": pa.array(numbers),
                "region": [regions[number % 5] for number in numbers],
                "at": pa.array(
                    [NOON + timedelta(days=number % 3) for number in numbers],
                    pa.timestamp("us", "UTC"),
                ),
            }
        )
        pq.write_table(rows, source / f"{index}.parquet", row_group_size=150)
    return str(tmp_path)


def staged_bytes(plan: str, messages: list[CommitMessage]) -> dict[str, str]:
    """Final path of each file → hash of what stands on disk, checked against the message."""
    found = {}
    for message in messages:
        for part in message.staged.parts:
            content = Path(plan, part.staged).read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (part.length, part.sha256)
            found[f"{part.partition.path}/{part.name}"] = part.sha256
    return found


def test_run_all_splits_stage_every_wanted_row_once(executor: Executor, plan: str) -> None:
    messages = list(executor.run(stage_file, plan, range(FILES), "w1"))

    rows = [
        value
        for message in messages
        for part in message.staged.parts
        for value in pq.read_table(Path(plan, part.staged), partitioning=None)
        .column("n")
        .to_pylist()
    ]
    assert sorted(rows) == KEPT


def test_run_any_executor_gives_the_files_of_one_split_after_another(
    executor: Executor, plan: str
) -> None:
    expected = [item for index in range(FILES) for item in stage_file(plan, index, "oracle")]

    messages = list(executor.run(stage_file, plan, range(FILES), "w1"))

    assert staged_bytes(plan, messages) == staged_bytes(plan, expected)
    assert [item.sub_split for item in messages] == [item.sub_split for item in expected]


def test_run_some_splits_stages_only_those(executor: Executor, plan: str) -> None:
    messages = list(executor.run(stage_file, plan, [3, 1], "w1"))

    assert [item.sub_split for item in messages] == ["sub-3-0", "sub-3-1", "sub-1-0", "sub-1-1"]


def test_run_no_splits_gives_nothing(executor: Executor, plan: str) -> None:
    assert list(executor.run(stage_file, plan, [], "w1")) == []


def test_run_attempts_begin_with_the_windows_attempt(executor: Executor, plan: str) -> None:
    messages = list(executor.run(stage_file, plan, [0, 1], "w7"))

    assert all(item.attempt.startswith("w7.t") for item in messages)
    assert len({item.attempt.rpartition(".")[0] for item in messages}) == 2


def test_run_terminal_error_arrives_as_itself(executor: Executor, plan: str) -> None:
    with pytest.raises(SourceFileGone) as gone:
        list(executor.run(stage_or_miss, plan, range(FILES), "w1"))

    assert gone.value.values == {"path": f"{plan}/source/zwei „2“.parquet"}


def test_run_transient_error_arrives_as_itself(executor: Executor, plan: str) -> None:
    with pytest.raises(StorageFull) as full:
        list(executor.run(stage_or_fill, plan, range(FILES), "w1"))

    assert full.value.values == {"path": plan, "problem": 'no space: {"left": 0}\nnone at all'}


def test_run_mistake_in_a_task_is_not_hidden(executor: Executor, plan: str) -> None:
    with pytest.raises(Exception, match="division by zero"):
        list(executor.run(stage_with_mistake, plan, [0], "w1"))
