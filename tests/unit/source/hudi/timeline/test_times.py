"""Instants keep both of their times, and their place among others."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tidegate.errors import HudiInstantUnreadable
from tidegate.source.hudi.timeline.times import instant_of, moment_of, order_of

REQUESTED, COMPLETED = "20260201000000001", "20260201000005002"


@pytest.mark.parametrize(
    ("layout", "order"), [(1, (REQUESTED, REQUESTED)), (2, (COMPLETED, REQUESTED))]
)
def test_order_survives_the_id(layout: int, order: tuple[str, str]) -> None:
    instant = instant_of(order, layout, ZoneInfo("UTC"))

    assert order_of(instant) == order
    assert instant.id.startswith(REQUESTED)


def test_time_is_that_of_the_zone() -> None:
    found = moment_of("20260701120000123", ZoneInfo("Europe/Berlin"))

    assert found == datetime(2026, 7, 1, 10, 0, 0, 123000, UTC)


def test_old_instants_have_seconds_only() -> None:
    assert moment_of("20200102030405", ZoneInfo("UTC")) == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["00000000000002", "00000000000000010", "20261301000000", "00010101000000", "99999999999999"],
)
def test_digits_that_are_no_time_are_named(text: str) -> None:
    with pytest.raises(HudiInstantUnreadable, match=text):
        moment_of(text, ZoneInfo("Asia/Tokyo"))
