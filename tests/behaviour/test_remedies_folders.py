"""A file of a folder that is gone: what a command says of it, typed as it stands, ends well."""

from __future__ import annotations

import os
import re
import shlex
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from folder_files import csv_bytes, json_bytes, put
from golden_hudi import copied
from small_lake import DAY, DAY_1, NOW, SmallLake, load, published_ids
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.model.instant import DataInterval
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

HOUR = timedelta(hours=1)
FIRST = "dt=2026-02-01"


class Typed:
    """A folder of one file a day, a pipeline over it, and a command line."""

    def __init__(self, lake: SmallLake) -> None:
        self.lake = lake
        self.root = lake.root / "landing"
        self.root.mkdir()
        lake.keys = {"commit": {"trigger": "process-time"}}
        self.configure()

    def configure(self, **source: Any) -> None:
        self.lake.source = {"kind": "files", "path": str(self.root), **source}
        self.lake.pipeline()

    def put(self, day: int, *ids: int, moment: datetime = NOW - DAY) -> Path:
        path = self.root / f"{day}.parquet"
        times = [DAY_1 + DAY * (day - 1)] * len(ids)
        pq.write_table(pa.table({"id": ids, "at": times}), path)
        os.utime(path, (moment.timestamp(),) * 2)
        return path

    def __call__(self, line: str, code: int = 0) -> str:
        """Type a command; what it wrote."""
        program, *arguments = shlex.split(line)
        assert program == "tidegate"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    def printed(self, text: str, verb: str, *more: str) -> str:
        """Type a command that stands in a message."""
        found = re.search(rf"`(tidegate {verb}[^`]*)`", text)
        assert found is not None, text
        return self(" ".join([found[1].replace("PARTITION", FIRST), *more]))


@pytest.fixture
def tidegate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    typed = Typed(SmallLake(tmp_path / "lake"))
    typed.lake.found_by_name(monkeypatch)
    return typed


@pytest.mark.follows("FolderOfTable")
def test_partition_of_a_table_is_refused_by_every_command_and_the_printed_one_reads_the_table(
    tmp_path: Path, tidegate: Typed
) -> None:
    table = copied("v6_cow_part_hive", tmp_path)
    marks = table.glob("*=*/.hoodie_partition_metadata")
    partition = next(place.parent for place in marks)
    tidegate.configure(path=str(partition))

    assert "✗ orders: source" in tidegate("tidegate check orders", 1)
    said = tidegate("tidegate load orders", 1)
    assert said == tidegate(f"tidegate init --from {partition}", 1)
    wrote = tidegate.printed(said, "init", "--out", str(tmp_path / "trips.yaml"))

    assert "trips.yaml" in wrote
    assert "kind: hudi" in (tmp_path / "trips.yaml").read_text()


@pytest.mark.follows("ListedFileGone")
@pytest.mark.parametrize("again", [f"rebuild orders {FIRST}", "replay orders 1"])
def test_rebuild_and_replay_of_a_file_that_is_gone_lead_to_what_stands(
    tidegate: Typed, again: str
) -> None:
    gone = tidegate.put(1, 1, 2)
    tidegate.put(2, 3)
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    gone.unlink()
    tidegate.configure(read={"filter": "id <> 9"})
    text = "`tidegate rebuild orders PARTITION`"
    if again.startswith("replay"):
        text = tidegate(f"tidegate {again}", 1)
        assert text.startswith("ListedFileGone")

    tidegate.printed(text, "rebuild")
    tidegate("tidegate load orders", 3)
    tidegate("tidegate publish orders")

    assert published_ids(tidegate.lake.target) == {FIRST: [], "dt=2026-02-02": [3]}


@pytest.mark.follows("FolderNotFound")
def test_folder_that_is_away_is_read_on_once_it_is_back(tidegate: Typed) -> None:
    tidegate.put(1, 1, 2)
    tidegate("tidegate load orders")
    away = tidegate.root.rename(tidegate.root.with_name("away"))

    assert "a volume that is not there. Mount it" in tidegate("tidegate load orders", 1)

    away.rename(tidegate.root)
    tidegate.put(2, 3)
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    assert published_ids(tidegate.lake.target) == {FIRST: [1, 2], "dt=2026-02-02": [3]}


@pytest.mark.follows("ListedFileGone")
def test_file_that_was_only_looked_at_and_is_gone_is_passed_by_the_next_load(
    tidegate: Typed,
) -> None:
    tidegate.put(1, 1, moment=NOW - 5 * HOUR)
    load(tidegate.lake.pipeline(), DataInterval(NOW - DAY, NOW - 4 * HOUR))
    gone = tidegate.put(2, 2, moment=NOW - 3.5 * HOUR)
    tidegate.lake.pipeline().look(Run("sensor", "sensor"), NOW)
    gone.unlink()
    tidegate.put(3, 3, moment=NOW - HOUR)
    tidegate.lake.pipeline().look(Run("sensor", "sensor"), NOW)
    load(tidegate.lake.pipeline(), DataInterval(NOW - 4 * HOUR, NOW - 3 * HOUR))

    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")

    assert published_ids(tidegate.lake.target) == {FIRST: [1], "dt=2026-02-03": [3]}


@pytest.mark.follows("ListedFileChanged")
@pytest.mark.parametrize("again", [f"rebuild orders {FIRST}", "replay orders 1"])
def test_rebuild_and_replay_of_a_file_that_changed_lead_to_what_stands(
    tidegate: Typed, again: str
) -> None:
    filtered = {"read": {"filter": "id <> 9"}}
    tidegate.put(1, 1, 2)
    tidegate.put(2, 3)
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    tidegate.put(1, 1, 5, 6, moment=NOW)
    tidegate.configure(**filtered)
    text = "`tidegate rebuild orders PARTITION`"
    if again.startswith("replay"):
        text = tidegate(f"tidegate {again}", 1)
        assert text.startswith("ListedFileChanged")
        assert "Otherwise run `tidegate rebuild" in text

    tidegate.printed(text, "rebuild")
    tidegate("tidegate load orders", 3)
    tidegate("tidegate publish orders")

    expected = {FIRST: [1, 5, 6], "dt=2026-02-02": [3]}
    assert published_ids(tidegate.lake.target) == tidegate.lake.listed_ids() == expected


LONG = 2**53 + 1


@pytest.mark.follows("SourceRowInvalid")
@pytest.mark.parametrize(
    ("kind", "published"), [("decimal(20,1)", Decimal(LONG)), ("double", float(LONG))]
)
@pytest.mark.parametrize("form", ["csv", "json"])
def test_whole_number_that_no_double_holds_is_published_once_its_column_is_declared(
    tidegate: Typed, form: str, kind: str, published: Decimal | float
) -> None:
    """The first rows look like fractions, and the number stands behind them."""
    at = "2026-02-01T00:00:00Z"
    rows = [{"id": id, "amount": 1.5, "at": at} for id in range(1, 12_000)]
    rows.append({"id": 12_000, "amount": LONG, "at": at})
    write = {"csv": csv_bytes, "json": json_bytes}[form]
    (tidegate.root / f"a.{form}").write_bytes(write(rows))
    tidegate.configure(format=form)

    said = tidegate("tidegate load orders", 1)

    assert said.startswith("SourceRowInvalid")
    assert f"row {12_000 + (form == 'csv')}, column 'amount'" in said
    assert f"found {LONG}; declare all columns in `source.columns`" in said
    columns = {"id": "long", "amount": kind, "at": "timestamp"}
    tidegate.configure(format=form, columns=columns)
    tidegate.printed(said, "abandon", "--yes")
    tidegate.printed(said, "load")
    tidegate("tidegate publish orders")
    found = read_committed(tidegate.lake.target).to_table(columns=["id", "amount"])
    amounts = dict(zip(*found.to_pydict().values(), strict=True))
    assert (len(amounts), amounts[12_000]) == (12_000, published)


@pytest.mark.follows("SourceRowInvalid")
@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    ("declared", "at"),
    [("timestamp", "2026-02-01T10:00:00"), ("timestamp_ntz", "2026-02-01T10:00:00Z")],
)
def test_times_that_have_a_zone_or_none_are_published_as_the_type_that_is_named(
    tidegate: Typed, form: str, declared: str, at: str
) -> None:
    write = {"csv": csv_bytes, "json": json_bytes}[form]
    (tidegate.root / f"a.{form}").write_bytes(write([{"id": 1, "at": at}]))
    tidegate.configure(format=form, columns={"id": "long", "at": declared})

    said = tidegate("tidegate load orders", 1)

    named = re.search(r"`(timestamp\w*)` in `source.columns`", said)
    assert named is not None, said
    tidegate.configure(format=form, columns={"id": "long", "at": named[1]})
    tidegate.printed(said, "abandon", "--yes")
    tidegate.printed(said, "load")
    tidegate("tidegate publish orders")
    assert published_ids(tidegate.lake.target) == {FIRST: [1]}


@pytest.mark.parametrize("second", [LONG, 12345678901234567890123])
def test_long_whole_numbers_of_csv_are_published_as_they_are_written(
    tidegate: Typed, second: int
) -> None:
    ids = [123456789012345678901, second]
    rows = [{"id": id, "at": "2026-02-01T00:00:00Z"} for id in ids]
    (tidegate.root / "a.csv").write_bytes(csv_bytes(rows))
    tidegate.configure(format="csv")

    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")

    found = read_committed(tidegate.lake.target).to_table(columns=["id"])
    assert sorted(found["id"].to_pylist()) == sorted(map(str, ids))


@pytest.mark.follows("ListedFileChanged", "SourceRowInvalid")
@pytest.mark.parametrize("more", [("", ""), (",more", ",8")], ids=["same columns", "new column"])
def test_file_that_was_corrected_is_named_whatever_arrived_since(
    tidegate: Typed, more: tuple[str, str]
) -> None:
    tidegate.configure(format="csv")
    row = "2026-02-01T00:00:00Z"
    (tidegate.root / "a.csv").write_text(f"id,qty,at\n1,2,{row}\n")
    tidegate("tidegate load orders")
    (tidegate.root / "b.csv").write_text(f"id,qty,at\n2,x,{row}\n")
    assert tidegate("tidegate load orders", 1).startswith("SourceRowInvalid")
    (tidegate.root / "b.csv").write_text(f"id,qty,at\n2,33,{row}\n")
    (tidegate.root / "c.csv").write_text(f"id,qty,at{more[0]}\n3,4,{row}{more[1]}\n")

    said = tidegate("tidegate load orders", 1)

    assert said.startswith("ListedFileChanged")
    assert "configuration" not in said
    tidegate.printed(said, "abandon", "--yes")
    tidegate.printed(said, "load")
    tidegate("tidegate publish orders")
    rows = read_committed(tidegate.lake.target).to_table(columns=["id", "qty"])
    assert sorted(rows.to_pylist(), key=str) == [
        {"id": 1, "qty": 2},
        {"id": 2, "qty": 33},
        {"id": 3, "qty": 4},
    ]


ROW = "2026-02-01T00:00:00Z"


@pytest.mark.follows("FileOfOtherColumns")
@pytest.mark.parametrize("remedy", ["corrected", "taken out"])
def test_file_with_none_of_the_columns_of_the_others_is_refused(
    tidegate: Typed, remedy: str
) -> None:
    tidegate.configure(format="csv")
    first, second = tidegate.root / "a.csv", tidegate.root / "b.csv"
    first.write_text(f"id,qty,at\n1,2,{ROW}\n")
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    second.write_text(f"id;qty;at\n3;4;{ROW}\n")

    said = tidegate("tidegate load orders", 1)

    assert said.startswith("FileOfOtherColumns")
    assert f"{second}: expected one of the columns of the files before it, id, qty, at; " in said
    if remedy == "corrected":
        second.write_text(f"id,qty,at\n3,4,{ROW}\n")
    else:
        second.unlink()
        (tidegate.root / "c.csv").write_text(f"id,qty,at\n3,4,{ROW}\n")
    tidegate.printed(said, "load")
    tidegate("tidegate publish orders")
    rows = read_committed(tidegate.lake.target).to_table(columns=["id", "qty"]).to_pylist()
    assert sorted((row["id"], row["qty"]) for row in rows) == [(1, 2), (3, 4)]


@pytest.mark.follows("FileOfOtherColumns")
@pytest.mark.parametrize("format", ["csv", "json"])
def test_files_that_came_before_those_of_the_table_are_taken_out_and_all_is_read_anew(
    tidegate: Typed, format: str
) -> None:
    tidegate.lake.keys |= {"event_time": None, "target": {"partition_by": None}}
    tidegate.configure(format=format)
    put(tidegate.root, f"a.{format}", [{"x": 1, "y": 2}])
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    put(tidegate.root, f"b.{format}", [{"id": 3, "qty": 4}])

    said = tidegate("tidegate load orders", 1)

    assert "the columns of the files before it, x, y; found only id, qty." in said
    assert tidegate("tidegate load orders", 1) == said
    (tidegate.root / f"a.{format}").unlink()
    tidegate.printed(said, "reset", "--yes")
    tidegate.printed(said, "load")
    tidegate("tidegate publish orders")
    rows = read_committed(tidegate.lake.target).to_table().to_pylist()
    assert rows == [{"id": 3, "qty": 4}]


@pytest.mark.parametrize("again", ["load orders", f"rebuild orders {FIRST}", "replay orders 1"])
@pytest.mark.parametrize("how", ["touched", "copied"])
def test_file_with_another_time_is_the_same_file(tidegate: Typed, again: str, how: str) -> None:
    path = tidegate.put(1, 1, 2)
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    content = path.read_bytes()
    if how == "copied":
        path.unlink()
        path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    tidegate.put(2, 3)
    tidegate.configure(read={"filter": "id <> 9"})

    tidegate(f"tidegate {again}")
    if not again.startswith("load"):
        tidegate("tidegate load orders")
    tidegate("tidegate publish orders")

    expected = {FIRST: [1, 2], "dt=2026-02-02": [3]}
    assert published_ids(tidegate.lake.target) == tidegate.lake.listed_ids() == expected
    tidegate("tidegate load orders", 3)


def test_open_window_of_a_file_that_was_touched_is_finished(tidegate: Typed) -> None:
    path = tidegate.put(1, 1, 2)
    tidegate("tidegate plan orders")
    os.utime(path, ns=(1, 1))

    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")

    assert published_ids(tidegate.lake.target) == {FIRST: [1, 2]}


@pytest.mark.follows("ListedFileGone", "ListedFileChanged")
@pytest.mark.parametrize("restored", [True, False], ids=["restored", "lost"])
@pytest.mark.parametrize("changed", [False, True], ids=["gone", "changed"])
def test_open_window_of_a_file_that_is_not_as_listed_is_restored_or_given_up(
    tidegate: Typed, *, changed: bool, restored: bool
) -> None:
    tidegate.put(2, 3)
    path = tidegate.put(1, 1, 2)
    tidegate("tidegate plan orders")
    away = tidegate.lake.root / "away"
    path.rename(away)
    if changed:
        tidegate.put(1, 1, 5, 6, moment=NOW)
    text = tidegate("tidegate load orders", 1)

    if restored:
        away.rename(path)
        tidegate("tidegate load orders")
    else:
        tidegate.printed(text, "abandon", "--yes")
        tidegate.printed(text, "load")
    tidegate("tidegate publish orders")

    first = {FIRST: [1, 2]} if restored else {FIRST: [1, 5, 6]} if changed else {}
    assert published_ids(tidegate.lake.target) == {**first, "dt=2026-02-02": [3]}
    tidegate("tidegate fsck orders")


@pytest.mark.follows("StateFileLost")
@pytest.mark.parametrize("filtered", [False, True], ids=["as it was", "other configuration"])
def test_announce_that_was_lost_is_written_anew_once_the_file_it_read_is_gone(
    tidegate: Typed, *, filtered: bool
) -> None:
    gone = tidegate.put(1, 1, 2)
    tidegate.put(2, 3)
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")
    gone.unlink()
    tidegate.put(3, 4)
    other = {"read": {"filter": "id <> 9"}} if filtered else {}
    tidegate.configure(on_changed_file="ignore", **other)
    tidegate("tidegate load orders")
    (path,) = (tidegate.lake.work / "windows" / "000001").rglob("sealed.json")
    written = path.read_bytes()
    path.unlink()

    tidegate.printed(tidegate("tidegate fsck orders", 1), "fsck")
    assert path.read_bytes() == written
    tidegate("tidegate publish orders")
    tidegate("tidegate fsck orders")
    for path in tidegate.lake.root.glob("ledger.db*"):
        path.unlink()
    tidegate("tidegate fsck orders --rebuild")

    expected = {FIRST: [1, 2], "dt=2026-02-02": [3], "dt=2026-02-03": [4]}
    assert published_ids(tidegate.lake.target) == tidegate.lake.listed_ids() == expected


@pytest.mark.on_disk
@pytest.mark.follows("StagedFileMissing")
def test_staged_file_that_was_lost_of_a_window_that_no_replay_reads_is_left_by_a_rebuild(
    tidegate: Typed,
) -> None:
    gone = tidegate.put(1, 1, 2)
    tidegate("tidegate load orders")
    gone.unlink()
    late = tidegate.put(1, 5)
    late.rename(late.with_name("late.parquet"))
    filtered = {"read": {"filter": "id <> 9"}, "on_changed_file": "ignore"}
    tidegate.configure(**filtered)
    tidegate("tidegate load orders")
    next((tidegate.lake.work / "windows" / "000001").rglob("part-*")).unlink()
    text = tidegate(f"tidegate publish orders {FIRST}", 1)
    assert text.startswith("StagedFileMissing")
    found = tidegate("tidegate fsck orders", 1)

    assert tidegate("tidegate replay orders 1", 1).startswith("ListedFileGone")
    assert "if that is refused, the partition with `tidegate rebuild orders dt=" in found
    tidegate.printed(text, "rebuild")
    tidegate("tidegate publish orders")

    assert published_ids(tidegate.lake.target) == tidegate.lake.listed_ids() == {FIRST: [5]}
    tidegate("tidegate fsck orders")
