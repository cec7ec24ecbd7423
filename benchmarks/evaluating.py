"""How long it takes to evaluate what waits: 10,000 pending partitions, with and without counts.

`python -m benchmarks.evaluating` prints seconds: what the ledger is asked, and what is decided.
"""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidegate.commit.partition_time import PartitionClock
from tidegate.config import PipelineConfig
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.schema import contribution, partition, pipeline, window
from tidegate.model.message import EventTimes
from tidegate.model.partition import Partition
from tidegate.model.upstream import UpstreamCounts
from tidegate.pipeline.publish.evaluating import Evaluator

PENDING = 10_000
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROUNDS = 3


def main() -> None:
    """Print the times of the first round, which stores every reason, and of later ones."""
    for counts in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            for number, (read, decided) in enumerate(_rounds(folder, counts=counts), start=1):
                kind = "with counts" if counts else "trigger alone"
                print(f"{kind}, round {number}: read {read:.2f} s, evaluated {decided:.2f} s")


def _rounds(folder: str, *, counts: bool) -> list[tuple[float, float]]:
    config = _config(counts=counts)
    ledger = Ledger(open_engine(f"sqlite:///{folder}/ledger.db"), config.name)
    hours = [_hour(number) for number in range(PENDING)]
    _fill(ledger, config, hours)
    rows = {tuple(value for _, value in hour.values): 10 for hour in hours}
    upstream = UpstreamCounts("counts", rows) if counts else None
    found = []
    for _ in range(ROUNDS):
        evaluator = Evaluator(config, ledger, lambda _now: upstream)
        started = time.process_time()
        known = ledger.known_partitions(waiting_only=True)
        read = time.process_time()
        evaluated = evaluator.evaluate_pending(known, NOW)
        found.append((read - started, time.process_time() - read))
        assert len(evaluated) == PENDING
    return found


def _config(*, counts: bool) -> PipelineConfig:
    commit: dict[str, Any] = {"counts": {"file": "/counts.csv"}} if counts else {}
    return PipelineConfig.from_resolved(
        {
            "name": "hourly",
            "timezone": "Europe/Berlin",
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": {"dt": "day(at)", "hr": "hour(at)"}},
            "commit": commit,
        }
    )


def _hour(number: int) -> Partition:
    begin = FIRST + timedelta(hours=number)
    return Partition((("dt", f"{begin:%Y-%m-%d}"), ("hr", f"{begin:%H}")))


def _fill(ledger: Ledger, config: PipelineConfig, hours: list[Partition]) -> None:
    """Write what an announce of one window with rows of every hour leaves."""
    ledger.pipeline.register(config.identity(), "/out", NOW)
    mine = {"pipeline": config.name}
    sealed = {"sequence": 1, "kind": "load", "range": {}, "end_time": NOW, "partitions": []}
    holder = {"run": "run", "state": "sealed", "attempt": 1, "taken_at": NOW}
    waiting = {"first_seen": NOW, "revision": 0, "rows": 0, "pending": "pending", "claim_fence": 0}
    brought = {"window": 1, "kind": "load", "plan_digest": "0", "messages_uri": "", "messages": []}
    brought |= {"rows": 10, "bytes": 10, "event_times": EventTimes().to_json(), "late": False}
    clock = PartitionClock.of(config)
    known = []
    for hour in hours:
        start, end = clock.bounds(hour)
        values = [list(it) for it in hour.values]
        times = {"start": start, "end": end}
        known.append(mine | waiting | times | {"partition": hour.path, "values": values})
    rows = [mine | brought | {"partition": hour.path, "announced_at": NOW} for hour in hours]
    with ledger.engine.begin() as connection:
        connection.execute(sa.insert(window).values(**mine, **sealed, **holder))
        connection.execute(sa.insert(partition), known)
        connection.execute(sa.insert(contribution), rows)
        middle = FIRST + timedelta(hours=PENDING // 2)
        connection.execute(sa.update(pipeline).values(watermark=middle))


if __name__ == "__main__":
    main()
