"""Files that are decoded together, against the same files read one by one."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooked_reader import PlainHooks, piece_of, read_pieces
from refusing import without_descriptors
from tidegate.errors import PredicateInvalid, SchemaIncompatible, SourceFileDamaged, SourceFileGone
from tidegate.physical import ParquetRows, joined_files
from tidegate.predicate import Predicate
from tidegate.read.merge import Conforming, MergedPiece, ReadOptions
from tidegate.read.removed import WHOLE, FileStates, NewerThan, Removed, RemovedKeys

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tidegate.model.plan import Piece

COLUMNS = {"n": pa.int64(), "text": pa.string(), "at": pa.timestamp("us", "UTC")}
WANTED = pa.schema(COLUMNS.items())
AT = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
FILTERS = ["n > 0", "n is null or text = 'eu'", "at >= '2026-03-01 01:00:00'", "not (n = 1)"]


class Widening(PlainHooks):
    """Files that hold the wanted columns in some way of their own; `alike` is their folder."""

    def __init__(self, *, joins: bool = True) -> None:
        self.joins = joins
        self.opened: Counter[str] = Counter()
        self.conformed: list[int] = []

    def open(self, piece: Piece) -> ParquetRows:
        self.opened[Path(piece.path).name] += 1
        return super().open(piece)

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        return [name for name in WANTED.names if name in file_schema.names]

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        self.conformed.append(batch.num_rows)
        names = batch.schema.names
        columns = [
            batch.column(name).cast(kind) if name in names else pa.nulls(batch.num_rows, kind)
            for name, kind in COLUMNS.items()
        ]
        folder = pa.repeat(Path(piece.path).parent.name, batch.num_rows)
        return pa.RecordBatch.from_arrays([*columns, folder], [*COLUMNS, "folder"])

    def alike(self, piece: Piece) -> Hashable:
        return Path(piece.path).parent.name if self.joins else None


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 3),
        st.none() | st.sampled_from(["", "eu", "ü"]),
        st.none() | st.integers(0, 3).map(lambda hours: AT + dt.timedelta(hours=hours)),
    ),
    min_size=1,
    max_size=12,
)
LAYOUTS = [
    WANTED,
    WANTED.with_metadata({"written": "by another"}),
    pa.schema([*WANTED, ("more", pa.float32())]),
    pa.schema([field.with_metadata({"PARQUET:field_id": "7"}) for field in WANTED]),
    pa.schema([WANTED.field("at"), WANTED.field("n"), WANTED.field("text")]),
    pa.schema([pa.field("n", pa.int32()), *list(WANTED)[1:]]),
    pa.schema([("n", pa.int64()), ("text", pa.large_string()), ("at", WANTED.field("at").type)]),
    pa.schema([("n", pa.int64()), ("text", pa.dictionary(pa.int8(), pa.string()))]),
    pa.schema([("n", pa.int64()), ("at", pa.timestamp("ms", "UTC"))]),
]
FILES = st.lists(
    st.tuples(ROWS, st.sampled_from([0, 0, 0, *range(len(LAYOUTS))]), st.integers(1, 5)),
    min_size=1,
    max_size=8,
)


def write(path: Path, rows: Sequence[tuple[Any, ...]], layout: pa.Schema, group_rows: int) -> Piece:
    by_name = dict(zip(WANTED.names, zip(*rows, strict=True), strict=True))
    arrays = [
        pa.array(by_name.get(field.name, [None] * len(rows)), WANTED.field(field.name).type).cast(
            field.type
        )
        if field.name in by_name
        else pa.nulls(len(rows), field.type)
        for field in layout
    ]
    path.parent.mkdir(exist_ok=True)
    table = pa.Table.from_arrays(arrays, schema=layout)
    pq.write_table(table, path, row_group_size=group_rows)
    return piece_of(str(path), len(rows), path.stat().st_size)


def numbered(folder: Path, numbers: Sequence[int], name: str) -> Piece:
    return write(folder / name, [(n, str(n), AT) for n in numbers], WANTED, 100)


def read(
    pieces: Sequence[Piece], text: str, hooks: Widening | None = None, **more: Any
) -> pa.Table:
    batches = list(batches_of(pieces, text, hooks or Widening(), **more))
    assert all(batch.num_rows for batch in batches)
    schema = pa.schema([*WANTED, pa.field("folder", pa.string())])
    return pa.Table.from_batches(batches, schema)


def batches_of(
    pieces: Sequence[Piece], text: str, hooks: Widening, **more: Any
) -> Iterator[pa.RecordBatch]:
    wanted = Predicate.parse(text, WANTED, "source.read.filter")
    return read_pieces(pieces, hooks, filter=wanted, **more)


@given(FILES, st.sampled_from(FILTERS), st.data())
def test_read_any_files_together_equals_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[list[tuple[Any, ...]], int, int]],
    text: str,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("joined")
    pieces = []
    for number, (rows, layout, group_rows) in enumerate(files):
        path = folder / data.draw(st.sampled_from("aab")) / f"{number}.parquet"
        whole = write(path, rows, LAYOUTS[layout], group_rows)
        start = data.draw(st.sampled_from([0, 0, 0, min(1, len(rows) - 1)]))
        left = len(rows) - start
        wanted = data.draw(st.sampled_from([left, left, left, max(1, left - 1)]))
        pieces.append(piece_of(whole.path, wanted, whole.size_bytes, start))
    options = {"batch_rows": data.draw(st.integers(1, 20))}
    options |= data.draw(st.just({}) | st.builds(lambda limit: {"limit": limit}, st.integers(1, 9)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined_files, "TOGETHER_ROWS", data.draw(st.integers(1, 60)))
        patch.setattr(joined_files, "MOST_FILES", data.draw(st.integers(1, 8)))
        together = read(pieces, text, **options)
    one_by_one = read(pieces, text, Widening(joins=False), **options)

    assert together.equals(one_by_one)


def test_read_small_files_come_in_batches_of_many(tmp_path: Path) -> None:
    pieces = [numbered(tmp_path / "in", [n, n + 1], f"{n}.parquet") for n in range(0, 50, 2)]
    hooks = Widening()

    found = list(batches_of(pieces, "n > 9", hooks))

    assert [batch.num_rows for batch in found] == [40]
    assert set(hooks.opened.values()) == {1}


def test_read_files_of_two_folders_are_conformed_each_as_its_own(tmp_path: Path) -> None:
    pieces = [numbered(tmp_path / name, [n], f"{n}.parquet") for n, name in enumerate("aabba")]

    found = read(pieces, "n >= 0")

    assert found.column("folder").to_pylist() == list("aabba")


@pytest.mark.parametrize("place", range(3))
def test_read_part_of_a_file_among_others_has_no_other_rows(tmp_path: Path, place: int) -> None:
    pieces = [numbered(tmp_path / "in", [n, n + 1, n + 2], f"{n}.parquet") for n in (0, 3, 6)]
    pieces[place] = piece_of(pieces[place].path, 2, pieces[place].size_bytes)

    found = read(pieces, "n >= 0")

    assert found.column("n").to_pylist() == [n for n in range(9) if n != 3 * place + 2]


KEYS = RemovedKeys(("n",), pa.record_batch({"n": pa.array([1])}))


@pytest.mark.parametrize(
    ("states", "more"),
    [
        pytest.param(WHOLE, {"include_deleted": True}, id="gone rows are wanted"),
        pytest.param(WHOLE, {"hidden": 1}, id="columns for keys"),
        pytest.param(WHOLE, {"positional": True}, id="positions"),
        pytest.param(WHOLE, {"rows": 2}, id="part of the file"),
        pytest.param(WHOLE, {"text": None}, id="no filter"),
        pytest.param(FileStates(Removed(), Removed()), {}, id="two states"),
        pytest.param(FileStates(None, None), {}, id="gone as a whole"),
        pytest.param(FileStates(None, Removed(pa.array([0]))), {}, id="deleted position"),
        pytest.param(FileStates(None, Removed(keys=(KEYS,))), {}, id="deleted key"),
        pytest.param(FileStates(None, Removed(passes=((KEYS,),))), {}, id="many deleted keys"),
        pytest.param(FileStates(None, Removed(), kinds=True), {}, id="kinds"),
        pytest.param(replace(WHOLE, newer=NewerThan("n", 1)), {}, id="new rows alone"),
    ],
)
def test_file_is_joined_only_if_all_of_it_is_wanted_as_it_stands(
    tmp_path: Path, states: FileStates, more: dict[str, Any]
) -> None:
    def joinable(
        states: FileStates,
        *,
        text: str | None = "n > 0",
        rows: int = 3,
        include_deleted: bool = False,
        **conforming: Any,
    ) -> Any:
        whole = numbered(tmp_path / "in", [1, 2, 3], "1.parquet")
        piece = piece_of(whole.path, rows, whole.size_bytes)
        wanted = Predicate.parse(text, WANTED, "source.read.filter") if text else None
        with ParquetRows(pa.OSFile(piece.path)) as file:
            how = Conforming(WANTED.names, lambda batch, _: batch, **conforming)
            read = MergedPiece(file, piece, how, states)
            return read.joinable(ReadOptions(wanted, include_deleted=include_deleted))

    assert joinable(WHOLE) is not None
    assert joinable(states, **more) is None


def test_read_damaged_file_among_others_is_named_behind_the_rows_before(tmp_path: Path) -> None:
    pieces = [numbered(tmp_path / "in", range(n, n + 50), f"{n}.parquet") for n in (0, 50, 100)]
    content = bytearray(Path(pieces[1].path).read_bytes())
    content[4:200] = b"\xff" * 196
    Path(pieces[1].path).write_bytes(content)
    batches = batches_of(pieces, "n >= 0", Widening())

    first = next(batches)
    with pytest.raises(SourceFileDamaged) as damaged:
        next(batches)

    assert damaged.value.values["path"] == pieces[1].path
    assert first.column("n").to_pylist() == list(range(50))


@pytest.mark.parametrize("end", ["gone", "cut"])
def test_read_file_that_cannot_be_opened_is_told_in_its_turn(tmp_path: Path, end: str) -> None:
    pieces = [numbered(tmp_path / "in", [n], f"{n}.parquet") for n in range(3)]
    if end == "gone":
        Path(pieces[1].path).unlink()
    else:
        Path(pieces[1].path).write_bytes(b"PAR1")
    batches = batches_of(pieces, "n >= 0", Widening())

    first = next(batches)
    with pytest.raises(SourceFileGone if end == "gone" else SourceFileDamaged) as told:
        next(batches)

    assert first.column("n").to_pylist() == [0]
    assert told.value.values["path"] == pieces[1].path


def test_read_up_to_a_limit_says_nothing_of_what_comes_behind(tmp_path: Path) -> None:
    pieces = [numbered(tmp_path / "in", [n], f"{n}.parquet") for n in range(3)]
    Path(pieces[2].path).unlink()

    assert read(pieces, "n >= 0", limit=2).column("n").to_pylist() == [0, 1]


def test_read_value_that_does_not_fit_names_its_file(tmp_path: Path) -> None:
    class Narrow(Widening):
        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            if any(value == "bad" for value in batch.column("text").to_pylist()):
                raise SchemaIncompatible(
                    path=piece.path, column="text", expected="good", found="bad"
                )
            return super().conform(batch, piece, position)

    good, bad = numbered(tmp_path / "in", [1], "good.parquet"), tmp_path / "in" / "bad.parquet"
    pieces = [good, write(bad, [(2, "bad", AT)], WANTED, 1)]

    with pytest.raises(SchemaIncompatible, match=r"bad\.parquet"):
        read(pieces, "n > 0", Narrow())


def test_read_together_that_stops_half_way_goes_on_behind_the_rows_before(tmp_path: Path) -> None:
    class Stopping(Widening):
        stopped = False

        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            if sum(self.conformed) > 4 and not self.stopped:
                self.stopped = True
                raise SchemaIncompatible(path=piece.path, column="n", expected="", found="")
            return super().conform(batch, piece, position)

    pieces = [numbered(tmp_path / "in", [n, n + 1, n + 2], f"{n}.parquet") for n in (1, 4, 7)]
    hooks = Stopping()

    found = read(pieces, "n > 0", hooks, batch_rows=2)

    assert hooks.stopped
    assert found.column("n").to_pylist() == list(range(1, 10))


def test_read_filter_that_cannot_be_computed_names_the_filter(tmp_path: Path) -> None:
    pieces = [
        write(tmp_path / "in" / f"{text}.parquet", [(1, text, AT)], WANTED, 1)
        for text in ("1", "two")
    ]

    with pytest.raises(PredicateInvalid, match=r"source\.read\.filter"):
        read(pieces, "cast(text as int) > 0")


def test_read_on_a_busy_machine_opens_a_file_again_in_its_turn(tmp_path: Path) -> None:
    class Busy(Widening):
        def open(self, piece: Piece) -> ParquetRows:
            if self.opened.total() != 2:
                return super().open(piece)
            with without_descriptors():
                return super().open(piece)

    pieces = [numbered(tmp_path / "in", [n], f"{n}.parquet") for n in range(4)]
    hooks = Busy()

    assert read(pieces, "n >= 0", hooks).column("n").to_pylist() == [0, 1, 2, 3]
    assert hooks.opened["2.parquet"] == 2


def test_read_given_up_half_way_leaves_no_file_open(tmp_path: Path) -> None:
    pieces = [numbered(tmp_path / "in", range(9), f"{n}.parquet") for n in range(4)]

    for batch in batches_of(pieces, "n >= 0", Widening(), batch_rows=2):
        assert batch.num_rows == 2
        assert _opened(tmp_path)
        break

    # polars ends what it decodes ahead on threads of its own.
    until = time.monotonic() + 10
    while _opened(tmp_path) and time.monotonic() < until:
        time.sleep(0.01)
    assert _opened(tmp_path) == []


def test_read_given_up_before_a_file_of_another_layout_leaves_it_closed(tmp_path: Path) -> None:
    pieces = [
        write(tmp_path / "in" / f"{n}.parquet", [(n, "", AT)], layout, 1)
        for n, layout in enumerate([WANTED, LAYOUTS[2]])
    ]
    batches = batches_of(pieces, "n >= 0", Widening())

    assert next(batches).num_rows == 1
    assert [Path(path).name for path in _opened(tmp_path)].count("1.parquet") == 1
    batches.close()

    assert "1.parquet" not in [Path(path).name for path in _opened(tmp_path)]


def _opened(folder: Path) -> list[str]:
    """List the files below a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(link.readlink())
    return [str(path) for path in found if folder in path.parents]


def test_read_files_together_have_no_more_rows_than_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_files, "TOGETHER_ROWS", 10)
    pieces = [numbered(tmp_path / "in", range(n, n + 4), f"{n}.parquet") for n in range(0, 20, 4)]
    hooks = Widening()

    found = list(batches_of(pieces, "n >= 0", hooks))

    assert [batch.num_rows for batch in found] == [8, 8, 4]
    assert set(hooks.opened.values()) == {1}
