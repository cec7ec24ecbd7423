"""Golden Iceberg tables: open them as sources, read them, compare with the engine's own answers."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.config import SourceConfig
from tidegate.model.instant import Instant
from tidegate.read import read_pieces
from tidegate.source.iceberg import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tidegate.model.plan import Piece, Pin
    from tidegate.source.protocol import Source

ROOT = Path(__file__).parent / "golden" / "iceberg"


@cache
def _canonical() -> Any:
    spec = importlib.util.spec_from_file_location("canonical", ROOT / "_make" / "canonical.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def answers(case: str) -> Mapping[str, Any]:
    """What the engine says of a table."""
    loaded: Mapping[str, Any] = json.loads((ROOT / case / "answers.json").read_text())
    return loaded


@dataclass(frozen=True)
class Golden:
    """One golden table, in its place or in a copy that a test may damage."""

    case: str
    folder: Path

    @property
    def answers(self) -> Mapping[str, Any]:
        """What the engine says of the table."""
        return answers(self.case)

    @property
    def metadata(self) -> Path:
        """The head's metadata file."""
        return self.folder / str(self.answers["metadata"])

    def edit_metadata(self, change: Any) -> None:
        """Rewrite the metadata file of a copy: `change` gets the parsed JSON."""
        raw = json.loads(self.metadata.read_text())
        change(raw)
        self.metadata.write_text(json.dumps(raw))

    def source(self, **keys: Any) -> IcebergSource:
        """Open the table with more keys of a pipeline's `source`."""
        rewrites = self.answers["location_rewrite"].items()
        config = {
            "kind": "iceberg",
            "metadata": str(self.metadata),
            "location_rewrite": {old: str(self.folder / new) for old, new in rewrites},
            **keys,
        }
        return IcebergSource(SourceConfig.model_validate(config), retry_pause_seconds=0)


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
    return pa.Table.from_batches(read_pieces(pieces, source.format(pin)), source.schema(pin))


def expected_lines(answer: Mapping[str, Any]) -> list[str]:
    """Give an answer's rows, sorted, in the form of `lines`."""
    return sorted(_canonical().line(row) for row in answer["rows"])


def lines(table: pa.Table) -> list[str]:
    """Give a table's rows, sorted, as the answers write them."""
    return sorted(_canonical().line(row) for row in _canonical().rows(table))


def fits(table: pa.Table, answer: Mapping[str, Any]) -> bool:
    """Say whether a table has exactly the rows of an answer, in whichever form it gives them."""
    if "rows" in answer:
        return lines(table) == expected_lines(answer)
    return bool(_canonical().digest(_canonical().rows(table)) == answer["digest"])
