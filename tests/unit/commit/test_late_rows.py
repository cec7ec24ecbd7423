"""Late rows that are held count once a threshold is reached, to the row and the second."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.commit.late_rows import has_news, held_rows, look_at_held
from tidegate.config import PipelineConfig
from tidegate.model.aside import Aside
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def pipeline(late_data: Any) -> PipelineConfig:
    return PipelineConfig.from_resolved(
        {
            "name": "p",
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": {"dt": "day(at)"}},
            "commit": {"late_data": late_data},
        }
    )


def brought(window: int, rows: int, aside: Aside | None = Aside.LATE_HELD) -> Contribution:
    return Contribution(
        window=window,
        partition=Partition((("dt", "2026-02-01"),)),
        plan_digest=f"plan{window}",
        messages=("s",),
        rows=rows,
        bytes=0,
        event_times=EventTimes(),
        late=aside is not None,
        aside=aside,
        announced_at=SINCE + timedelta(hours=window),
    )


ON_TIME = brought(1, 200, None)


def released(late_data: Any, rows: int, now: datetime = SINCE, revision: int = 1) -> bool:
    late = look_at_held(
        pipeline(late_data),
        [ON_TIME, brought(2, rows)],
        revision=revision,
        published_rows=200,
        now=now,
    )
    assert late is not None
    return late.released is not None


FIRST = SINCE + timedelta(hours=2)


@pytest.mark.parametrize(
    ("late_data", "rows", "now", "counts"),
    [
        pytest.param({"hold": {"rows": 5}}, 4, SINCE, False, id="rows, one short"),
        pytest.param({"hold": {"rows": 5}}, 5, SINCE, True, id="rows"),
        pytest.param({"hold": {"ratio": 0.01}}, 1, SINCE, False, id="ratio, one short"),
        pytest.param({"hold": {"ratio": 0.01}}, 2, SINCE, True, id="ratio"),
        pytest.param(
            {"hold": {"age": "2d"}}, 1, FIRST + timedelta(days=2) - SECOND, False, id="age, short"
        ),
        pytest.param({"hold": {"age": "2d"}}, 1, FIRST + timedelta(days=2), True, id="age"),
        pytest.param({"hold": {"age": "2d"}}, 1, SINCE - timedelta(days=9), False, id="clock back"),
        pytest.param({"hold": {"rows": 5, "ratio": 0.01}}, 2, SINCE, True, id="any of them"),
        pytest.param("hold", 10**9, SINCE + timedelta(days=999), False, id="no threshold"),
        pytest.param("revise", 1, SINCE, True, id="another policy by now"),
    ],
)
def test_threshold_is_reached_exactly(
    late_data: Any, rows: int, now: datetime, *, counts: bool
) -> None:
    assert released(late_data, rows, now) is counts


def test_rows_of_a_partition_without_a_revision_count() -> None:
    assert released("hold", 1, revision=0)


def test_sums_are_told_with_every_threshold() -> None:
    late = look_at_held(
        pipeline({"hold": {"rows": 1000, "ratio": 0.5, "age": "2d"}}),
        [ON_TIME, brought(2, 700), brought(3, 44), brought(4, 9, Aside.UNDONE)],
        revision=1,
        published_rows=2000,
        now=SINCE,
    )

    assert late is not None
    assert (late.held.windows, late.held.rows) == ((2, 3), 744)
    assert late.detail == (
        "744 late rows held; released by 1,000 rows, or 0.5 of 2,000 published rows, or 2 d since "
        "2026-03-01 02:00"
    )


def test_nothing_is_held_after_a_rebuild_that_counts() -> None:
    reset = replace(brought(3, 10, None), kind=WindowKind.REBUILD)

    assert held_rows([ON_TIME, brought(2, 5), reset]) is None
    assert held_rows([ON_TIME, brought(2, 5), replace(reset, aside=Aside.UNDONE)]) is not None


@given(
    rows=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    threshold=st.integers(1, 200),
    minutes=st.integers(0, 10_000),
)
def test_what_is_released_stays_released_as_time_and_rows_go_on(
    rows: list[int], threshold: int, minutes: int
) -> None:
    config = pipeline({"hold": {"rows": threshold, "age": "2d"}})
    held = [brought(number, count) for number, count in enumerate(rows, 2)]
    now = SINCE + timedelta(minutes=minutes)

    def counts(items: list[Contribution], at: datetime) -> bool:
        late = look_at_held(config, items, revision=1, published_rows=9, now=at)
        return late is not None and late.released is not None

    if counts(held[:-1], now):
        assert counts(held, now)
        assert counts(held, now + SECOND)
    assert counts(held, now) == (sum(rows) >= threshold or now >= FIRST + timedelta(days=2))


def test_news_is_what_counts_and_does_not_stand() -> None:
    stood = {"1": "plan1"}

    assert not has_news([ON_TIME, brought(2, 5)], stood)
    assert has_news([ON_TIME, brought(2, 5, None)], stood)
    assert has_news([replace(ON_TIME, plan_digest="other")], stood)
    assert not has_news(
        [replace(ON_TIME, plan_digest="other", aside=Aside.UNDONE, counts_as="plan1")], stood
    )
