"""The overview of a ledger agrees with what it says of each pipeline."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.ledger import Ledger, open_engine, read_overview
from tidegate.ledger import rows as ledger_rows
from tidegate.ledger.schema import partition, window
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.ledger_rows import state_name
from tidegate.model.partition import Partition

if TYPE_CHECKING:
    import pytest

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PARTITIONS = st.tuples(st.sampled_from(["none", "pending", "held"]), st.integers(0, 2))
PIPELINES = st.lists(
    st.tuples(st.lists(PARTITIONS, max_size=5), st.integers(0, 3), st.booleans()), max_size=3
)


@given(drawn=PIPELINES)
def test_overview_is_the_sum_of_what_each_pipeline_says(
    drawn: list[tuple[list[tuple[str, int]], int, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    engine = open_engine(f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.db")
    ledgers = [Ledger(engine, f"p{number}") for number in range(len(drawn))]
    for ledger, (partitions, sealed, has_open) in zip(ledgers, drawn, strict=True):
        ledger.pipeline.register({}, f"/lake/{ledger.name}", NOW)
        with engine.begin() as connection:
            for number, (pending, revision) in enumerate(partitions):
                found = Partition((("k", str(number)),))
                row = {
                    "pipeline": ledger.name,
                    "partition": found.path,
                    "values": ledger_rows.write_partition(found),
                    "first_seen": NOW,
                    "revision": revision,
                    "rows": 0,
                    "pending": pending,
                    "claim_fence": 0,
                }
                connection.execute(sa.insert(partition).values(**row))
            for sequence in range(1, sealed + has_open + 1):
                is_open = sequence > sealed
                row = {
                    "pipeline": ledger.name,
                    "sequence": sequence,
                    "kind": "load",
                    "range": InstantRange(None, Instant(str(sequence), NOW)).to_json(),
                    "end_time": NOW,
                    "partitions": [],
                    "run": "r",
                    "state": "open" if is_open else "sealed",
                    "attempt": 1,
                    "taken_at": NOW,
                    "sealed_at": None if is_open else NOW + timedelta(hours=sequence),
                }
                connection.execute(sa.insert(window).values(**row))

    overview = read_overview(engine)

    assert [item.pipeline for item in overview] == [it.pipeline.find() for it in ledgers]
    for item, ledger in zip(overview, ledgers, strict=True):
        windows = ledger.windows.all()
        # No window has rows for them, so that none is late.
        assert item.partitions == Counter(
            state_name(it.pending, it.revision, is_late=False) for it in ledger.partitions.all()
        )
        assert item.open_window == next(
            (it.window.sequence for it in windows if not it.sealed), None
        )
        assert item.last_load == max(
            (it.sealed_at for it in windows if it.sealed_at is not None), default=None
        )
