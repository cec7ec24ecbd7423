"""Columns about files have the values of the listing, in types of their own."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tidegate.source.files.metadata import FileFacts, metadata_schema, metadata_values

NAMED = {"p": "file.path", "n": "file.name", "s": "file.size", "m": "file.modification-time"}


@pytest.mark.parametrize("modified", [0, 1_999, -1, 1_770_000_000_123_456_789])
def test_values_have_the_types_of_the_schema(modified: int) -> None:
    values = metadata_values(NAMED, FileFacts("/lake/dt=1/a.csv", 1 << 40, modified))

    assert {name: value.type for name, value in values.items()} == {
        field.name: field.type for field in metadata_schema(NAMED)
    }
    assert [values[name].as_py() for name in "pns"] == ["/lake/dt=1/a.csv", "a.csv", 1 << 40]
    # Rounded down, as the times of listings are.
    moment = pa.scalar(modified // 1_000, pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert values["m"].as_py() == moment.as_py() >= datetime(1969, 12, 31, tzinfo=UTC)
