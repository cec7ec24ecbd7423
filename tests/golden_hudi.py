"""Golden Hudi tables: unpack them, open them as sources, compare with the engine's own answers."""

from __future__ import annotations

import atexit
import base64
import hashlib
import json
import math
import shutil
import tempfile
import zipfile
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.config import read_source
from tidegate.model.instant import InstantRange
from tidegate.read.merge import ReadOptions
from tidegate.source.hudi import HudiSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.model.instant import Instant
    from tidegate.model.plan import Pin

ROOT = Path(__file__).parent / "golden" / "hudi"
CASES = tuple(
    sorted(path.parent.name for path in ROOT.glob("v*/answers.json") if path.parent.is_dir())
)
"""Tables made for one purpose each."""
RANDOM = tuple(sorted(path.parent.name for path in ROOT.glob("fuzz-*/answers.json")))
"""Random workloads."""
NOW = datetime(2026, 12, 24, tzinfo=UTC)
_OWN = frozenset({"_hoodie_is_deleted", "_hoodie_operation"})
_FIRST = "000"


@cache
def _place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="golden-hudi-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@cache
def folder(case: str) -> Path:
    """Unpack a table once per process; tests that change one take `copied`."""
    place = _place() / case
    zipfile.ZipFile(ROOT / case / "table.zip").extractall(place)
    return place / "table"


def copied(case: str, root: Path) -> Path:
    """Unpack a table to be changed."""
    zipfile.ZipFile(ROOT / case / "table.zip").extractall(root)
    return root / "table"


@cache
def answers(case: str) -> Mapping[str, Any]:
    """What the engine says of a table."""
    loaded: Mapping[str, Any] = json.loads((ROOT / case / "answers.json").read_text())
    return loaded


def newest_opinion(case: str, kind: str, *keys: str) -> Iterator[Mapping[str, Any]]:
    """The answers of one kind: those of Hudi 1.2.0, where it read them otherwise (HUDI-M8)."""
    second = {
        tuple(one[key] for key in keys): one
        for one in answers(case).get("second_opinion", {}).get(kind, ())
    }
    found = answers(case).get(kind, ())
    if kind == "windows":
        found = answers(case).get("incremental", {}).get("windows", ())
    for one in found:
        later = second.get(tuple(one[key] for key in keys), one)
        yield {**one, **later} if "error" not in later else one


class Golden:
    """One table as a source in one read mode."""

    def __init__(self, case: str, mode: str, place: Path | None = None, **keys: Any) -> None:
        self.case = case
        read = {"mode": mode, **keys.pop("read", {})}
        path = str(place or folder(case))
        said = {"kind": "hudi", "path": path, "read": read, **keys}
        self.source = HudiSource(read_source(said))
        self.pin = self.source.timeline.pin(NOW)

    @property
    def writes(self) -> tuple[Instant, ...]:
        """All writes that are known, archived ones included, in the order of completion."""
        timeline = self.source.timeline
        return timeline._all(self.pin)

    def window(self, begin: str, end: str) -> InstantRange | None:
        """The range of writes that were done after one time and up to another; None if empty."""
        ends = [it for it in self.writes if completed(it) <= end]
        starts = [it for it in self.writes if completed(it) <= begin]
        if not ends or (starts and starts[-1] == ends[-1]):
            return None
        return InstantRange(starts[-1] if starts else None, ends[-1])

    def rows(self, window: InstantRange | None = None) -> list[dict[str, Any]]:
        """Read a window, or the head, as the answers spell rows."""
        if window is None:
            window = InstantRange(None, self.pin.head) if self.pin.head else None
        if window is None:
            return []
        pin = self.source.timeline.at(self.pin, window.end_inclusive)
        return canonical(self.table(pin, window).to_pylist(maps_as_pydicts="strict"))

    def table(self, pin: Pin, window: InstantRange) -> pa.Table:
        """Read a window as a table."""
        units = self.source.slicing.units(pin, window)
        reader = self.source.reading.reader(pin)
        return pa.Table.from_batches(reader.batches(units, ReadOptions()), reader.schema)


def completed(instant: Instant) -> str:
    """When a write was done, as the answers spell it."""
    requested, _, done = instant.id.partition("_")
    return done or requested


def canonical(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Spell rows as the answers do."""
    return [{key: _value(value) for key, value in row.items()} for row in rows]


def digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """The digest of rows, as the README of the tables defines it."""
    return hashlib.sha256("\n".join(sorted(texts(rows).elements())).encode()).hexdigest()


def texts(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Rows without the columns of the writer, as comparable texts."""
    own = ({key: row[key] for key in row if not _is_meta(key)} for row in rows)
    return Counter(
        json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for row in own
    )


def fits(rows: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> bool:
    """Whether rows are those of an answer."""
    return digest(rows) == answer["digest"]


def frames(case: str, file: str, column: str) -> dict[int, list[dict[str, Any]]]:
    """The rows of a random table by their position in a list of states or windows."""
    table = pq.read_table(ROOT / case / file)
    found: dict[int, list[dict[str, Any]]] = {}
    for row in canonical(table.to_pylist(maps_as_pydicts="strict")):
        found.setdefault(row.pop(column), []).append(row)
    return found


def _is_meta(column: str) -> bool:
    return column.startswith("_hoodie_") and column not in _OWN


def _value(found: Any) -> Any:
    match found:
        case Decimal():
            made: Any = str(found)
        case datetime():
            plain = found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
            made = plain.isoformat(timespec="microseconds")
        case date():
            made = found.isoformat()
        case bytes():
            made = "base64:" + base64.b64encode(found).decode()
        case float() if not math.isfinite(found):
            made = "nan" if math.isnan(found) else "inf" if found > 0 else "-inf"
        case dict():
            made = {str(key): _value(value) for key, value in found.items()}
        case list():
            made = [_value(item) for item in found]
        case _:
            made = found
    return made
