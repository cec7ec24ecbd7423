"""One attempt at one sub-split: what is staged, what the message says, what a crash leaves."""

from __future__ import annotations

import datetime as dt
import hashlib
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from tidegate.config import RowRule
from tidegate.errors import KeyMissing, KeyUnusable, StorageFull, StoreSilent
from tidegate.model.message import EventTimes, PartFile, Staged
from tidegate.model.partition import Partition, PartitionField, Transform
from tidegate.model.sort_key import SortKey
from tidegate.model.upload import Upload
from tidegate.stage.part_writers import WriteLimits
from tidegate.stage.sub_split import AttemptPlace, StageSpec, give_up, stage_sub_split
from tidegate.storage import LocalStorage, OsCalls

UTC = dt.UTC
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("amount", pa.float64()),
        ("region", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
BY_DAY_AND_REGION = (
    PartitionField("dt", "at", Transform.DAY),
    PartitionField("region", "region", Transform.IDENTITY),
)


def spec(**changed: Any) -> StageSpec:
    values: dict[str, Any] = {
        "fields": BY_DAY_AND_REGION,
        "event_time": "at",
        "counts_until": NOON + dt.timedelta(days=30),
    }
    return StageSpec(**(values | changed))


def order(
    number: int, amount: float | None = 1.0, region: str | None = "eu", days: int = 0
) -> dict[str, Any]:
    return {"id": number, "amount": amount, "region": region, "at": NOON + dt.timedelta(days=days)}


def batches(*groups: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(group, schema=SCHEMA) for group in groups]


def staged(
    root: Path,
    rows: list[pa.RecordBatch],
    how: StageSpec | None = None,
    *,
    attempt: str = "w1.t0.aa",
    storage: LocalStorage | None = None,
) -> Staged:
    place = AttemptPlace(str(root), "0123456789abcdef", "5b5b5b5b5b5b", attempt)
    return stage_sub_split(rows, SCHEMA, how or spec(), place, storage or LocalStorage())


def content(root: Path, message: Staged) -> dict[str, bytes]:
    """Final path below the table → bytes."""
    return {
        f"{part.partition.path}/{part.name}": (root / part.staged).read_bytes()
        for part in message.parts
    }


def ids(root: Path, staged_path: str) -> list[int]:
    return pq.read_table(root / staged_path, partitioning=None).column("id").to_pylist()


def test_stage_rows_of_several_partitions_each_get_a_file(tmp_path: Path) -> None:
    rows = batches([order(1), order(2, days=1)], [order(3), order(4, region=None)])

    message = staged(tmp_path, rows)

    assert {part.partition.path: ids(tmp_path, part.staged) for part in message.parts} == {
        "dt=2026-03-01/region=eu": [1, 3],
        "dt=2026-03-02/region=eu": [2],
        "dt=2026-03-01/region=__DEFAULT_PARTITION__": [4],
    }


def test_stage_part_is_described_as_it_stands_on_disk(tmp_path: Path) -> None:
    (part,) = staged(tmp_path, batches([order(1)], [order(2)])).parts

    file = tmp_path / part.staged
    assert part.staged == (
        "staged/5b5b5b5b5b5b/w1.t0.aa/dt=2026-03-01/region=eu/"
        "part-0123456789abcdef-5b5b5b5b5b5b-0.zstd.parquet"
    )
    assert part.length == file.stat().st_size
    assert part.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (part.rows, part.event_times) == (2, EventTimes(NOON, NOON))


def test_stage_identity_column_stands_in_the_path_only(tmp_path: Path) -> None:
    (part,) = staged(tmp_path, batches([order(1)])).parts

    assert pq.read_schema(tmp_path / part.staged).names == ["id", "amount", "at"]


def test_stage_event_time_that_is_an_identity_key_is_measured_all_the_same(tmp_path: Path) -> None:
    how = spec(fields=(PartitionField("at", "at", Transform.IDENTITY),))

    message = staged(tmp_path, batches([order(1)]), how)

    assert message.event_times == EventTimes(NOON, NOON)
    assert pq.read_schema(tmp_path / message.parts[0].staged).names == ["id", "amount", "region"]


def test_stage_future_rows_are_written_and_move_no_bound(tmp_path: Path) -> None:
    rows = batches([order(1), order(2, days=30), order(3, days=31)])

    message = staged(tmp_path, rows)

    assert message.rows_kept == 3
    assert message.event_times == EventTimes(NOON, NOON + dt.timedelta(days=30), 0, 1)


def test_stage_quarantined_rows_stand_apart_with_their_rule(tmp_path: Path) -> None:
    rules = (RowRule(name="positive_amount", where="amount >= 0"),)
    rows = batches([order(1), order(2, amount=-1.0), order(3, amount=None)])

    message = staged(tmp_path, rows, spec(rules=rules))

    (aside,) = message.quarantined
    found = pq.read_table(tmp_path / aside.staged)
    assert aside.staged.startswith("quarantine/5b5b5b5b5b5b/w1.t0.aa/positive_amount/part-")
    assert found.select(["id", "region", "quarantined_by"]).to_pylist() == [
        {"id": 2, "region": "eu", "quarantined_by": "positive_amount"},
        {"id": 3, "region": "eu", "quarantined_by": "positive_amount"},
    ]
    assert (message.rows_read, message.rows_kept, message.rule_hits) == (
        3,
        1,
        {"positive_amount": 2},
    )
    assert (aside.partition, aside.rows) == (Partition(()), 2)


def test_stage_files_that_a_message_names_stand_after_a_power_cut(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    stopper = Stopper()
    stopper.disk = Disk(root, tmp_path / "kept")
    rules = (RowRule(name="positive_amount", where="amount >= 0"),)
    rows = batches([order(1), order(2, amount=-1.0)])

    message = staged(root, rows, spec(rules=rules), storage=stopping_storage(stopper))
    stopper.disk.leave(tmp_path / "after", chance("lost", 0))

    assert [
        [ids(tmp_path / "after", part.staged) for part in parts]
        for parts in (message.parts, message.quarantined)
    ] == [[[1]], [[2]]]


def test_stage_hold_rule_names_the_partitions_of_failing_rows(tmp_path: Path) -> None:
    rules = tuple(
        RowRule(name=name, where=where, on_failure="hold")
        for name, where in {"small": "amount < 10", "low": "amount < 50", "known": "id > 0"}.items()
    )
    rows = batches([order(1), order(2, amount=99.0, days=1), order(3, amount=20.0, days=2)])

    message = staged(tmp_path, rows, spec(rules=rules))

    assert [item.partition.path for item in message.held] == [
        "dt=2026-03-02/region=eu",
        "dt=2026-03-03/region=eu",
    ]
    assert [item.rules for item in message.held] == [("low", "small"), ("small",)]
    assert [item.rows for item in message.held] == [{"low": 1, "small": 1}, {"small": 1}]
    assert message.rows_kept == 3


def test_stage_rebuild_of_some_partitions_leaves_the_others_out(tmp_path: Path) -> None:
    wanted = Partition((("dt", "2026-03-02"), ("region", "eu")))
    rules = (RowRule(name="positive_amount", where="amount >= 0"),)
    rows = batches([order(1, amount=-1.0), order(2, days=1)])

    message = staged(tmp_path, rows, spec(only=frozenset({wanted}), rules=rules))

    assert [part.partition for part in message.parts] == [wanted]
    assert (message.rows_kept, message.quarantined, message.rule_hits) == (
        1,
        (),
        {"positive_amount": 0},
    )


def test_stage_no_rows_gives_an_empty_message(tmp_path: Path) -> None:
    message = staged(tmp_path, [])

    assert (message.parts, message.rows_read, message.event_times) == ((), 0, EventTimes())
    assert list(tmp_path.iterdir()) == []


def test_stage_message_survives_json(tmp_path: Path) -> None:
    message = staged(tmp_path, batches([order(1), order(2, region=None)]))

    assert Staged.from_text(message.to_text()) == message


def test_stage_event_time_of_year_one_survives_json(tmp_path: Path) -> None:
    first = {**order(1), "at": dt.datetime(1, 1, 1, tzinfo=UTC)}

    message = staged(tmp_path, batches([first]))

    assert Staged.from_text(message.to_text()).event_times.smallest == first["at"]


def test_stage_second_attempt_has_the_same_names_and_bytes(tmp_path: Path) -> None:
    rows = batches([order(number, days=number % 3) for number in range(50)])

    first = staged(tmp_path, rows, attempt="w1.t0.aa")
    second = staged(tmp_path, rows, attempt="w2.t7.bb")

    assert content(tmp_path, first) == content(tmp_path, second)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_stage_any_cut_into_batches_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    root = tmp_path_factory.mktemp("cut")
    rows = [
        order(number, region=("eu", "us")[number % 2], days=number % 3)
        for number in range(sum(cuts))
    ]
    starts = [sum(cuts[:index]) for index in range(len(cuts))]
    limits = WriteLimits(group_rows=16)

    whole = staged(root, batches(rows), spec(limits=limits), attempt="whole")
    parts = [rows[start : start + cut] for start, cut in zip(starts, cuts, strict=True)]
    pieces = staged(root, batches(*parts), spec(limits=limits), attempt="pieces")

    assert content(root, whole) == content(root, pieces)


def test_stage_leftovers_of_a_killed_attempt_are_not_in_the_message(tmp_path: Path) -> None:
    killed = tmp_path / "staged/5b5b5b5b5b5b/w1.t0.dead/dt=2026-03-01/region=eu"
    killed.mkdir(parents=True)
    (killed / "part-0123456789abcdef-5b5b5b5b5b5b-0.zstd.parquet").write_bytes(b"half a file")

    message = staged(tmp_path, batches([order(1)]))

    assert [ids(tmp_path, part.staged) for part in message.parts] == [[1]]


class FullDisk(OsCalls):
    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        raise OSError(28, "No space left on device")


def test_stage_full_disk_is_transient_and_leaves_no_file_open(tmp_path: Path) -> None:
    with pytest.raises(StorageFull, match="No space left"):
        staged(tmp_path, batches([order(1)]), storage=LocalStorage(FullDisk()))

    files = list(Path("/proc/self/fd").iterdir())
    assert not [link for link in files if link.exists() and str(tmp_path) in str(link.resolve())]


def test_stage_reader_that_fails_is_raised_as_itself(tmp_path: Path) -> None:
    def failing() -> Any:
        yield from batches([order(1)])
        msg = "the source broke"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="the source broke"):
        staged(tmp_path, failing())


def test_stage_forces_every_file_and_directory_of_the_attempt_to_the_disk(tmp_path: Path) -> None:
    synced: list[str] = []

    class Watching(LocalStorage):
        def sync(self, path: str) -> None:
            synced.append(str(Path(path).relative_to(tmp_path)))

    message = staged(tmp_path, batches([order(1)]), storage=Watching())

    attempt = "staged/5b5b5b5b5b5b/w1.t0.aa"
    assert sorted(synced) == [
        ".",
        "staged",
        "staged/5b5b5b5b5b5b",
        attempt,
        f"{attempt}/dt=2026-03-01",
        f"{attempt}/dt=2026-03-01/region=eu",
        message.parts[0].staged,
    ]


def test_stage_many_times_the_buffer_keeps_memory_bounded(tmp_path: Path) -> None:
    size = 20_000
    buffer = 256 << 10
    limits = WriteLimits(group_rows=1 << 20, buffer_bytes=buffer)
    peaks = []

    def read() -> Any:
        at = pa.array([NOON] * size, SCHEMA.field("at").type)
        for number in range(60):
            ids_ = pa.array(range(number * size, (number + 1) * size))
            yield pa.RecordBatch.from_arrays(
                [ids_, ids_.cast(pa.float64()), pa.array(["eu", "us"] * (size // 2)), at],
                schema=SCHEMA,
            )
            peaks.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    message = staged(tmp_path, read(), spec(limits=limits))

    batch_bytes = size * 40
    assert message.rows_kept == 60 * size
    assert max(peaks) - before < buffer + 6 * batch_bytes


_WITHOUT_PANDAS = """
import sys
from datetime import datetime, UTC
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from tidegate.config import RowRule
from tidegate.model.partition import PartitionField, Transform
from tidegate.predicate import Predicate
from hooked_reader import PlainHooks, piece_of, read_pieces
from tidegate.stage.sub_split import AttemptPlace, StageSpec, stage_sub_split
from tidegate.storage import LocalStorage

root = sys.argv[1]
schema = pq.read_schema(f"{root}/in.parquet")
spec = StageSpec(
    fields=(PartitionField("dt", "at", Transform.DAY), PartitionField("r", "region",
    Transform.IDENTITY)),
    timezone="Europe/Berlin", rules=(RowRule(name="p", where="amount >= 0"),),
    event_time="at", counts_until=datetime(2027, 1, 1, tzinfo=UTC),
)
rows = read_pieces(
    [piece_of(f"{root}/in.parquet", 3)],
    PlainHooks(),
    filter=Predicate.parse("id > 0", schema, "filter"),
)
message = stage_sub_split(rows, schema, spec, AttemptPlace(root, "d", "s", "a"), LocalStorage())
assert message.rows_kept == 2 and message.quarantined, message
print("pandas" in sys.modules)
"""


def test_stage_in_a_fresh_process_imports_no_pandas(tmp_path: Path) -> None:
    rows = [order(1), order(2, amount=-1.0), order(3, region=None)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "in.parquet")

    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PANDAS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout.strip() == "False", ran.stderr


CHANGES = pa.schema([("id", pa.int64()), ("region", pa.string()), ("_change_type", pa.string())])
BY_REGION = (PartitionField("region", "region", Transform.IDENTITY),)


def changed(tmp_path: Path, rows: list[tuple[int | None, str]], **said: Any) -> Staged:
    """Stage changes of keys, which are of no event time."""
    told = [{"id": key, "region": "eu", "_change_type": kind} for key, kind in rows]
    how = StageSpec(fields=BY_REGION, keys=("id",), **said)
    batch = pa.RecordBatch.from_pylist(told, schema=CHANGES)
    place = AttemptPlace(str(tmp_path), "0123456789abcdef", "5b5b5b5b5b5b", "w1.t0.aa")
    return stage_sub_split([batch], CHANGES, how, place, LocalStorage())


def keys_in(tmp_path: Path, files: tuple[PartFile, ...]) -> list[int | None]:
    read = [pq.read_table(tmp_path / part.staged, partitioning=None) for part in files]
    return [key for table in read for key in table["id"].to_pylist()]


def test_stage_change_without_a_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyMissing):
        changed(tmp_path, [(1, "INSERT"), (None, "DELETE")])


def test_stage_rules_put_aside_what_stands_and_what_has_no_key_but_no_delete(
    tmp_path: Path,
) -> None:
    rule = RowRule(name="sane", where="id > 1")
    rows = [(1, "INSERT"), (1, "DELETE"), (2, "INSERT"), (None, "DELETE")]

    message = changed(tmp_path, rows, rules=(rule,))

    assert Counter(keys_in(tmp_path, message.parts)) == Counter([1, 2])
    assert Counter(keys_in(tmp_path, message.quarantined)) == Counter([1, None])


def test_stage_changes_keep_their_order_whatever_sorts_published_rows(tmp_path: Path) -> None:
    rows = [(3, "INSERT"), (1, "INSERT"), (2, "INSERT")]

    message = changed(tmp_path, rows, sort_by=(SortKey("id"),))

    assert keys_in(tmp_path, message.parts) == [3, 1, 2]


@pytest.mark.parametrize(
    "kind", [pa.float64(), pa.decimal256(50, 0), pa.list_(pa.int64())], ids=str
)
def test_stage_keys_that_cannot_be_told_apart_are_refused(
    tmp_path: Path, kind: pa.DataType
) -> None:
    place = AttemptPlace(str(tmp_path), "0123456789abcdef", "5b5b5b5b5b5b", "w1.t0.aa")

    with pytest.raises(KeyUnusable):
        stage_sub_split([], pa.schema([("k", kind)]), StageSpec(keys=("k",)), place, LocalStorage())


def test_stage_rows_that_were_handed_on_are_judged_and_chosen_only_before() -> None:
    rule = RowRule(name="sane", where="amount > 0")
    first = spec(rules=(rule,), only=frozenset({Partition((("dt", "2026-03-01"),))}))

    assert first.of_assembly == spec()


@dataclass(frozen=True)
class HalfSilent(LocalStorage):
    """A store that does not answer to the first request."""

    asked: list[str] = field(default_factory=list, compare=False)

    def give_up(self, path: str, upload: str) -> None:
        self.asked.append(upload)
        if len(self.asked) == 1:
            raise StoreSilent(path=path, problem="no answer")


def test_upload_that_cannot_be_given_up_keeps_no_other_from_it() -> None:
    storage = HalfSilent()

    give_up(storage, [Upload(f"s3://lake/{name}", name, "writer", ()) for name in "ab"])

    assert storage.asked == ["a", "b"]
