"""A table of version 10 has the answers of that of version 9 which it was made from (HUDI-L8)."""

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import javaproperties
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import golden_hudi
from behaviour import test_hudi_cdc, test_hudi_changelog, test_hudi_deletes, test_hudi_golden
from golden_hudi import Golden, copied, texts
from hudi_native import Twin, parquet_log
from hudi_opinions import READABLE
from tidegate.errors import (
    HudiCommitTimesMissing,
    HudiPropertyUnsupported,
    LogBlockUnreadable,
    SourceFileDamaged,
    SourceFileGone,
    TidegateError,
)
from tidegate.model.instant import InstantRange
from tidegate.read.merge import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidegate.model.instant import Instant

WITH_LOGS = tuple(case for case in READABLE if case.startswith(("v9_mor", "v9_cow_cdc")))
FORMS: dict[str, dict[str, Any]] = {
    "entries": {},
    "one_entry": {"is_one_entry": True},
    "mixed": {"share": 2},
    "orc": {"file_format": "orc"},
}
"""The two forms of a header, slices that have logs of both kinds, and the other format."""
SAMPLE = (
    ("v9_cow_cdc_before", "entries"),
    ("v9_mor_cdc_op_key", "one_entry"),
    ("v9_mor_rollback_lazy", "mixed"),
    ("v9_mor_log_compaction", "one_entry"),
    ("v9_mor_nbcc_over_compaction", "entries"),
    ("v9_mor_ord_two_fields", "entries"),
    ("v9_mor_ord_timestamp", "one_entry"),
    ("v9_mor_parquet_log", "mixed"),
    ("v9_mor_partial_commit", "entries"),
    ("v9_mor_payload_delete_marker", "one_entry"),
    ("v9_mor_basic", "orc"),
)
UNTURNED = ("archived", "clustering_pending", "corrupt_", "mixed_commit")
"""Tables without a whole log, or with none of a write that the timeline still has."""
SUITES = (test_hudi_golden, test_hudi_deletes, test_hudi_changelog, test_hudi_cdc)
MODES = (
    "complete",
    "with_deletes",
    "changelog",
    "latest_state",
    "skip_merge",
    "rebuild_partitions",
)


def checks(case: str) -> Iterator[Callable[[str], None]]:
    """The tests that compare a golden table with the engine's answers."""
    cuts = test_hudi_golden.test_rows_are_the_same_however_slices_and_batches_are_cut_and_logs_kept
    for suite in SUITES:
        for name, test in vars(suite).items():
            marks = getattr(test, "pytestmark", ()) if name.startswith("test_") else ()
            if test is cuts:
                continue  # Compares Tidegate with itself, and takes longer than all others.
            for mark in marks:
                if mark.name == "parametrize" and mark.args[0] == "case" and case in mark.args[1]:
                    yield test


def answer(table: Golden, start: Instant, end: Instant) -> object:
    """The rows of a window, or the class of its refusal."""
    try:
        return texts(table.rows(InstantRange(start, end)))
    except TidegateError as refused:
        return type(refused)


def check(case: str, form: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {mode: Golden(case, mode) for mode in MODES if "no_meta" not in case}
    twin = Twin(copied(case, root), **FORMS[form])
    assert twin.logs or any(part in case for part in UNTURNED)
    monkeypatch.setattr(golden_hudi, "folder", lambda _: twin.table)

    if form == "orc":
        assert not list(twin.table.rglob("*.log.parquet"))
    for test in checks(case):
        test(case)

    for mode, before in old.items():
        table = Golden(case, mode, twin.table)
        for start, end in (*pairwise(table.writes), (table.writes[0], table.writes[-1])):
            assert answer(table, start, end) == answer(before, start, end), (mode, start.id, end.id)


@pytest.mark.parametrize(("case", "form"), SAMPLE)
def test_table_of_version_10_has_the_engines_rows_in_every_mode(
    case: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(case, form, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", WITH_LOGS)
def test_every_table_of_version_10_has_the_engines_rows_in_every_mode(
    case: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (case, form) not in SAMPLE:
        check(case, form, tmp_path, monkeypatch)


def test_deletes_of_an_append_come_after_its_rows(tmp_path: Path) -> None:
    table, path = native_log(tmp_path)
    key = pq.read_table(path).column("_hoodie_record_key")[0]
    before = {row["k"] for row in table.rows()}
    deletes = path.with_name(path.name.replace(".log.", ".deletes."))
    deletes.write_bytes(parquet_log(pa.table({"_hoodie_record_key": [key]}), {}))

    after = {row["k"] for row in table.rows()}

    assert before - after == {key.as_py()}


# ── Files that are gone, damaged, or not as they were planned ──


def native_log(root: Path, kind: str = "log") -> tuple[Golden, Path]:
    """A table, and one of its logs."""
    twin = Twin(copied("v9_mor_commit_time", root))
    found = sorted(
        (path for paths in twin.logs.values() for path in paths),
        key=lambda path: path.name.split("_")[2],
    )
    path = [it for it in found if it.name.endswith(f".{kind}.parquet")][-1]
    return Golden("v9_mor_commit_time", "snapshot", twin.table), path


def planned(table: Golden) -> Callable[[], pa.Table]:
    """Plan the head; the result reads it."""
    assert table.pin.head is not None
    units = table.source.slicing.units(table.pin, InstantRange(None, table.pin.head))
    reader = table.source.reading.reader(table.pin)
    return lambda: pa.Table.from_batches(reader.batches(units, ReadOptions()), reader.schema)


@pytest.mark.parametrize("kind", ["log", "deletes"])
def test_native_log_that_vanished_since_it_was_planned_is_gone(kind: str, tmp_path: Path) -> None:
    table, path = native_log(tmp_path, kind)
    read = planned(table)
    path.unlink()

    with pytest.raises(SourceFileGone, match=path.name):
        read()


@pytest.mark.parametrize("change", [-1, 1], ids=["shorter", "longer"])
def test_native_log_of_another_length_than_planned_is_damaged(change: int, tmp_path: Path) -> None:
    table, path = native_log(tmp_path)
    read = planned(table)
    content = path.read_bytes()
    path.write_bytes(content + b"x" if change > 0 else content[:change])

    with pytest.raises(SourceFileDamaged, match=f"expected {len(content)} bytes"):
        read()


@pytest.mark.parametrize("kind", ["log", "deletes"])
@pytest.mark.parametrize("kept", [0, 3, 40])
def test_torn_native_log_is_damaged(kind: str, kept: int, tmp_path: Path) -> None:
    table, path = native_log(tmp_path, kind)
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(SourceFileDamaged, match=path.name):
        planned(table)()


def test_native_log_with_damaged_rows_is_named(tmp_path: Path) -> None:
    table, path = native_log(tmp_path)
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    path.write_bytes(content[:4] + bytes(len(content) - footer - 4) + content[-footer:])

    with pytest.raises(LogBlockUnreadable, match=path.name):
        planned(table)()


def test_native_log_of_a_format_that_is_not_read_is_refused(tmp_path: Path) -> None:
    table, path = native_log(tmp_path)
    shutil.copyfile(path, path.with_suffix(".hfile"))

    with pytest.raises(LogBlockUnreadable, match="hfile, expected orc or parquet"):
        planned(table)()


def test_header_without_an_instant_has_that_of_the_name(tmp_path: Path) -> None:
    twin = Twin(copied("v9_mor_commit_time", tmp_path), without=("INSTANT_TIME",))
    table = Golden("v9_mor_commit_time", "complete", twin.table)

    original = Golden("v9_mor_commit_time", "complete")
    for start, end in pairwise(table.writes):
        assert answer(table, start, end) == answer(original, start, end)


# ── Columns that the writer adds, or not ──


def with_properties(table: Path, **added: str) -> Path:
    path = table / ".hoodie" / "hoodie.properties"
    said = javaproperties.loads(path.read_text())
    said |= {key.replace("_", "."): value for key, value in added.items()}
    path.write_text(javaproperties.dumps(said))
    return table


@pytest.mark.parametrize("mode", ["NONE", "FILE_NAME_ONLY"])
@pytest.mark.parametrize("case", ["v9_cow_no_meta", "v9_mor_no_meta"])
def test_table_without_commit_times_has_a_state_and_no_windows(
    case: str, mode: str, tmp_path: Path
) -> None:
    twin = Twin(copied(case, tmp_path))
    with_properties(twin.table, hoodie_meta_fields_mode=mode)

    state = Golden(case, "snapshot", twin.table).rows()

    assert texts(state) == texts(Golden(case, "snapshot").rows())
    with pytest.raises(HudiCommitTimesMissing, match=rf"meta\.fields\.mode.* is {mode}"):
        Golden(case, "complete", twin.table)


def test_table_with_all_columns_says_so_by_its_mode(tmp_path: Path) -> None:
    twin = Twin(copied("v9_mor_basic", tmp_path))
    with_properties(twin.table, hoodie_meta_fields_mode="ALL")
    table, original = Golden("x", "complete", twin.table), Golden("v9_mor_basic", "complete")

    first, last = table.writes[0], table.writes[-1]

    assert answer(table, first, last) == answer(original, first, last)


def test_table_with_sorted_logs_is_refused(tmp_path: Path) -> None:
    twin = Twin(copied("v9_mor_basic", tmp_path))
    with_properties(twin.table, hoodie_table_storage_layout="lsm_tree")

    with pytest.raises(HudiPropertyUnsupported, match=r"storage\.layout.*found lsm_tree"):
        Golden("v9_mor_basic", "snapshot", twin.table)
