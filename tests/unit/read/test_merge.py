"""Any deletes, any range, any batch size: what comes out is what plain Python says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooked_reader import PlainHooks, piece_of, read_pieces
from tidegate.predicate import Predicate
from tidegate.read.removed import FileStates, NewerThan, Removed, RemovedKeys

if TYPE_CHECKING:
    from tidegate.model.plan import Piece

GROUPS = (5, 1, 8, 6)
ROWS = sum(GROUPS)
KEYS = [None if n % 7 == 3 else n % 4 for n in range(ROWS)]
WORDS = [None if n % 5 == 4 else "ab"[n % 2] for n in range(ROWS)]
ADDED = [None if n % 6 == 5 else n for n in range(ROWS)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("merge") / "in.parquet")
    table = pa.table(
        {
            "n": range(ROWS),
            "k": pa.array(KEYS, pa.int64()),
            "w": pa.array(WORDS, pa.string()),
            "added": pa.array(ADDED, pa.int64()),
        }
    )
    with pq.ParquetWriter(found, table.schema) as writer:
        start = 0
        for size in GROUPS:
            writer.write_table(table.slice(start, size))
            start += size
    return found


@dataclass
class Merging(PlainHooks):
    """Files with the columns `n`, `k`, `w`, of which `w` is there for the keys only."""

    sides: FileStates
    columns: tuple[str, ...] = ("n", "k", "added")
    marks: tuple[str, ...] = ()
    positional: bool = False
    decoded: list[int] = field(default_factory=list)

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        return [*self.columns, "w"]

    def removed(self, piece: Piece) -> FileStates:
        return self.sides

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        self.decoded.append(batch.num_rows)
        empty = {"_change_type": pa.nulls(batch.num_rows, pa.string())}
        empty["_deleted"] = pa.array([False] * batch.num_rows, pa.bool_())
        arrays = [batch.column(name) for name in self.columns]
        arrays += [empty[name] for name in self.marks]
        names = [*self.columns, *self.marks, "w"]
        return pa.RecordBatch.from_arrays([*arrays, batch.column("w")], names)


@dataclass(frozen=True)
class Gone:
    """What is gone, as Python has it."""

    positions: frozenset[int] | None
    numbers: frozenset[Any] | None
    pairs: frozenset[Any] | None
    in_passes: bool

    def has(self, n: int) -> bool:
        return (
            n in (self.positions or ())
            or KEYS[n] in (self.numbers or ())
            or (KEYS[n], WORDS[n]) in (self.pairs or ())
        )

    def as_removed(self) -> Removed:
        sets = []
        if self.numbers is not None:
            rows = pa.record_batch({"k": pa.array(list(self.numbers), pa.int64())})
            sets.append(RemovedKeys(("k",), rows))
        if self.pairs is not None:
            columns = [pa.array([pair[0] for pair in self.pairs], pa.int64())]
            columns += [pa.array([pair[1] for pair in self.pairs], pa.string())]
            rows = pa.RecordBatch.from_arrays(columns, ["k", "w"])
            sets.append(RemovedKeys(("k", "w"), rows))
        known = self.positions
        positions = None if known is None else pa.array(sorted(known), pa.int64())
        if self.in_passes:
            return Removed(positions, (), tuple([keys] for keys in sets))
        return Removed(positions, tuple(sets))


numbers = st.none() | st.integers(0, 4)
gone = st.builds(
    Gone,
    st.none() | st.frozensets(st.integers(0, ROWS + 5)),
    st.none() | st.frozensets(numbers, max_size=3),
    st.none() | st.frozensets(st.tuples(numbers, st.none() | st.sampled_from("abc")), max_size=3),
    st.booleans(),
)
filters = st.none() | st.sampled_from(["n > 6", "k = 2", "n < 15 or k is null", "n < 0"])
FILTERED = {
    None: lambda _: True,
    "n > 6": lambda n: n > 6,
    "k = 2": lambda n: KEYS[n] == 2,
    "n < 15 or k is null": lambda n: n < 15 or KEYS[n] is None,
    "n < 0": lambda _: False,
}


@st.composite
def ranges(draw: st.DrawFn) -> tuple[int, int]:
    start = draw(st.integers(0, ROWS))
    return start, draw(st.integers(0, ROWS - start))


def _read(form: Merging, path: str, rows: tuple[int, int], **options: Any) -> list[dict[str, Any]]:
    text = options.pop("text", None)
    schema = pa.schema([("n", pa.int64()), ("k", pa.int64())])
    filter_ = Predicate.parse(text, schema, "source.read.filter") if text else None
    pieces = [piece_of(path, rows[1], row_start=rows[0])]
    batches = list(read_pieces(pieces, form, hidden=1, filter=filter_, **options))
    assert all(batch.num_rows for batch in batches)
    assert all(batch.schema.names == [*form.columns, *form.marks] for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@given(gone, ranges(), st.integers(1, ROWS), filters, st.booleans())
def test_merge_any_deletes_leaves_the_rows_that_are_alive(
    path: str,
    deleted: Gone,
    rows: tuple[int, int],
    batch_rows: int,
    text: str | None,
    positional: bool,
) -> None:
    form = Merging(FileStates(None, deleted.as_removed()), positional=positional)

    found = _read(form, path, rows, batch_rows=batch_rows, text=text)

    passes = FILTERED[text]
    start, count = rows
    expected = [n for n in range(start, start + count) if not deleted.has(n) and passes(n)]
    assert [row["n"] for row in found] == expected


@given(st.none() | gone, st.none() | gone, ranges(), st.integers(1, ROWS), filters)
def test_merge_any_two_states_gives_what_differs_with_its_kind(
    path: str,
    before: Gone | None,
    after: Gone | None,
    rows: tuple[int, int],
    batch_rows: int,
    text: str | None,
) -> None:
    removed = [None if state is None else state.as_removed() for state in (before, after)]
    form = Merging(FileStates(*removed, kinds=True), marks=("_change_type",))

    found = _read(form, path, rows, batch_rows=batch_rows, text=text)

    expected = []
    for n in range(rows[0], rows[0] + rows[1]):
        was, is_ = (state is not None and not state.has(n) for state in (before, after))
        if was != is_ and FILTERED[text](n):
            expected.append((n, "INSERT" if is_ else "DELETE"))
    assert [(row["n"], row["_change_type"]) for row in found] == expected


@given(gone, ranges(), st.integers(1, ROWS), filters)
def test_merge_keeping_deleted_rows_marks_them(
    path: str, deleted: Gone, rows: tuple[int, int], batch_rows: int, text: str | None
) -> None:
    form = Merging(FileStates(None, deleted.as_removed()), marks=("_deleted",))

    found = _read(form, path, rows, batch_rows=batch_rows, text=text, include_deleted=True)

    expected = [(n, deleted.has(n)) for n in range(rows[0], rows[0] + rows[1]) if FILTERED[text](n)]
    assert [(row["n"], row["_deleted"]) for row in found] == expected


@given(gone, st.integers(1, ROWS + 2), st.integers(1, ROWS), filters)
def test_merge_with_a_limit_gives_the_first_rows(
    path: str, deleted: Gone, limit: int, batch_rows: int, text: str | None
) -> None:
    form = Merging(FileStates(None, deleted.as_removed()))

    found = _read(form, path, (0, ROWS), batch_rows=batch_rows, text=text, limit=limit)

    alive = [n for n in range(ROWS) if not deleted.has(n) and FILTERED[text](n)]
    assert [row["n"] for row in found] == alive[:limit]


@given(gone, st.integers(-1, ROWS), filters)
def test_merge_newer_rows_only_leaves_out_old_and_unknown_ones(
    path: str, deleted: Gone, bound: int, text: str | None
) -> None:
    form = Merging(FileStates(None, deleted.as_removed(), newer=NewerThan("added", bound)))

    found = _read(form, path, (0, ROWS), text=text)

    expected = [
        n
        for n in range(ROWS)
        if ADDED[n] is not None and n > bound and not deleted.has(n) and FILTERED[text](n)
    ]
    assert [row["n"] for row in found] == expected


def test_merge_states_that_differ_in_positions_decodes_their_row_groups_only(path: str) -> None:
    keys = (RemovedKeys(("k",), pa.record_batch({"k": [2]})),)
    before = Removed(pa.array([0, 1, 7, 19]), keys)
    after = Removed(pa.array([0, 1, 7, 8, 19]), keys)
    form = Merging(FileStates(before, after, kinds=True), marks=("_change_type",))

    found = _read(form, path, (0, ROWS))

    assert [(row["n"], row["_change_type"]) for row in found] == [(8, "DELETE")]
    assert form.decoded == [8]


def test_merge_states_that_agree_decodes_nothing(path: str) -> None:
    removed = Removed(pa.array([3]))
    form = Merging(FileStates(removed, Removed(pa.array([3])), kinds=True), marks=("_change_type",))

    assert _read(form, path, (0, ROWS)) == []
    assert form.decoded == []


def test_merge_stops_decoding_at_the_limit(path: str) -> None:
    form = Merging(FileStates(None, Removed()))

    _read(form, path, (0, ROWS), batch_rows=2, limit=3)

    assert sum(form.decoded) == 4
