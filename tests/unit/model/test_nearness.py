from __future__ import annotations

import pytest

from tidegate.model.nearness import listed_with_nearest, nearest_first
from tidegate.model.partition import Partition


def of(*values: str | None) -> Partition:
    return Partition(tuple(zip(("dt", "region"), values, strict=False)))


@pytest.mark.parametrize(
    ("typed", "known", "expected"),
    [
        pytest.param(
            "2026-03-01",
            ["2026-02-01", "2026-02-27", "2026-03-11", "2025-03-01", "2026-02-28"],
            ["2026-02-28", "2026-02-27", "2026-03-11", "2026-02-01", "2025-03-01"],
            id="days",
        ),
        pytest.param("10", ["1", "100", "9", "12"], ["9", "12", "1", "100"], id="numbers"),
        pytest.param(
            "germnay", ["france", "germany", "nan"], ["germany", "nan", "france"], id="texts"
        ),
        pytest.param(
            "2026-02-01T05:00",
            ["2026-02-02T05:00", "2026-02-01T07:00"],
            ["2026-02-01T07:00", "2026-02-02T05:00"],
            id="hours",
        ),
    ],
)
def test_nearest_value_comes_first(typed: str, known: list[str], expected: list[str]) -> None:
    found = nearest_first(of(typed), map(of, known))

    assert [item.values[0][1] for item in found] == expected


def test_partition_with_fewer_other_values_is_nearer() -> None:
    typed = of("2026-02-01", "eu")
    known = [of("2026-02-02", "us"), of("2026-01-01", "eu"), of("2026-02-01", None)]

    assert nearest_first(typed, known) == [known[2], known[1], known[0]]


@pytest.mark.parametrize(
    ("typed", "listed"),
    [
        ("amnt", "Amount, id; the nearest is 'Amount'"),
        ("AMOUNT", "Amount, id; the nearest is 'Amount'"),
        ("region", "Amount, id"),
    ],
)
def test_nearest_column_is_named_if_one_is_near(typed: str, listed: str) -> None:
    assert listed_with_nearest(typed, ["Amount", "id"]) == listed
