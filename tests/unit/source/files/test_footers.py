"""What is kept of footers between the look at a folder and the plan of its files."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.config import read_source
from tidegate.errors import FileOfOtherColumns, ListedFileChanged, ListedFileGone
from tidegate.model.event_column import EventColumn
from tidegate.model.instant import InstantRange
from tidegate.model.time_bounds import TimeBounds
from tidegate.source.files import FilesSource, footers
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.plan import Piece, Pin
    from tidegate.storage import FileDetails

NOW = datetime(2026, 11, 21, tzinfo=UTC)
AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "table"
    found.mkdir()
    for number in range(3):
        moments = [AT + timedelta(hours=number), AT + timedelta(hours=number + 1), None]
        columns = {
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "day": [date(2026, 3, 1 + number)] * 3,
            "count": [number, 5, None],
            "nothing": pa.nulls(3, pa.timestamp("ms")),
        }
        pq.write_table(pa.table(columns), found / f"{number}.parquet", row_group_size=1 + number)
    pq.write_table(pa.table({"count": [1]}), found / "other.parquet")
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    really = LocalStorage.open_with_details

    def counting(storage: LocalStorage, path: str) -> tuple[pa.NativeFile, FileDetails]:
        counts[path.rpartition("/")[2]] += 1
        return really(storage, path)

    monkeypatch.setattr(LocalStorage, "open_with_details", counting)
    return counts


def source_of(root: Path) -> FilesSource:
    config = read_source({"kind": "files", "path": str(root)})
    return FilesSource(config, LocalStorage(), str(root.parent / "listings"))


def planned(source: FilesSource, pin: Pin, column: str | None) -> tuple[Piece, ...]:
    assert pin.head
    event_time = EventColumn(column, "UTC", "s") if column else None
    window = InstantRange(None, pin.head)
    return source.slicing.units(pin, window, event_time=event_time).pieces


@pytest.mark.parametrize("is_new", [False, True], ids=["with the others", "later"])
def test_file_that_shares_no_column_with_those_before_it_is_refused_and_adds_none(
    root: Path, is_new: bool
) -> None:
    before = source_of(root).timeline.pin(NOW).head if is_new else None
    pq.write_table(pa.table({"count;at": [1]}), root / "strange.parquet")

    for _ in range(2):
        source = source_of(root)
        pin = source.timeline.pin(NOW, None, after=before)

        assert source.reading.schema(pin).names == ["at", "day", "count", "nothing"]
        with pytest.raises(FileOfOtherColumns, match=r"strange\.parquet: .* only count;at"):
            planned(source, pin, None)


@pytest.mark.parametrize("column", [None, "at", "day", "count", "nothing", "absent"])
def test_plan_after_a_look_equals_the_plan_of_another_process(
    root: Path, column: str | None
) -> None:
    source = source_of(root)
    pin = source.timeline.pin(NOW)

    assert planned(source, pin, column) == planned(source_of(root), pin, column)


def test_plan_has_the_bounds_that_the_rows_have(root: Path) -> None:
    source = source_of(root)

    pieces = planned(source, source.timeline.pin(NOW), "at")

    bounds = [(AT + timedelta(hours=n), AT + timedelta(hours=n + 1)) for n in range(3)]
    assert [piece.event_times for piece in pieces] == [
        *(TimeBounds(*each) for each in bounds),
        None,
    ]
    assert [piece.rows for piece in pieces] == [3, 3, 3, 1]


@pytest.mark.parametrize(
    ("column", "times"), [(None, 1), ("at", 1), ("day", 1), ("absent", 1), ("count", 2)]
)
def test_footers_are_read_once_for_columns_and_plan(
    root: Path, opened: Counter[str], column: str | None, times: int
) -> None:
    source = source_of(root)

    planned(source, source.timeline.pin(NOW), column)

    assert set(opened.values()) == {times}
    assert len(opened) == 4


def test_footer_with_many_column_chunks_is_read_again_for_bounds(
    root: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footers, "_FEW_CHUNKS", 8)
    source = source_of(root)

    pieces = planned(source, source.timeline.pin(NOW), "at")

    assert opened == {"0.parquet": 2, "1.parquet": 1, "2.parquet": 1, "other.parquet": 1}
    assert pieces == planned(source_of(root), source.timeline.pin(NOW), "at")


def test_no_more_footers_are_kept_than_are_allowed(
    root: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footers, "_MOST_KEPT", 1)
    source = source_of(root)

    planned(source, source.timeline.pin(NOW), "at")

    assert sorted(opened.values()) == [1, 3, 3, 3]


@pytest.mark.parametrize("event", ["gone", "changed"])
def test_file_that_is_not_as_it_was_looked_at_is_told_by_the_plan(root: Path, event: str) -> None:
    source = source_of(root)
    pin = source.timeline.pin(NOW)
    if event == "gone":
        (root / "1.parquet").unlink()
    else:
        pq.write_table(pa.table({"count": [2]}), root / "1.parquet")

    expected: Any = ListedFileGone if event == "gone" else ListedFileChanged
    with pytest.raises(expected, match=r"1\.parquet"):
        planned(source, pin, "at")
