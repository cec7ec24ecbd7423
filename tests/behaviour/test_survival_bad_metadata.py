"""Metadata that is damaged, gone, or of another table: a typed error, and nothing is taken in."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import Golden, golden_copy
from golden_pipeline import NOW
from small_lake import load, publish, stamps
from tidegate.errors import (
    SourceFileDamaged,
    SourceFileGone,
    SourceVanished,
    TableIdentityChanged,
    TidegateError,
    UnsupportedFeature,
)
from tidegate.pipeline import Pipeline, open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass
class Damaged:
    """A pipeline that took in the first two commits of a table, and the rest of it to break."""

    table: Golden
    root: Path

    @property
    def folder(self) -> Path:
        """The table's metadata directory."""
        return self.table.folder / "table" / "metadata"

    def pipeline(self, version: int = 5) -> Pipeline:
        """Open the pipeline at a version of the table's metadata."""
        raw = {
            "name": "damaged",
            "source": {
                **self.table.config(),
                "metadata": str(self.folder / f"v{version}.metadata.json"),
                "max_planning_failures": 0,
            },
            "target": {"path": str(self.root / "published")},
            "commit": {"trigger": "process-time"},
        }
        file = self.root / "damaged.yaml"
        file.write_text(json.dumps(raw))
        return open_pipeline(file, ledger=f"sqlite:///{self.root}/ledger.db")

    def standing(self) -> dict[str, Any]:
        """Give what no refused load may change; a window that was taken stays open."""
        ledger = self.pipeline().ledger
        state = ledger.pipeline.find()
        return {
            "pipeline": state and replace(state, next_sequence=0, next_number=0),
            "sealed": [item for item in ledger.windows.all() if item.sealed],
            "partitions": ledger.partitions.all(),
            "published": stamps(self.root / "published"),
            "staged": [
                name for name in stamps(self.root / ".tidegate-published") if "/staged/" in name
            ],
        }

    def edit(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the head's metadata file."""
        file = self.folder / "v5.metadata.json"
        raw = json.loads(file.read_text())
        change(raw)
        file.write_text(json.dumps(raw))

    def list_of_head(self) -> Path:
        """Give the manifest list of the newest snapshot."""
        raw = json.loads((self.folder / "v5.metadata.json").read_text())
        location = str(raw["snapshots"][-1]["manifest-list"])
        return self.folder / location.rpartition("/")[2]

    def newest_manifest(self) -> Path:
        """Give the manifest that was written last."""
        name = self.list_of_head().name.split("-", 3)[3].removesuffix(".avro")
        return self.folder / f"{name}-m0.avro"


@pytest.fixture
def damaged(tmp_path: Path) -> Damaged:
    made = Damaged(golden_copy("append_v2", tmp_path / "table"), tmp_path)
    pipeline = made.pipeline(3)
    load(pipeline, now=NOW)
    publish(pipeline, now=NOW)
    return made


def _truncate(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


DAMAGE: dict[str, tuple[Callable[[Damaged], Any], type[TidegateError]]] = {
    "metadata truncated": (
        lambda at: _truncate(at.folder / "v5.metadata.json"),
        SourceFileDamaged,
    ),
    "metadata empty": (
        lambda at: (at.folder / "v5.metadata.json").write_bytes(b""),
        SourceFileDamaged,
    ),
    "metadata no JSON": (
        lambda at: (at.folder / "v5.metadata.json").write_bytes(b"\x00\xff" * 50),
        SourceFileDamaged,
    ),
    "metadata of another kind": (
        lambda at: (at.folder / "v5.metadata.json").write_text('{"format-version": 2}'),
        SourceFileDamaged,
    ),
    "metadata gone": (lambda at: (at.folder / "v5.metadata.json").unlink(), SourceVanished),
    "metadata of a later format": (
        lambda at: at.edit(lambda raw: raw.update({"format-version": 4})),
        UnsupportedFeature,
    ),
    "table made again": (
        lambda at: at.edit(
            lambda raw: raw.update({"table-uuid": "11111111-1111-4111-8111-111111111111"})
        ),
        TableIdentityChanged,
    ),
    "manifest list gone": (lambda at: at.list_of_head().unlink(), SourceFileGone),
    "manifest list truncated": (lambda at: _truncate(at.list_of_head()), SourceFileDamaged),
    "manifest gone": (lambda at: at.newest_manifest().unlink(), SourceFileGone),
    "manifest truncated": (lambda at: _truncate(at.newest_manifest()), SourceFileDamaged),
    "manifest of other bytes": (
        lambda at: at.newest_manifest().write_bytes(b"PAR1" * 500),
        SourceFileDamaged,
    ),
}


@pytest.mark.parametrize(("damage", "error"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_metadata_is_named_and_loses_nothing(
    damaged: Damaged, damage: Callable[[Damaged], Any], error: type[TidegateError]
) -> None:
    stood, kept = damaged.standing(), damaged.root / "whole"
    shutil.copytree(damaged.folder, kept)

    damage(damaged)
    for _ in range(2):
        with pytest.raises(error) as refused:
            load(damaged.pipeline(), now=NOW)

    assert damaged.table.case in str(refused.value)
    assert damaged.standing() == stood
    shutil.rmtree(damaged.folder)
    shutil.move(kept, damaged.folder)
    load(damaged.pipeline(), now=NOW)
    publish(damaged.pipeline(), now=NOW)
    rows = damaged.pipeline().ledger.partitions.all()[0].rows
    assert rows == damaged.table.answers["head"]["row_count"]
