"""Filters pushed into decoding, against decoding everything and filtering then."""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooked_reader import PlainHooks, piece_of, read_pieces
from tidegate.errors import PredicateInvalid, SourceFileDamaged
from tidegate.physical import ParquetRows, RowGroup, pushed_filter
from tidegate.physical.protocol import Passing
from tidegate.physical.pushed_filter import can_push, filtered_batches, portions
from tidegate.predicate import Predicate
from tidegate.read.removed import FileStates, Removed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.model.plan import Piece

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "7"}),
        pa.field("x", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("at", pa.timestamp("us", "Europe/Berlin")),
        pa.field("naive", pa.timestamp("ns")),
        pa.field("day", pa.date32()),
        pa.field("ok", pa.bool_()),
        pa.field("small", pa.uint8()),
        pa.field("price", pa.decimal128(7, 2)),
        pa.field("weight", pa.decimal128(30, 9)),
    ]
)
SCHEMA_OF_NUMBERS = pa.schema(
    [pa.field("n", pa.int64(), nullable=False), pa.field("m", pa.int64(), nullable=False)]
)
ROW = st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -2.5]),
    st.none() | st.sampled_from(["", "eu", "us", "ü"]),
    st.none()
    | st.sampled_from([dt.datetime(2026, 3, 1, hour, tzinfo=dt.UTC) for hour in range(4)]),
    st.none() | st.just(dt.datetime.fromisoformat("2026-03-01T00:00:00")),
    st.none() | st.dates(dt.date(2026, 3, 1), dt.date(2026, 3, 3)),
    st.none() | st.booleans(),
    st.none() | st.integers(0, 255),
    st.none() | st.decimals(-99_999, 99_999, places=2),
    st.none() | st.decimals(-9, 9, places=9),
)
FILTERS = [
    "n > 0",
    "n is null or n in (1, 2)",
    "not (n > 0)",
    "x > 1",
    "x >= 0 and ok",
    "x <> 1.5",
    "text in ('eu', 'us')",
    "text like 'e%' or text = ''",
    "day >= date '2026-03-02'",
    "at < timestamp '2026-03-01 02:00:00.0000005'",
    "not (naive >= '2026-03-01 00:00:00.000000001')",
    "n > small",
    "coalesce(n, 1) = 1",
    "text is null",
    "ok",
    "x = x",
    "price >= 1.5",
    "price < weight",
    "n * 2 > 1 and n - 7 < -1",
    "small - 9 < 0 or small * 200 > 1000",
    "-n > small % 3",
    "length(text) - 1 > 0",
    "ok is not true",
    "ok is true or ok is not distinct from false",
]


class Format(PlainHooks):
    """Plain files; `blind` ones cannot be read by their descriptor; `gone` rows are deleted."""

    def __init__(self, *, blind: bool = False, gone: Sequence[int] = ()) -> None:
        self.blind = blind
        positions = pa.array(gone, pa.int64()) if gone else None
        self.sides = FileStates(None, Removed(positions))
        self.conformed = 0

    def open(self, piece: Piece) -> ParquetRows:
        file = pa.OSFile(piece.path)
        return ParquetRows(pa.BufferReader(file.read_buffer()) if self.blind else file)

    def removed(self, piece: Piece) -> FileStates:
        return self.sides

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        self.conformed += batch.num_rows
        return batch


def read(format_: Any, path: str, text: str, start: int, rows: int, **more: Any) -> pa.Table:
    schema = pq.read_schema(path)
    wanted = Predicate.parse(text, more.pop("schema", schema), "source.read.filter")
    batches = list(
        read_pieces([piece_of(path, rows, row_start=start)], format_, filter=wanted, **more)
    )
    return pa.Table.from_batches(batches, batches[0].schema if batches else schema)


def same(one: pa.Table, other: pa.Table) -> bool:
    """Equal with NaN as a value, and with equal types and field ids."""
    return one.schema.equals(other.schema, check_metadata=True) and str(one.to_pylist()) == str(
        other.to_pylist()
    )


@given(
    st.lists(ROW, min_size=1, max_size=40),
    st.sampled_from(FILTERS),
    st.integers(1, 9),
    st.integers(1, 9),
    st.data(),
)
def test_read_pushed_filter_any_rows_equals_filtering_afterwards(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Any, ...]],
    text: str,
    group_rows: int,
    batch_rows: int,
    data: st.DataObject,
) -> None:
    path = str(tmp_path_factory.mktemp("pushed") / "in.parquet")
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), path, row_group_size=group_rows)
    start = data.draw(st.integers(0, len(rows) - 1))
    count = data.draw(st.integers(1, len(rows) - start))
    gone = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pushed_filter, "TOGETHER_ROWS", data.draw(st.integers(1, 40)))
        pushed = read(Format(gone=gone), path, text, start, count, batch_rows=batch_rows)
    blind = Format(blind=True, gone=gone)
    plain = read(blind, path, text, start, count, batch_rows=batch_rows)

    assert same(pushed, plain)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def _write(**columns: Any) -> str:
        path = str(tmp_path / "in.parquet")
        pq.write_table(pa.table(columns), path)
        return path

    return _write


def test_read_pushed_filter_makes_only_rows_that_pass(write: Callable[..., str]) -> None:
    format_ = Format()

    read(format_, write(n=list(range(1_000))), "n < 10", 0, 1_000)

    assert format_.conformed == 10 + 1  # and one to see what conforming does


@pytest.mark.parametrize(
    ("kind", "values", "text", "expected"),
    [
        (pa.int64(), [100, 200, (1 << 63) - 1], "x * 2 > 150", [0, 1, 2]),
        (pa.int32(), [1, 2, (1 << 31) - 1], "x + 1 > 2", [1, 2]),
        (pa.int16(), [300, -300, 5], "x * 200 > 0", [0, 2]),
        (pa.int8(), [-128, -1, 2], "-x > 0", [0, 1]),
        (pa.int8(), [-128, 1, -3], "abs(x) > 2", [0, 2]),
        (pa.uint8(), [200, 5], "x + 100 > 101", [0, 1]),
        (pa.uint32(), [0, 5], "x - 1 < 2", [0]),
        (pa.uint64(), [0, (1 << 64) - 1], "x * 2 > 5", [1]),
        (pa.int32(), [-3, 0, 1], "x * x > 4", [0]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_read_computed_condition_loses_no_row_group(
    write: Callable[..., str],
    kind: pa.DataType,
    values: list[int],
    text: str,
    expected: list[int],
) -> None:
    path = write(id=list(range(len(values))), x=pa.array(values, kind))

    found = read(Format(), path, text, 0, len(values))

    assert found.column("id").to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "is_skipped"),
    [
        ("n > 1500", True),
        ("n >= 1500 or n is null", True),
        ("not (n < 1500)", True),
        ("n * 1 > 1500", False),
    ],
)
def test_read_row_group_that_its_statistics_rule_out_is_not_decoded(
    tmp_path: Path, text: str, is_skipped: bool
) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"n": range(2_000)}), path, row_group_size=1_000, compression="none")
    first = pq.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[first.data_page_offset : first.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    wanted = Predicate.parse(text, pq.read_schema(path), "source.read.filter")

    with pa.OSFile(str(path)) as file:
        batches = filtered_batches(
            file, pq.read_schema(path), (0, 2_000), Passing(wanted, None), 1_000
        )
        if is_skipped:
            assert next(batches).column("n")[-1].as_py() >= 1_600
        else:
            with pytest.raises(pushed_filter.STOPPED):
                next(batches)


def test_read_nan_outside_the_statistics_is_found(write: Callable[..., str]) -> None:
    path = write(x=[1.0, float("nan")])

    assert str(read(Format(), path, "x > 2", 0, 2).column("x").to_pylist()) == "[nan]"


def test_read_columns_that_swap_names_are_filtered_by_their_new_names(
    write: Callable[..., str],
) -> None:
    class Swapping(Format):
        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays([batch.column("a"), batch.column("b")], ["b", "a"])

    found = read(Swapping(), write(a=[1, 2, 3], b=[30, 20, 10]), "a > 15", 0, 3)

    assert found.to_pylist() == [{"b": 1, "a": 30}, {"b": 2, "a": 20}]


def test_read_promoted_column_is_filtered_as_the_new_type(write: Callable[..., str]) -> None:
    class Negating(Format):
        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays([pa.compute.negate(batch.column("a"))], ["a"])

    assert read(Negating(), write(a=[1, -2]), "a > 0", 0, 2).column("a").to_pylist() == [2]


def test_read_text_that_polars_refuses_is_read_the_plain_way(write: Callable[..., str]) -> None:
    broken = pa.array([b"\xff\xfe", b"ok"], pa.binary())
    text = pa.StringArray.from_buffers(2, broken.buffers()[1], broken.buffers()[2])
    path = write(n=[1, 2], text=text)

    found = read(Format(), path, "n > 0", 0, 2)

    assert found.column("n").to_pylist() == [1, 2]
    assert found.column("text").cast(pa.binary()).to_pylist() == [b"\xff\xfe", b"ok"]


def test_read_trouble_half_way_goes_on_behind_the_rows_given(tmp_path: Path) -> None:
    path = str(tmp_path / "in.parquet")
    good = pa.array([str(n) for n in range(100)])
    bad = pa.array([b"\xff"] * 100, pa.binary())
    bad_text = pa.StringArray.from_buffers(100, bad.buffers()[1], bad.buffers()[2])
    with pq.ParquetWriter(path, pa.schema([("n", pa.int64()), ("text", pa.string())])) as writer:
        for start, text in ((0, good), (100, good), (200, bad_text)):
            numbers = pa.array(range(start, start + 100))
            writer.write_table(pa.table({"n": numbers, "text": text}))

    found = read(Format(), path, "n >= 0", 0, 300, batch_rows=7)

    assert found.column("n").to_pylist() == list(range(300))


def test_read_filter_that_cannot_be_computed_names_the_filter(write: Callable[..., str]) -> None:
    path = write(text=["1", "two"])

    with pytest.raises(PredicateInvalid, match=r"source\.read\.filter"):
        read(Format(), path, "cast(text as int) > 0", 0, 2)


@pytest.mark.parametrize("files", [1, 3])
def test_read_page_on_which_polars_panics_is_no_end_of_the_rows(tmp_path: Path, files: int) -> None:
    rows = pa.table({"n": [1] * 80, "m": [0, 1] * 40}, SCHEMA_OF_NUMBERS)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(files)]
    for path in paths:
        pq.write_table(rows, path, compression="none")
    content = bytearray(Path(paths[0]).read_bytes())
    # A page of `m` is the bits of an index, their number, and 40 times both values.
    content[content.index(b"\xaa" * 10) - 2] = 47
    Path(paths[0]).write_bytes(content)

    def ends() -> None:
        wanted = Predicate.parse("n > 0", SCHEMA_OF_NUMBERS, "source.read.filter")
        list(read_pieces([piece_of(path, 80) for path in paths], Format(), filter=wanted))

    with pytest.raises(SourceFileDamaged, match=r"0\.parquet.*bit_width"):
        ends()


def test_read_damaged_page_under_a_filter_names_the_file(
    write: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "damaged.parquet"
    with pa.OSFile(write(n=list(range(1_000)))) as file:
        content = bytearray(file.read())
    content[8:600] = b"\xff" * 592
    path.write_bytes(content)

    with pytest.raises(SourceFileDamaged, match=r"damaged\.parquet"):
        read(Format(), str(path), "n > 0", 0, 1_000)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        pytest.param(pa.array([1], pa.int32()), True, id="integer"),
        pytest.param(pa.array(["a"]), True, id="text"),
        pytest.param(pa.array([0], pa.timestamp("us")), True, id="timestamp"),
        pytest.param(pa.array([1], pa.decimal128(5, 2)), True, id="decimal"),
        pytest.param(pa.array([b"abcd"], pa.binary(4)), False, id="fixed-binary"),
        pytest.param(pa.array([0], pa.time64("us")), False, id="time"),
        pytest.param(pa.array([[1]]), False, id="list"),
        pytest.param(pa.array([{"a": 1}]), False, id="struct"),
        pytest.param(pa.array([1.0], pa.float16()), False, id="half"),
        pytest.param(pa.array(["a"]).dictionary_encode(), False, id="dictionary"),
    ],
)
def test_can_push_plain_types_only(
    write: Callable[..., str], column: pa.Array, expected: bool
) -> None:
    with pa.OSFile(write(c=column)) as file:
        assert can_push(file, pq.ParquetFile(file), ["c"]) is expected


def test_can_push_int96_and_large_groups_are_refused(tmp_path: Path) -> None:
    old, large = str(tmp_path / "old.parquet"), str(tmp_path / "large.parquet")
    moments = pa.table({"at": pa.array([0], pa.timestamp("us"))})
    pq.write_table(moments, old, use_deprecated_int96_timestamps=True)
    many = pa.table({"n": pa.repeat(pa.scalar(1), (1 << 21) + 1)})
    pq.write_table(many, large, row_group_size=1 << 22)

    for path, name in ((old, "at"), (large, "n")):
        with pa.OSFile(path) as file:
            assert not can_push(file, pq.ParquetFile(file), [name])


def test_can_push_counts_the_bytes_of_wanted_columns_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "wide.parquet")
    wide = pa.repeat(pa.scalar("x" * 1_000), 150_000)
    pq.write_table(pa.table({"n": range(150_000), "wide": wide}), path, use_dictionary=False)

    with pa.OSFile(path) as file:
        parquet = pq.ParquetFile(file)

        assert can_push(file, parquet, ["n"])
        assert not can_push(file, parquet, ["n", "wide"])


@given(
    st.lists(st.builds(RowGroup, st.integers(0, 600_000), st.integers(0, 12 << 20)), max_size=12),
    st.data(),
)
def test_portions_any_groups_are_whole_groups_that_make_up_the_range(
    groups: list[RowGroup], data: st.DataObject
) -> None:
    total = sum(group.rows for group in groups)
    start = data.draw(st.integers(0, total))
    end = data.draw(st.integers(start, total))
    edges = {sum(group.rows for group in groups[:count]) for count in range(len(groups) + 1)}

    found = list(portions(groups, start, end))

    assert all(low < high for low, high in found)
    assert sum(high - low for low, high in found) == end - start
    assert all(one[1] == other[0] for one, other in itertools.pairwise(found))
    assert {edge for rows in found for edge in rows} <= edges | {start, end}
    for low, high in found:
        inside = [edge for edge in edges if low < edge < high]
        assert not inside or high - low <= 1 << 18


def test_portions_large_group_is_alone_and_small_ones_go_together() -> None:
    groups = [RowGroup(1_000, 10)] * 3 + [RowGroup(400_000, 10)] + [RowGroup(9, 9 << 20)] * 2

    found = list(portions(groups, 0, 403_018))

    assert found == [(0, 3_000), (3_000, 403_000), (403_000, 403_009), (403_009, 403_018)]


def test_can_push_without_descriptor_or_columns_is_refused(write: Callable[..., str]) -> None:
    with pa.OSFile(write(n=[1])) as file:
        parquet = pq.ParquetFile(file)

        assert not can_push(file, parquet, [])
        assert not can_push(pa.BufferReader(b""), parquet, ["n"])
