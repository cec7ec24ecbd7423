"""Slow suites are told, short and quick ones are not."""

from __future__ import annotations

import pytest

from tidegate.pipeline.publish.gating import slowness


@pytest.mark.parametrize(
    ("seconds", "rows", "said"),
    [
        (57.0, 10_000, "57 s for 10,000 rows, 5,700 s per million,"),
        (57.0, 9_999, None),
        (31.0, 9, None),
        (60.0, 1_000_000, "60 s for 1,000,000 rows, 60 s per million,"),
        (59.0, 1_000_000, None),
        (9.9, 10, None),
        (12.0, 0, None),
    ],
)
def test_rate_decides_and_short_checks_are_not_told(
    seconds: float, rows: int, said: str | None
) -> None:
    assert slowness(seconds, rows) == said
