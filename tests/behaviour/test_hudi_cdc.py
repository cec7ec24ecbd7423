"""The changes that a writer logged (CDC) are returned as the engine tells them (HUDI-O11)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import CASES, Golden, answers, copied, texts
from hudi_opinions import states
from tidegate.errors import HudiChangesLost, HudiPropertyUnsupported, SourceFileDamaged
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidegate.model.instant import Instant

KEY, TIME, KIND = "_hoodie_record_key", "_hoodie_commit_time", "_change_type"
LOGGED = [case for case in CASES if "_cdc_" in case]
IMAGES = "hoodie.table.cdc.supplemental.logging.mode"
Change = tuple[str, dict[str, Any]]


def opened(case: str, place: Path | None = None) -> Golden:
    columns = ["k", "ts", "v", KIND, KEY, TIME]
    return Golden(case, "changelog", place, read={"columns": columns})


def told_by_the_engine(case: str, write: str) -> list[Change]:
    """What the engine's shortest window with a write says of it."""
    windows = [
        found
        for window in answers(case)["cdc"]["windows"]
        if (found := [row for row in window.get("rows", ()) if row["ts_ms"] == write])
    ]
    return [change for row in windows[0] for change in _told(row)] if windows else []


def _told(row: dict[str, Any]) -> Iterator[Change]:
    before, after = (json.loads(row[name] or "null") for name in ("before", "after"))
    kinds = {"i": ("", "INSERT"), "d": ("DELETE", ""), "u": ("UPDATE_BEFORE", "UPDATE_AFTER")}
    for kind, values in zip(kinds[row["op"]], (before, after), strict=True):
        if kind:
            yield kind, {name: values[name] for name in ("k", "ts", "v")}


def changes_of(table: Golden, start: Instant, end: Instant) -> list[Change]:
    rows = table.rows(InstantRange(start, end))
    assert all(row[TIME] == end.id.partition("_")[0] for row in rows)
    assert all(row[KEY] == row["k"] for row in rows)
    return [(row[KIND], {name: row[name] for name in ("k", "ts", "v")}) for row in rows]


@pytest.mark.parametrize("case", LOGGED)
def test_changes_of_each_write_are_the_engines(case: str) -> None:
    """Of overwritten groups the rows before are keys only, of plain logs the kind is not known."""
    table = opened(case)
    before = dict(states(case, Golden(case, "snapshot")))
    exact = 0
    for start, end in zip(table.writes, table.writes[1:], strict=False):
        found, write = changes_of(table, start, end), end.id.partition("_")[0]
        engine = told_by_the_engine(case, write)
        if end == table.writes[-1]:
            # It overwrites all: Hudi before 1.2 says one of the old rows as often as there are any.
            engine = [it for it in engine if it[0] != "DELETE"]
            deleted = [it["k"] for kind, it in found if kind == "DELETE"]
            found = [it for it in found if it[0] != "DELETE"]
            assert sorted(deleted) == sorted(row["k"] for row in before[start])
        if any(kind == "UPSERT" or it["v"] is None for kind, it in found):
            after = [values for kind, values in engine if kind in {"INSERT", "UPDATE_AFTER"}]
            rows = [values for kind, values in found if kind != "DELETE"]
            assert texts(after) == texts([it for it in rows if "late" not in it["v"]])
            gone = [values["k"] for kind, values in engine if kind == "DELETE"]
            assert gone == [values["k"] for kind, values in found if kind == "DELETE"]
            continue
        assert texts([{"kind": kind, **it} for kind, it in found]) == texts(
            [{"kind": kind, **it} for kind, it in engine]
        )
        exact += 1
    assert exact >= (1 if "log_only" in case else 2 if "mor" in case else 4)


@pytest.mark.parametrize("case", [case for case in LOGGED if "cow" in case])
def test_row_before_an_update_comes_before_the_row_after(case: str) -> None:
    table = opened(case)

    found = changes_of(table, *table.writes[:2])

    assert [kind for kind, _ in found] == ["UPDATE_BEFORE", "UPDATE_AFTER", "INSERT"]
    assert [values["k"] for _, values in found] == ["a", "a", "e"]


def images(place: Path, said: str) -> None:
    path = place / ".hoodie" / "hoodie.properties"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(IMAGES)]
    path.write_text("\n".join([*lines, f"{IMAGES}={said}"]))


def test_values_that_a_log_has_are_taken_although_the_table_says_fewer(tmp_path: Path) -> None:
    """A table that logged more once and logs less now."""
    place = copied("v9_cow_cdc_before_after", tmp_path)
    images(place, "OP_KEY_ONLY")
    known, table = opened("v9_cow_cdc_before_after"), opened("", place)

    found = changes_of(table, *table.writes[:2])

    assert found == changes_of(known, *known.writes[:2])


def test_log_without_the_values_that_the_table_promises_is_refused(tmp_path: Path) -> None:
    place = copied("v9_cow_cdc_op_key", tmp_path)
    images(place, "DATA_BEFORE_AFTER")
    table = opened("", place)

    with pytest.raises(SourceFileDamaged, match="`before` of changed rows"):
        changes_of(table, *table.writes[:2])


def test_mode_of_logging_that_is_not_known_is_refused(tmp_path: Path) -> None:
    place = copied("v9_cow_cdc_op_key", tmp_path)
    images(place, "everything")
    table = opened("", place)

    with pytest.raises(HudiPropertyUnsupported, match="everything"):
        changes_of(table, *table.writes[:2])


@pytest.mark.parametrize("pattern", ["*.cdc", "*.parquet"])
def test_file_that_tells_of_changes_and_is_gone_is_said(tmp_path: Path, pattern: str) -> None:
    place = copied("v9_cow_cdc_op_key", tmp_path)
    table = opened("", place)
    for path in place.glob(pattern):
        path.unlink()

    with pytest.raises(HudiChangesLost):
        changes_of(table, *table.writes[:2])


def test_log_that_was_cut_is_damaged(tmp_path: Path) -> None:
    place = copied("v9_cow_cdc_op_key", tmp_path)
    for path in place.glob("*.cdc"):
        path.write_bytes(path.read_bytes()[:-5])
    table = opened("", place)

    with pytest.raises(SourceFileDamaged, match="expected a block of changes"):
        changes_of(table, *table.writes[:2])


def test_row_that_the_base_file_does_not_have_is_named(tmp_path: Path) -> None:
    place = copied("v9_cow_cdc_op_key", tmp_path)
    table = opened("", place)
    first, *_ = sorted(place.glob(".*.cdc"))
    first.write_bytes(first.read_bytes().replace(b"\x02u\x00\x02a", b"\x02u\x00\x02x"))

    with pytest.raises(SourceFileDamaged, match="no row with the key 'x'"):
        changes_of(table, *table.writes[:2])
