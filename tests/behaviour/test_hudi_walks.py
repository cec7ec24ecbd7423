"""Random walks of Spark over Hudi tables of all types: after each step, our rows are the engine's.

The walks are made by `tests/golden/hudi/_make/make_walks.py`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from golden_hudi import ROOT, Golden, canonical
from hudi_opinions import alike
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

WALKS = sorted(path.parent.name for path in ROOT.glob("walk-*/walk.zip"))
KEY, FOLDER, TIME = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"
OF_FILES = ("_hoodie_commit_seqno", "_hoodie_file_name")


@dataclass
class Step:
    """The table after one step, and the engine's rows."""

    place: Path
    name: str
    rows: list[dict[str, Any]]
    names: Sequence[str]


def steps(walk: str, root: Path) -> Iterator[Step]:
    """Stand the table as it was after each step that the engine can read it after."""
    with zipfile.ZipFile(ROOT / walk / "walk.zip") as packed:
        for number, step in enumerate(json.loads(packed.read("steps.json"))["steps"]):
            if step["unread"]:
                continue
            place = root / str(number)
            for below, digest in step["files"].items():
                path = place / below
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(packed.read(f"blobs/{digest}"))
            rows = pq.read_table(io.BytesIO(packed.read(f"rows/{number}.parquet")))
            names = [name for name in rows.schema.names if name not in OF_FILES]
            told = canonical(rows.select(names).to_pylist(maps_as_pydicts="strict"))
            yield Step(place, f"{number}, {step['step']}", told, names)


def counted(rows: Sequence[Mapping[str, Any]], *left_out: str) -> Counter[str]:
    """Rows as texts, without what is NULL."""
    kept = (
        {key: value for key, value in alike(row).items() if key not in left_out} for row in rows
    )
    return Counter(json.dumps(row, sort_keys=True) for row in kept)


@pytest.mark.parametrize("walk", WALKS)
def test_table_after_each_step_is_the_engines(walk: str, tmp_path: Path) -> None:
    for step in steps(walk, tmp_path):
        found = Golden("", "snapshot", step.place, read={"columns": step.names})

        assert counted(found.rows()) == counted(step.rows), step.name


@pytest.mark.parametrize("walk", WALKS)
def test_state_with_the_changes_of_each_step_is_the_engines(walk: str, tmp_path: Path) -> None:
    """A log compaction gives rows its own commit time, so that times are left out."""
    before, start = None, None
    for step in steps(walk, tmp_path):
        columns = [*step.names, "_change_type"]
        table = Golden("", "with_deletes", step.place, read={"columns": columns})
        head = table.pin.head
        assert head is not None
        if before is not None and start in table.writes:
            changes = [] if start == head else table.rows(InstantRange(start, head))
            assert counted(_after(before, changes), TIME) == counted(step.rows, TIME), step.name
        before, start = step.rows, head


def _after(
    before: Sequence[Mapping[str, Any]], changes: Sequence[dict[str, Any]]
) -> list[Mapping[str, Any]]:
    changed = {(row[FOLDER], row[KEY]) for row in changes}
    standing = [row for row in before if (row[FOLDER], row[KEY]) not in changed]
    return [*standing, *(row for row in changes if row.pop("_change_type") == "UPSERT")]
