"""A number is doubted if it is no likely time as it is read, and is one in another unit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidegate.model.other_unit import count_of, other_unit, time_of

NOW = 1_769_000_001
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize("said", UNITS)
@pytest.mark.parametrize("real", UNITS)
def test_unit_of_a_number_is_recognized(real: str, said: str) -> None:
    assert other_unit(NOW * UNITS[real], said) == (None if real == said else real)


@pytest.mark.parametrize(
    ("largest", "likely"),
    [
        (-1, None),
        (0, None),
        (7, None),
        (315_532_799, None),
        (315_532_800, None),
        (4_102_444_799, None),
        (4_102_444_800, None),
        (253_402_300_799, None),
        (631_151_999_999, None),
        (631_152_000_000, "ms"),
        (4_102_444_799_999, "ms"),
        (4_102_444_800_000, None),
    ],
)
def test_number_at_the_edges_is_doubted_only_between(largest: int, likely: str | None) -> None:
    assert other_unit(largest, "s") == likely


@pytest.mark.parametrize("unit", UNITS)
def test_number_and_time_are_each_others(unit: str) -> None:
    moment = datetime(2026, 2, 1, 12, tzinfo=UTC)

    assert time_of(count_of(moment, unit), unit) == moment
