"""A zone is hinted at only where the value would be a time of the other type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.physical.zone_hint import zone_hint

INSTANT, WALL_CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("2026-02-01T10:00:00", INSTANT, "`timestamp_ntz`"),
        ("2026-02-01", INSTANT, "`timestamp_ntz`"),
        ("2026-02-01T10:00:00+02:00", WALL_CLOCK, "`timestamp`"),
    ],
)
def test_time_of_the_other_type_names_it(text: str, kind: pa.DataType, named: str) -> None:
    assert named in zone_hint(text, kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("01.02.2026", INSTANT),
        ("2026-02-01T10:00:00.1234567", INSTANT),
        ("2026-02-01T10:00:00.1234567Z", WALL_CLOCK),
        ("2026-02-01T10:00:00", pa.date32()),
        (5, INSTANT),
        (None, WALL_CLOCK),
    ],
)
def test_other_mistake_has_no_hint(text: object, kind: pa.DataType) -> None:
    assert zone_hint(text, kind) == ""
