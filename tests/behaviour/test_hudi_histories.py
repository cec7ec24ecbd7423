"""Random histories of Hudi tables are read as plain dictionaries tell them, in every mode."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_histories import History, Record, merged, newest
from hudi_windows import KIND, LACKING, ORDINAL, between, opened, planned
from hudi_writer import FOLDER, KEY, TIME
from tidegate.read.merge import ReadOptions
from tidegate.source.hudi.slices.details import LOG_ONLY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from golden_hudi import Golden
    from hudi_histories import Told
    from tidegate.model.plan import Piece

    Row = dict[str, Any]

COLUMNS = ("k", "ts", "v", KEY, FOLDER, TIME)
TABLES = [
    (version, kind, by_event)
    for version in (6, 8, 9)
    for kind, by_event in (
        ("MERGE_ON_READ", False),
        ("MERGE_ON_READ", True),
        ("COPY_ON_WRITE", False),
    )
]
IDS = [
    f"v{version} {kind[:5].lower()} {'event time' if by_event else 'commit time'}"
    for version, kind, by_event in TABLES
]


def cut(pieces: Iterable[Piece], dice: Random) -> Iterator[Piece]:
    """Cut pieces between any of their rows."""
    for piece in pieces:
        if piece.slice.file_format == LOG_ONLY or not piece.rows:
            yield piece
            continue
        at = 0
        while at < piece.rows:
            rows = min(dice.randrange(1, 4), piece.rows - at)
            yield replace(piece, row_start=at, rows=rows)
            at += rows


def read(found: Golden, start: str | None, end: str, dice: Random) -> list[Row]:
    """Read a window in random parts and batches, in any order."""
    pin, pieces = planned(found, between(found, start, end))
    parts = list(cut(pieces, dice))
    dice.shuffle(parts)
    reader = found.source.reading.reader(pin)
    options = ReadOptions(batch_rows=dice.choice([1, 2, 1000]))
    read = pa.Table.from_batches(reader.batches(parts, options), reader.schema)
    rows: list[Row] = read.to_pylist()
    return rows


def said(record: Record, folder: str) -> tuple[Any, ...]:
    return record.key, record.ts, record.value, record.key, folder, record.instant


def plain(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in COLUMNS) for row in rows)


def untimed(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        found[row[:5]] += count
    return found


def of_state(told: Told) -> Counter[tuple[Any, ...]]:
    return Counter(said(record, folder) for (folder, _), record in told.state.items())


def followed(before: Told, changes: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    """Apply changes to a state: of a key's the latest, of one write's the row."""
    standing = {(row[4], row[3]): row for row in of_state(before)}
    for row in sorted(changes, key=lambda row: (row[TIME], row[KIND] == "UPSERT")):
        key = row[FOLDER], row[KEY]
        standing.pop(key, None)
        if row[KIND] == "UPSERT":
            standing[key] = tuple(row[name] for name in COLUMNS)
    return Counter(standing.values())


def in_window(told: Told, only: Sequence[str], *, by_event: bool) -> Counter[tuple[Any, ...]]:
    """What a window wrote, merged among itself."""
    found: Counter[tuple[Any, ...]] = Counter()
    for (folder, _), group in told.groups.items():
        base = {key: it for key, it in group.base.items() if it.instant in only}
        rows = merged(base, group.records(only), by_event=by_event)
        found.update(said(record, folder) for record in rows.values())
    return found


def not_merged(told: Told, only: Sequence[str], *, by_event: bool) -> Counter[tuple[Any, ...]]:
    """The rows of base files that a window wrote, and its merged log records."""
    found: Counter[tuple[Any, ...]] = Counter()
    for (folder, _), group in told.groups.items():
        found.update(said(it, folder) for it in group.base.values() if it.instant in only)
        records = newest(group.records(only), by_event=by_event)
        found.update(said(it, folder) for it in records.values() if not it.deleted)
    return found


def changelog(window: Sequence[Told]) -> Counter[tuple[Any, ...]]:
    """What each write of a window wrote and deleted."""
    return Counter(
        (ordinal, "DELETE", record.key, None, None, folder)
        if record.deleted
        else (ordinal, "UPSERT", record.key, record.ts, record.value, folder)
        for ordinal, told in enumerate(window)
        for folder, record in told.changes
    )


def check(history: History, dice: Random) -> None:
    table, told, by_event = history.table, history.told, history.by_event
    modes = {
        mode: opened(table, mode, COLUMNS)
        for mode in (
            "snapshot",
            "complete",
            "with_deletes",
            "changelog",
            "latest_state",
            "skip_merge",
        )
    }
    for one in told:
        assert plain(read(modes["snapshot"], None, one.instant, dice)) == of_state(one)
    pairs = list(combinations(range(len(told)), 2))
    for first, last in dice.sample(pairs, min(len(pairs), 4)):
        before, after, window = told[first], told[last], told[first + 1 : last + 1]
        only = [it.instant for it in window]

        def of(mode: str, start: str = before.instant, end: str = after.instant) -> list[Row]:
            return read(modes[mode], start, end, dice)

        touched = {key for it in window for key in it.touched}
        complete = plain(of("complete"))
        assert not complete - of_state(after)
        assert not (of_state(after) - of_state(before)) - complete
        assert {(row[4], row[3]) for row in complete} <= touched
        changes = of("with_deletes")
        assert untimed(followed(before, changes)) == untimed(of_state(after))
        returned = plain(row for row in changes if row[KIND] == "UPSERT")
        assert untimed(returned) == untimed(complete)
        # A row that is back after its delete has the time of the record that brought it back, and
        # one of a write that was overtaken the time when that was done.
        own = [it.id.split("_") for it in modes["snapshot"].writes]
        times = {time for both in own if both[0] in only for time in both}
        assert all(row in complete or row[5] in times for row in returned)
        gone = {(row[FOLDER], row[KEY]) for row in changes if row[KIND] == "DELETE"}
        assert gone <= touched
        logged = of("changelog")
        assert not any(row[LACKING] for row in logged)
        assert Counter(
            (row[ORDINAL], row[KIND], row[KEY], row["ts"], row["v"], row[FOLDER]) for row in logged
        ) == changelog(window)
        assert plain(of("latest_state")) == in_window(after, only, by_event=by_event)
        assert plain(of("skip_merge")) == not_merged(after, only, by_event=by_event)


def check_feed(history: History, dice: Random) -> None:
    """A feed of all windows is put in order by nothing but commit times."""
    mode = opened(history.table, "with_deletes", COLUMNS)
    first, *_, last = history.told
    feed = [
        row
        for one, other in pairwise(history.told)
        for row in read(mode, one.instant, other.instant, dice)
    ]
    assert untimed(followed(first, feed)) == untimed(of_state(last))


def written(root: str, table: tuple[int, str, bool], dice: Random, steps: int) -> History:
    version, kind, by_event = table
    history = History(Path(root) / "table", version, kind, dice, by_event=by_event)
    history.run(steps)
    return history


@pytest.mark.parametrize("table", TABLES, ids=IDS)
@settings(max_examples=2)
@given(dice=st.randoms(use_true_random=False))
def test_random_history_is_read_as_dictionaries_tell_it(
    table: tuple[int, str, bool], dice: Random
) -> None:
    with tempfile.TemporaryDirectory() as root:
        history = written(root, table, dice, steps=8)
        check(history, dice)
        check_feed(history, dice)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=IDS)
@settings(max_examples=40)
@given(dice=st.randoms(use_true_random=True))
def test_many_random_histories_are_read_as_dictionaries_tell_them(
    table: tuple[int, str, bool], dice: Random
) -> None:
    with tempfile.TemporaryDirectory() as root:
        history = written(root, table, dice, steps=16)
        check(history, dice)
        check_feed(history, dice)
