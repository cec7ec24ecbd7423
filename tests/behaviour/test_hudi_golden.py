"""Every state and window of the golden Hudi tables is read as the engine reads it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from golden_hudi import (
    CASES,
    RANDOM,
    Golden,
    answers,
    canonical,
    completed,
    fits,
    frames,
    newest_opinion,
    texts,
)
from hudi_opinions import (
    COMPACTED_OTHERWISE,
    MERGED_BY_POSITION,
    OLD_DELETES,
    OLDER_STATES,
    OTHER_STATES,
    PARTITION_FROM_PATH,
    READABLE,
    REFUSED,
    WITH_META,
    alike,
    is_exempt,
    random_states,
    states,
    without,
)
from tidegate.errors import (
    HudiChangesLost,
    HudiCommitTimesMissing,
    HudiFilesCleaned,
    HudiPropertyUnsupported,
    HudiSchemaUnsupported,
)
from tidegate.model.instant import InstantRange
from tidegate.read.merge import ReadOptions
from tidegate.source.hudi.slices.details import ONLY_WINDOW

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping

    from tidegate.model.plan import Piece
    from tidegate.source.reading import SliceReader


def head(case: str) -> Mapping[str, Any]:
    """The newest engine's answer for a table's head."""
    second: Mapping[str, Any] = answers(case).get("second_opinion", {}).get("head", {})
    return second if "digest" in second else answers(case)["head"]


@pytest.mark.parametrize("case", [case for case in READABLE if "error" not in head(case)])
def test_head_has_the_engines_rows(case: str) -> None:
    answer = head(case)
    if is_exempt(case, PARTITION_FROM_PATH, [MERGED_BY_POSITION], OLD_DELETES):
        assert len(Golden(case, "snapshot").rows()) == answer["count"]
        return

    assert fits(Golden(case, "snapshot").rows(), answer)


@pytest.mark.parametrize("case", without(*OTHER_STATES))
def test_state_after_each_write_has_the_engines_rows(case: str) -> None:
    table = Golden(case, "snapshot")
    known = {it.id.partition("_")[0]: it for it in table.writes}

    for answer in newest_opinion(case, "snapshots", "as_of"):
        instant = known.get(answer["as_of"])
        if instant is None or "digest" not in answer:
            continue
        try:
            rows = table.rows(InstantRange(None, instant))
        except HudiFilesCleaned:
            assert is_exempt(case, ["cleaned", "archived"])
            continue
        assert fits(rows, answer), answer["as_of"]


OTHER_WINDOWS = (
    PARTITION_FROM_PATH,
    [MERGED_BY_POSITION],
    OLD_DELETES,
    OLDER_STATES,
    COMPACTED_OTHERWISE,
    ["archived"],
)


@pytest.mark.parametrize("case", without(*OTHER_WINDOWS, of=WITH_META))
def test_window_as_hudi_reads_it_has_the_engines_rows(case: str) -> None:
    table = Golden(case, "latest_state")

    for answer in newest_opinion(case, "windows", "begin", "end"):
        if "digest" not in answer or is_of_a_service(table, answer):
            continue
        window = table.window(answer["begin"], answer["end"])
        try:
            rows = table.rows(window) if window else []
        except HudiFilesCleaned:
            assert is_exempt(case, ["cleaned"])
            continue
        assert fits(rows, answer), (answer["begin"], answer["end"])


def is_of_a_service(table: Golden, answer: Mapping[str, Any]) -> bool:
    """Whether a window ends after a service, which no window of Tidegate does (HUDI-W6)."""
    return answer["end"] not in {completed(it) for it in table.writes}


def begins_before_a_clean(case: str, asked: Mapping[str, Any]) -> bool:
    """Whether the engine falls back to the rows that are left (HUDI-W12)."""
    cleans = [it["requested"] for it in answers(case)["timeline"] if it["action"] == "clean"]
    return bool(cleans) and asked["begin"] < max(cleans)


@pytest.mark.parametrize("case", without(*OTHER_STATES, of=WITH_META))
def test_complete_window_has_every_row_that_changed_and_no_other_state(case: str) -> None:
    table = Golden(case, "complete")

    for (one, before), (other, after) in combinations(states(case, table), 2):
        try:
            found = texts([alike(row) for row in table.rows(InstantRange(one, other))])
        except HudiFilesCleaned:
            assert is_exempt(case, ["cleaned", "archived"])
            continue
        old, new = (texts([alike(row) for row in rows]) for rows in (before, after))
        assert not (new - old) - found, (one.id, other.id)
        assert not found - new, (one.id, other.id)


@pytest.mark.parametrize("case", RANDOM)
def test_complete_window_of_a_random_table_has_every_row_that_changed(case: str) -> None:
    table = Golden(case, "complete")

    compared = 0
    for (one, before), (other, after) in combinations(random_states(case, table), 2):
        try:
            found = texts(table.rows(InstantRange(one, other)))
        except HudiFilesCleaned:
            continue
        old, new = texts(before), texts(after)
        assert not (new - old) - found, (one.id, other.id)
        assert not found - new, (one.id, other.id)
        compared += 1
    assert compared


@pytest.mark.parametrize("case", RANDOM)
def test_head_of_a_random_table_has_the_engines_rows(case: str) -> None:
    rows = frames(case, "snapshots.parquet", "_at")

    assert texts(Golden(case, "snapshot").rows()) == texts(rows[answers(case)["head"]["step"]])


@pytest.mark.parametrize("case", RANDOM)
def test_window_of_a_random_table_has_the_engines_rows(case: str) -> None:
    table = Golden(case, "latest_state")
    rows = frames(case, "windows.parquet", "_window")
    later = {
        one["window"]: one["rows"]
        for one in answers(case).get("second_opinion", {}).get("windows", ())
    }
    for asked in answers(case)["windows"]:
        window = table.window(asked["begin"], asked["end"])
        expected = later.get(asked["window"], rows.get(asked["window"], []))
        if window is None or "error" in asked or is_of_a_service(table, asked):
            continue
        if begins_before_a_clean(case, asked):
            continue
        try:
            found = table.rows(window)
        except HudiFilesCleaned:
            continue
        assert texts(found) == texts(expected), asked["window"]


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_table_that_needs_more_than_is_read_is_refused(case: str) -> None:
    with pytest.raises((HudiPropertyUnsupported, HudiSchemaUnsupported)):
        Golden(case, "snapshot")


@pytest.mark.parametrize("case", [case for case in CASES if "no_meta" in case])
def test_window_of_a_table_without_commit_times_is_refused(case: str) -> None:
    """Case HUDI-CI."""
    with pytest.raises(HudiCommitTimesMissing, match=r"populate\.meta\.fields"):
        Golden(case, "complete")


def test_table_is_compared_in_each_version_and_of_each_kind() -> None:
    kinds = {(case.split("_")[0], case.split("_")[1]) for case in READABLE}

    assert kinds >= {(version, kind) for version in ("v6", "v8", "v9") for kind in ("cow", "mor")}
    assert len(CASES) == 346
    assert len(RANDOM) == 6


MODES = ("snapshot", "complete", "with_deletes", "changelog", "latest_state", "skip_merge")
CUT = tuple(case for case in WITH_META if "mor" in case)
SPILLED = frozenset(CUT[::5])
USUAL = frozenset(CUT[::3])
"""The usual suite cuts a third of the tables, the slow one all."""


@pytest.mark.parametrize(
    "case",
    [case if case in USUAL else pytest.param(case, marks=pytest.mark.slow) for case in CUT],
)
def test_rows_are_the_same_however_slices_and_batches_are_cut_and_logs_kept(case: str) -> None:
    for mode in MODES:
        if mode in ONLY_WINDOW and is_exempt(case, ["mor_partial_"]):
            continue  # Refused: their records have only some columns (HUDI-R4).
        table, read = Golden(case, mode), {}
        if mode in {"with_deletes", "changelog"}:
            known = table.source.reading.schema(table.pin).names
            read = {"columns": [*known, "_hoodie_record_key"]}
            table = Golden(case, mode, read=read)
        # Log records of a few rows go to files (HUDI-M18).
        little = {"max_delete_memory": 2_000}
        spilling = Golden(case, mode, read=read, split=little) if case in SPILLED else None
        if len(table.writes) > 1:
            start = None if mode == "snapshot" else table.writes[0]
            check_cuts(table, spilling, InstantRange(start, table.writes[-1]))


def check_cuts(table: Golden, spilling: Golden | None, window: InstantRange) -> None:
    """Read a window in one piece per slice, and in pieces and batches of a few rows."""
    pin = table.source.timeline.at(table.pin, window.end_inclusive)
    try:
        units = table.source.slicing.units(pin, window)
    except (HudiFilesCleaned, HudiChangesLost):
        return
    reader = table.source.reading.reader(pin)
    whole = rows_of(reader, units, 131_072)

    pieces = [part for piece in units for part in cut(piece, max(2, whole.total() // 9))]
    assert rows_of(reader, pieces, 2) == whole, (table.case, str(window))
    if spilling is not None:
        reader = spilling.source.reading.reader(pin)
        assert rows_of(reader, pieces, 2) == whole, (table.case, str(window))


def rows_of(reader: SliceReader, pieces: Iterable[Piece], batch_rows: int) -> Counter[str]:
    batches = reader.batches(pieces, ReadOptions(batch_rows=batch_rows))
    found = pa.Table.from_batches(batches, reader.schema)
    return texts(canonical(found.to_pylist(maps_as_pydicts="strict")))


def cut(piece: Piece, size: int) -> Iterator[Piece]:
    """Cut a piece into ranges of rows; a slice of logs only by the numbers of its keys."""
    if not piece.rows:
        yield piece
        return
    for start in range(0, piece.rows, size):
        rows = min(size, piece.rows - start)
        yield replace(piece, row_start=start, rows=rows)


def test_checkpoint_of_before_an_upgrade_of_the_table_is_continued() -> None:
    table = Golden("v9_mor_upgraded", "complete")
    first, *later = table.writes
    requested = first.id.partition("_")[0]
    checkpoint = replace(first, id=requested)

    assert table.source.timeline.instants(table.pin, checkpoint) == tuple(later)


def test_window_of_before_an_upgrade_of_the_table_has_the_same_rows() -> None:
    table = Golden("v9_mor_upgraded", "complete")
    start, end = table.writes[1], table.writes[4]
    before = [replace(it, id=it.id.partition("_")[0]) for it in (start, end)]

    assert texts(table.rows(InstantRange(*before))) == texts(table.rows(InstantRange(start, end)))
    assert table.rows(InstantRange(start, end))
