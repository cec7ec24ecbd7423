"""Damaged files of Hudi tables are read as they are or refused, and nothing else happens."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import pytest

from golden_hudi import Golden, copied
from tidegate import read_changes
from tidegate.errors import SourceNotFound, TidegateError

if TYPE_CHECKING:
    from pathlib import Path

TABLES = (
    "v6_mor_mixed_commit",
    "v6_mor_archived",
    "v6_mor_types",
    "v8_mor_log_compaction",
    "v9_mor_archived",
    "v9_mor_event_time",
    "v9_mor_log_only_types",
    "v9_mor_parquet_log",
    "v9_cow_cdc_before_after",
    "v9_cow_evolution",
)
KINDS = {
    "logs": lambda name: ".log." in name,
    "base files": lambda name: name.endswith(".parquet"),
    "timeline": lambda name: name.endswith(("commit", "properties", "clean")),
    "archive": lambda name: ".archive." in name or name.startswith(("manifest", "_version")),
}
ROUNDS = 30


def damaged(content: bytes, dice: random.Random) -> bytes:
    """Flip some bytes, cut the end off, take a part out, or put one in twice."""
    if not content:
        return content
    kind, at = dice.randrange(4), dice.randrange(len(content))
    size = dice.randrange(1, 40)
    if kind == 0:
        changed = bytearray(content)
        for _ in range(dice.randrange(1, 4)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed)
    if kind == 1:
        return content[:at]
    if kind == 2:
        return content[:at] + content[at + size :]
    return content[:at] + content[max(0, at - size) : at] + content[at:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", TABLES)
def test_damage_is_a_typed_error_or_read_as_it_is(tmp_path: Path, case: str, kind: str) -> None:
    place = copied(case, tmp_path)
    dice = random.Random(f"{case} {kind}")
    files = sorted(it for it in place.rglob("*") if it.is_file() and KINDS[kind](it.name))
    for _ in range(ROUNDS if files else 0):
        path = dice.choice(files)
        content = path.read_bytes()
        path.write_bytes(damaged(content, dice))
        for mode in ("snapshot", "changelog"):
            with contextlib.suppress(TidegateError):
                Golden("", mode, place).rows()
        path.write_bytes(content)


def test_path_that_is_a_file_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "trips").touch()

    with pytest.raises(SourceNotFound, match=r"no `.hoodie/hoodie\.properties`"):
        read_changes({"kind": "hudi", "path": str(tmp_path / "trips")})
