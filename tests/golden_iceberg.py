"""Golden Iceberg tables: open them as sources, read them, compare with the engine's own answers."""

from __future__ import annotations

import copy
import importlib.util
import json
import shutil
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate import read_changes
from tidegate.config import read_source
from tidegate.model.instant import Instant
from tidegate.read.merge import ReadOptions
from tidegate.source.iceberg import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.model.plan import Piece, Pin
    from tidegate.source.protocol import Source

ROOT = Path(__file__).parent / "golden" / "iceberg"
CASES = tuple(sorted(path.parent.name for path in ROOT.glob("*/answers.json")))
"""Hand-made tables."""
REFUSED = {"variant_v3", "orc_far_timestamps_v2"}
"""Those with a column that cannot be read (ICE-1.3, 6.18); each has tests of its own."""
READABLE = tuple(case for case in CASES if case not in REFUSED)
"""Those that every question can be asked of."""
RANDOM = tuple(sorted(path.parent.name for path in ROOT.glob("*/fuzz.json")))
"""Random histories."""


@cache
def _canonical() -> Any:
    spec = importlib.util.spec_from_file_location("canonical", ROOT / "_make" / "canonical.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def answers(case: str, root: Path = ROOT) -> Mapping[str, Any]:
    """What the engine says of a table, or of a random one what was written down beside it."""
    file = root / case / "answers.json"
    text = (file if file.exists() else root / case / "fuzz.json").read_text()
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@cache
def expected(case: str) -> Mapping[str, Any]:
    """What the specification says of a table: the engine's answers, corrected where it is wrong."""
    correct = {
        "eq_nested_key_v2": _gone_from_head(3),
        "eq_uuid_high_bit_v2": _gone_from_head(2),
        "struct_fields_replaced_v2": _struct_of_defaults,
        "initial_default_v3": _defaults_in_filters,
    }
    corrected = copy.deepcopy(dict(answers(case)))
    if case in correct:
        correct[case](corrected)
    return corrected


def _gone_from_head(deleted_id: int) -> Callable[[dict[str, Any]], None]:
    """The last commit deletes one row more than the engine finds."""

    def correct(found: dict[str, Any]) -> None:
        head, last = found["head"], found["snapshots"][-1]
        gone = [row for row in head["rows"] if row[0] == deleted_id]
        for answer in (head, head["with_metadata_columns"], last):
            answer["rows"] = [row for row in answer["rows"] if row[0] != deleted_id]
        last["changes"]["delete"]["rows"] += gone
        if not any(task["deletes"] for task in head["tasks"]):
            head["tasks"][0]["deletes"] = [_only_key_delete(found)]

    return correct


def _only_key_delete(found: Mapping[str, Any]) -> dict[str, Any]:
    """The one equality delete file of a table, as the plan should bind it."""
    (file,) = (ROOT / found["case"]).glob("table/data/eq-delete-*")
    return {
        "file": f"data/{file.name}",
        "content": "EQUALITY_DELETES",
        "format": "PARQUET",
        "content_offset": None,
        "data_sequence_number": found["snapshots"][-1]["sequence_number"],
    }


def _struct_of_defaults(found: dict[str, Any]) -> None:
    """A struct none of whose fields are in the file is a struct of defaults (ICE-6.15)."""
    for rows in _all_rows(found):
        for row in rows:
            if row[0] == 1 and row[1] is None:
                row[1] = {"y": None}


def _defaults_in_filters(found: dict[str, Any]) -> None:
    """The engine's filters miss the defaults that its own rows show (ICE-6.11, 6.15)."""
    names = [name for name, _ in found["head"]["columns"]]
    for asked, (column, value) in zip(
        found["expect"]["filter"], (("i", 7), ("renamed", "dflt ü")), strict=True
    ):
        at = names.index(column)
        asked["ids"] = sorted(row[0] for row in found["head"]["rows"] if row[at] == value)


def _all_rows(found: Any) -> Iterator[list[Any]]:
    if isinstance(found, dict):
        for key, item in found.items():
            if key == "rows":
                yield item
            else:
                yield from _all_rows(item)
    elif isinstance(found, list):
        for item in found:
            yield from _all_rows(item)


@dataclass(frozen=True)
class Golden:
    """One golden table, in its place or in a copy that a test may damage."""

    case: str
    folder: Path

    @property
    def answers(self) -> Mapping[str, Any]:
        """What the engine says of the table."""
        return answers(self.case, self.folder.parent)

    @property
    def metadata(self) -> Path:
        """The head's metadata file."""
        return self.folder / str(self.answers["metadata"])

    def edit_metadata(self, change: Any) -> None:
        """Rewrite the metadata file of a copy: `change` gets the parsed JSON."""
        raw = json.loads(self.metadata.read_text())
        change(raw)
        self.metadata.write_text(json.dumps(raw))

    def config(self, **keys: Any) -> dict[str, Any]:
        """Give a pipeline's `source` with more keys."""
        rewrites = self.answers["location_rewrite"].items()
        return {
            "kind": "iceberg",
            "metadata": str(self.metadata),
            "location_rewrite": {old: str(self.folder / new) for old, new in rewrites},
            **keys,
        }

    def source(self, **keys: Any) -> IcebergSource:
        """Open the table with more keys of a pipeline's `source`."""
        return IcebergSource(read_source(self.config(**keys)), retry_pause_seconds=0)

    def changes(
        self,
        mode: str,
        start: int | None = None,
        end: int | None = None,
        columns: Sequence[str] | None = None,
        **keys: Any,
    ) -> pa.Table:
        """Read the table through the library; `keys` are more keys of `source`."""
        reader = read_changes(
            self.config(**keys),
            start_exclusive=start,
            end_inclusive=end,
            mode=mode,
            columns=columns,
        )
        return reader.read_all()

    def relative(self, path: str) -> str:
        """Give a path as the answers do, below the table's location."""
        return path.removeprefix(f"{self.answers['location']}/")


def golden(case: str) -> Golden:
    """Give a golden table in its place; nothing may be written there."""
    return Golden(case, ROOT / case)


def golden_copy(case: str, place: Path) -> Golden:
    """Copy a golden table to a place where a test may change it."""
    shutil.copytree(ROOT / case, place / case)
    return Golden(case, place / case)


def instant(snapshot_id: int | None, time: datetime) -> Instant | None:
    """Give a snapshot id of the answers as an instant."""
    return None if snapshot_id is None else Instant(str(snapshot_id), time)


def read(source: Source, pin: Pin, pieces: Iterable[Piece]) -> pa.Table:
    """Read pieces whole."""
    reader = source.reading.reader(pin)
    return pa.Table.from_batches(reader.batches(pieces, ReadOptions()), reader.schema)


def expected_lines(answer: Mapping[str, Any]) -> list[str]:
    """Give an answer's rows, sorted, in the form of `lines`."""
    return sorted(_canonical().line(row) for row in answer["rows"])


def lines(table: pa.Table) -> list[str]:
    """Give a table's rows, sorted, as the answers write them."""
    return sorted(_canonical().line(row) for row in _canonical().rows(table))


def bag(table: pa.Table) -> Counter[str]:
    """Count a table's rows."""
    return Counter(_canonical().bag(table))


def fits(table: pa.Table, answer: Mapping[str, Any]) -> bool:
    """Say whether a table has exactly the rows of an answer, in whichever form it gives them."""
    if "rows" in answer:
        return lines(table) == expected_lines(answer)
    if "digest" in answer:
        return bool(_canonical().digest(_canonical().rows(table)) == answer["digest"])
    return table.num_rows == answer["row_count"] and _sums(table, answer["sums"]) == answer["sums"]


def _sums(table: pa.Table, wanted: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
    """Sum up number columns as the answers do where they have too many rows to list."""
    found = {}
    for name in wanted:
        column = table.column(name)
        bounds = pc.min_max(column).as_py()
        found[name] = {
            "sum": _text(pc.sum(column).as_py()),
            "min": _text(bounds["min"]),
            "max": _text(bounds["max"]),
            "non_null": str(len(column) - column.null_count),
        }
    return found


def _text(number: Any) -> str | None:
    return None if number is None else str(number)
