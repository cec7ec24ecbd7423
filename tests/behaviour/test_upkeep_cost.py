"""What fsck and gc cost grows with the table, and not with its square."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from small_lake import NOW, SmallLake, load, publish
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.on_disk

FEW, MANY = 4, 12


@dataclass(frozen=True)
class Counting(LocalStorage):
    """A file system that counts what it is asked."""

    asked: list[str] = field(default_factory=list, hash=False, compare=False)

    def read_bytes(self, path: str) -> bytes:
        self.asked.append(path)
        return super().read_bytes(path)

    def length(self, path: str) -> int | None:
        self.asked.append(path)
        return super().length(path)

    def list_files(self, root: str) -> list[str]:
        found = super().list_files(root)
        self.asked.extend([root, *found])
        return found


def cost(lake: SmallLake, step: Callable[[Pipeline], Any]) -> int:
    """Count queries, and what storage is asked."""
    storage = Counting()
    pipeline = lake.pipeline(storage)
    queries: list[str] = []
    sa.event.listen(
        pipeline.ledger.engine, "before_cursor_execute", lambda *given: queries.append(given[2])
    )
    step(pipeline)
    return len(storage.asked) + len(queries)


def filled(root: Path, days: int) -> SmallLake:
    """Publish some days, half of them twice, with a stray file in each."""
    lake = SmallLake(root / f"{days}")
    lake.commit(dict.fromkeys(range(1, days + 2), 1))
    load(lake.pipeline())
    lake.commit(dict.fromkeys(range(1, days // 2), 1))
    publish(lake.pipeline())
    load(lake.pipeline())
    publish(lake.pipeline())
    for folder in lake.target.glob("dt=*"):
        (folder / "stray.parquet").write_bytes(b"x")
    return lake


STEPS: dict[str, Callable[[Pipeline], Any]] = {
    "fsck": lambda pipeline: list(pipeline.findings()),
    "gc": lambda pipeline: pipeline.garbage(NOW.replace(year=2036), timedelta(0)),
    "files": lambda pipeline: pipeline.file_sizes(1 << 20),
}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, SmallLake]:
    root = tmp_path_factory.mktemp("cost")
    return {days: filled(root, days) for days in (FEW, MANY)}


@pytest.mark.parametrize("step", STEPS)
def test_cost_grows_no_faster_than_the_number_of_partitions(
    lakes: dict[int, SmallLake], step: str
) -> None:
    few, many = (cost(lakes[days], STEPS[step]) for days in (FEW, MANY))

    assert 0 < few < many <= few * MANY / FEW
