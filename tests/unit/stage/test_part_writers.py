"""Part files: cut into groups and files, never too many open, the same bytes for the same rows."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.message import EventTimes, PartFile
from tidegate.model.partition import Partition
from tidegate.model.sort_key import SortKey
from tidegate.read.sorted_rows import RowOrder
from tidegate.stage.handing_on import HandedOn
from tidegate.stage.part_writers import Destination, PartShape, PartWriters, WriteLimits

if TYPE_CHECKING:
    from collections.abc import Sequence


class Disk:
    """Files in memory; knows how many were open at once."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.open: set[str] = set()
        self.most_open = 0

    def opened(self, _: Destination, path: str) -> BinaryIO:
        assert path not in self.files
        disk = self

        class _File(io.BytesIO):
            def close(self) -> None:
                disk.files[path] = self.getvalue()
                disk.open.discard(path)
                super().close()

        self.open.add(path)
        self.most_open = max(self.most_open, len(self.open))
        return _File()

    def rows(self, folder: str) -> list[int]:
        found = [path for path in self.files if path.startswith(f"{folder}/")]
        # The tenth file comes after the second.
        names = sorted(found, key=lambda path: int(path.rpartition("-")[2]))
        return [
            value
            for name in names
            for value in pq.read_table(pa.BufferReader(self.files[name])).column("n").to_pylist()
        ]


def writers(disk: Disk, handed_on: HandedOn | None = None, **limits: int) -> PartWriters:
    shape = PartShape(("n",), lambda rows: EventTimes(missing=rows.num_rows))
    return PartWriters(
        disk.opened,
        lambda n: f"part-{n}",
        shape,
        WriteLimits(**limits),
        handed_on,
    )


def numbers(*values: int) -> pa.RecordBatch:
    column = pa.array(values, pa.int64())
    return pa.RecordBatch.from_arrays([column, column], ["n", "only_measured"])


def to(name: str) -> Destination:
    return Destination(Partition((("k", name),)), f"staged/k={name}")


def write(disk: Disk, appends: list[tuple[str, list[int]]], **limits: int) -> tuple[PartFile, ...]:
    made = writers(disk, **limits)
    for name, values in appends:
        made.append(to(name), numbers(*values))
    return made.close()


def test_close_describes_each_file_as_it_stands() -> None:
    disk = Disk()

    (part,) = write(disk, [("a", [1, 2]), ("a", [3])])

    content = disk.files["staged/k=a/part-0"]
    assert part == PartFile(
        partition=to("a").partition,
        name="part-0",
        staged="staged/k=a/part-0",
        length=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        rows=3,
        event_times=EventTimes(missing=3),
    )


def test_append_columns_only_measured_are_not_written() -> None:
    disk = Disk()
    write(disk, [("a", [1])])

    assert pq.read_schema(pa.BufferReader(disk.files["staged/k=a/part-0"])).names == ["n"]


def test_append_more_rows_than_a_group_cuts_at_the_exact_row() -> None:
    disk = Disk()
    write(disk, [("a", list(range(7))), ("a", list(range(7, 10)))], group_rows=4)

    metadata = pq.read_metadata(pa.BufferReader(disk.files["staged/k=a/part-0"]))
    groups = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert groups == [4, 4, 2]


def test_append_file_over_its_size_begins_the_next() -> None:
    disk = Disk()

    parts = write(disk, [("a", list(range(10)))], group_rows=4, file_bytes=1)

    assert [(part.name, part.rows, part.event_times.missing) for part in parts] == [
        ("part-0", 4, 4),
        ("part-1", 4, 4),
        ("part-2", 2, 2),
    ]
    assert disk.rows("staged/k=a") == list(range(10))


def test_append_file_exactly_at_its_size_goes_on() -> None:
    probe, disk = Disk(), Disk()
    made = writers(probe, group_rows=4)
    made.append(to("a"), numbers(1, 2, 3, 4))
    size = made._open[to("a")].file.target.length  # the bytes of one group without a footer
    made.close()

    parts = write(disk, [("a", [1, 2, 3, 4]), ("a", [5])], group_rows=4, file_bytes=size)

    assert len(parts) == 1


def test_append_too_many_files_lets_the_rows_of_others_wait() -> None:
    disk = Disk()

    parts = write(
        disk,
        [("a", [1]), ("b", [2]), ("a", [3]), ("c", [4]), ("b", [5]), ("c", [6])],
        group_rows=1,
        open_files=2,
    )

    assert disk.most_open == 2
    assert [(part.staged, part.rows) for part in parts] == [
        (f"staged/k={name}/part-0", 2) for name in "abc"
    ]
    assert [disk.rows(f"staged/k={name}") for name in "abc"] == [[1, 3], [2, 5], [4, 6]]


def test_append_file_that_was_closed_makes_room_for_rows_that_waited() -> None:
    disk = Disk()
    made = writers(disk, group_rows=2, open_files=1, file_bytes=1)

    made.append(to("a"), numbers(1))
    made.append(to("b"), numbers(2, 3))
    assert len(disk.files) == 1, "rolled"
    made._files = 1  # as if another file were open
    made.append(to("c"), numbers(4, 5))
    assert len(disk.files) == 1
    made._files = 0
    made.append(to("c"), numbers(6, 7))

    assert disk.rows("staged/k=c") == [4, 5, 6, 7]
    made.close()


def test_append_more_destinations_than_open_files_still_makes_one_file_each() -> None:
    disk = Disk()
    turns = [(name, [number]) for number in range(3) for name in "abcd"]

    parts = write(disk, turns, group_rows=10, open_files=2)

    assert [(part.staged, part.rows) for part in parts] == [
        (f"staged/k={name}/part-0", 3) for name in "abcd"
    ]
    assert disk.most_open == 1


def test_append_too_many_destinations_lets_the_least_recent_wait() -> None:
    disk = Disk()

    parts = write(
        disk, [("a", [1]), ("b", [2]), ("c", [3]), ("a", [4])], destinations=2, open_files=1
    )

    assert [(part.staged, part.rows) for part in parts] == [
        ("staged/k=a/part-0", 2),
        ("staged/k=b/part-0", 1),
        ("staged/k=c/part-0", 1),
    ]
    assert disk.rows("staged/k=a") == [1, 4]


def test_append_over_the_buffer_writes_a_large_one_first() -> None:
    disk = Disk()
    made = writers(disk, buffer_bytes=100, early_bytes=80)

    made.append(to("a"), numbers(*range(5)))
    made.append(to("b"), numbers(*range(2)))

    assert disk.open == {"staged/k=a/part-0"}
    assert [part.rows for part in made.close()] == [5, 2]


def test_append_over_the_buffer_lets_small_ones_wait() -> None:
    disk = Disk()
    made = writers(disk, buffer_bytes=100, early_bytes=81)

    for _ in range(3):
        made.append(to("a"), numbers(*range(5)))
        made.append(to("b"), numbers(*range(2)))

    assert disk.open == set()
    assert [part.rows for part in made.close()] == [15, 6]
    metadata = pq.read_metadata(pa.BufferReader(disk.files["staged/k=a/part-0"]))
    assert metadata.num_row_groups == 1, "they are one row group all the same"


NARROW = st.fixed_dictionaries(
    {
        "group_rows": st.integers(1, 8),
        "group_bytes": st.integers(16, 300),
        "buffer_bytes": st.integers(16, 400),
        "early_bytes": st.integers(0, 100),
        "destinations": st.integers(1, 4),
        "open_files": st.integers(1, 3),
    }
)
APPENDS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=9)),
    max_size=12,
)


@given(APPENDS, NARROW)
def test_each_destination_gets_one_file_however_narrow_the_limits(
    appends: list[tuple[str, list[int]]], limits: dict[str, int]
) -> None:
    disk = Disk()

    parts = write(disk, appends, **limits)

    assert [part.staged for part in parts] == [
        f"staged/k={name}/part-0" for name in sorted({name for name, _ in appends})
    ]
    assert disk.most_open <= limits["open_files"]
    for name in "abcd":
        assert disk.rows(f"staged/k={name}") == [
            value for to, values in appends if to == name for value in values
        ]


def sorted_writers(disk: Disk, **limits: int) -> PartWriters:
    order = RowOrder((SortKey("n", descending=True),))
    shape = PartShape(("n", "at"), lambda rows: EventTimes(missing=rows.num_rows), order=order)
    return PartWriters(disk.opened, lambda n: f"part-{n}", shape, WriteLimits(**limits))


@given(APPENDS, NARROW)
def test_sorted_rows_are_the_same_bytes_however_narrow_the_limits(
    appends: list[tuple[str, list[int]]], limits: dict[str, int]
) -> None:
    wide, narrow = Disk(), Disk()
    limits["group_bytes"] = 1 << 20  # row groups would differ
    sizes = {"group_rows": limits["group_rows"], "file_bytes": 500}

    for disk, given_limits in ((wide, sizes), (narrow, limits | sizes)):
        made = sorted_writers(disk, **given_limits)
        for at, (name, values) in enumerate(appends):
            numbered = pa.array([100 * at + place for place in range(len(values))], pa.int64())
            rows = [pa.array(values, pa.int64()), numbered]
            made.append(to(name), pa.RecordBatch.from_arrays(rows, ["n", "at"]))
        made.close()

    assert narrow.files == wide.files
    for name in "abcd":
        assert narrow.rows(f"staged/k={name}") == sorted(
            (value for to, values in appends if to == name for value in values), reverse=True
        )


def test_sorted_files_follow_one_another() -> None:
    disk = Disk()
    made = sorted_writers(disk, group_rows=2, file_bytes=1, buffer_bytes=40)
    for value in (3, 1, 4, 1, 5, 9, 2, 6):
        made.append(to("a"), pa.record_batch({"n": [value], "at": [0]}))

    parts = made.close()

    contents = [pq.read_table(pa.BufferReader(disk.files[part.staged])) for part in parts]
    assert [it.column("n").to_pylist() for it in contents] == [[9, 6], [5, 4], [3, 2], [1, 1]]


def test_file_that_fails_while_rows_wait_is_abandoned_with_them() -> None:
    disk = Disk()
    made = writers(disk, group_rows=1, open_files=1)
    for name in "aba":
        made.append(to(name), numbers(1))

    made.abandon()

    assert disk.open == set()
    assert len(disk.files) == 1


def test_append_wide_rows_write_a_group_by_its_bytes() -> None:
    disk = Disk()
    write(disk, [("a", [1, 2]), ("a", [3]), ("a", [4])], group_bytes=40)

    assert pq.read_metadata(pa.BufferReader(disk.files["staged/k=a/part-0"])).num_row_groups == 2


def test_abandon_closes_what_is_open() -> None:
    disk = Disk()
    made = writers(disk, group_rows=1)
    made.append(to("a"), numbers(1))

    made.abandon()

    assert disk.open == set()
    with pytest.raises(pa.ArrowInvalid):
        pq.read_metadata(pa.BufferReader(disk.files["staged/k=a/part-0"]))


def test_close_without_rows_leaves_no_file() -> None:
    disk = Disk()

    assert write(disk, []) == ()
    assert disk.files == {}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=12))
def test_append_any_cut_into_batches_gives_the_same_bytes(runs: list[tuple[str, int]]) -> None:
    rows = [(name, position) for position, (name, count) in enumerate(runs) for _ in range(count)]
    one, other = Disk(), Disk()

    write(one, [(name, [value]) for name, value in rows], group_rows=5, file_bytes=300)
    write(
        other,
        [(name, [at] * count) for at, (name, count) in enumerate(runs)],
        group_rows=5,
        file_bytes=300,
    )

    assert one.files == other.files


class Bag(HandedOn):
    """Keeps what it is handed; with `wants`, nothing of others."""

    def __init__(self, wants: set[str] | None = None) -> None:
        super().__init__(lambda *_: None, 1, 32)
        self.wants = wants
        self.held: dict[str, list[int]] = {}

    def take(self, partition: Partition, batches: Sequence[pa.RecordBatch]) -> bool:
        name = str(dict(partition.values)["k"])
        if self.wants is not None and name not in self.wants:
            return False
        values = [value for rows in batches for value in rows.column("n").to_pylist()]
        self.held.setdefault(name, []).extend(values)
        return True


@given(
    appends=st.lists(
        st.tuples(st.sampled_from("abcd"), st.lists(st.integers(0, 99), min_size=1, max_size=9)),
        max_size=12,
    ),
    wants=st.none() | st.sets(st.sampled_from("abcd")),
    limits=st.fixed_dictionaries(
        {
            "group_rows": st.integers(1, 8),
            "buffer_bytes": st.integers(16, 400),
            "destinations": st.integers(1, 4),
            "open_files": st.integers(1, 3),
            "small_bytes": st.integers(0, 200),
        }
    ),
)
def test_every_row_is_written_or_handed_on(
    appends: list[tuple[str, list[int]]], wants: set[str] | None, limits: dict[str, int]
) -> None:
    disk, bag = Disk(), Bag(wants)
    made = writers(disk, bag, **limits)
    for name, values in appends:
        made.append(to(name), numbers(*values))

    parts = made.close()

    for name in "abcd":
        wanted = Counter(value for to, values in appends if to == name for value in values)
        assert Counter(disk.rows(f"staged/k={name}")) + Counter(bag.held.get(name)) == wanted
    assert sum(part.rows for part in parts) == sum(
        len(disk.rows(f"staged/k={name}")) for name in "abcd"
    )
    if wants is not None:
        assert set(bag.held) <= wants


def test_file_that_is_not_small_is_written_here() -> None:
    disk, bag = Disk(), Bag()
    made = writers(disk, bag, small_bytes=64)

    made.append(to("a"), numbers(1, 2, 3))
    made.append(to("b"), numbers(1, 2, 3, 4))
    made.close()

    assert bag.held == {"a": [1, 2, 3]}, "48 bytes"
    assert disk.rows("staged/k=b") == [1, 2, 3, 4], "64 bytes"
    assert not disk.rows("staged/k=a")


def test_rest_of_a_file_that_was_begun_is_written_there() -> None:
    disk, bag = Disk(), Bag()
    made = writers(disk, bag, group_rows=2)

    made.append(to("a"), numbers(1, 2, 3))
    (part,) = made.close()

    assert (part.rows, bag.held) == (3, {})


def test_small_buffers_leave_memory_together() -> None:
    disk, bag = Disk(), Bag()
    made = writers(disk, bag, small_bytes=64, buffer_bytes=100)

    for name in "abc":
        made.append(to(name), numbers(1, 2, 3))

    assert bag.held == {name: [1, 2, 3] for name in "abc"}
    assert made.close() == ()


def test_rows_that_wait_are_not_overtaken_once_another_file_is_closed() -> None:
    disk = Disk()
    made = writers(
        disk, open_files=1, group_rows=10, file_bytes=600, buffer_bytes=99, early_bytes=9
    )
    made.append(to("a"), numbers(*range(10)))
    made.append(to("b"), numbers(*range(10)))
    assert disk.open
    while disk.open:
        made.append(to("a"), numbers(*range(10)))

    made.append(to("b"), numbers(*range(10, 19)))
    made.close()

    assert disk.rows(to("b").folder) == [*range(19)]
