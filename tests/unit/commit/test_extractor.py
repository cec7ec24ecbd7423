"""A class of the user reads the time of a partition, or only that partition waits (PC-T18)."""

# ruff: noqa: DTZ001 (partition times are wall clock, and naive for that)

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.commit.extractor import load_extractor
from tidegate.commit.partition_time import NoPartitionTime, PartitionClock
from tidegate.config import PipelineConfig
from tidegate.errors import ExtractorUnknown
from tidegate.model.partition import Partition
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from datetime import UTC, datetime, timedelta
class Weeks:
    def __init__(self, year="2026"):
        self.year = int(year)
    def extract(self, keys, values):
        found = dict(zip(keys, values))
        if found["week"] == "aware":
            return datetime(2026, 1, 1, tzinfo=UTC)
        return datetime.fromisocalendar(self.year, int(found["week"]), 1)
class Nothing: ...
class Broken:
    def __init__(self): raise SystemExit(3)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_weeks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    load_extractor.cache_clear()


def clock(reference: str = "shop_weeks:Weeks", **said: Any) -> PartitionClock:
    return PartitionClock.of(
        PipelineConfig.from_resolved(
            {
                "name": "orders",
                "source": {"kind": "files", "path": "/in"},
                "event_time": "at",
                "target": {"path": "/out", "partition_by": {"region": "region", "week": "week"}},
                "commit": {"partition_time": {"class": reference, "interval": "7d", **said}},
            }
        )
    )


def week(text: str | None) -> Partition:
    return Partition((("region", "eu"), ("week", text)))


def test_class_gets_keys_values_and_parameters() -> None:
    assert clock().time(week("6")).local == datetime(2026, 2, 2)
    assert clock(parameters=["2025"]).time(week("6")).local == datetime(2025, 2, 3)
    assert clock().time(week("6")).end == datetime(2026, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [("99", "Weeks raised ValueError"), ("x", "Weeks raised ValueError"),
     ("aware", "and no time without a zone")],
)  # fmt: skip
def test_value_that_the_class_cannot_read_is_unparsable(text: str, said: str) -> None:
    with pytest.raises(NoPartitionTime, match=said) as refused:
        clock().time(week(text))

    assert refused.value.reason is Reason.TIME_UNPARSABLE


def test_missing_value_is_the_default_partition() -> None:
    with pytest.raises(NoPartitionTime) as refused:
        clock().time(week(None))

    assert refused.value.reason is Reason.DEFAULT_PARTITION


@pytest.mark.follows("ExtractorUnknown")
@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("no_such_module:Weeks", "ModuleNotFoundError"),
        ("shop_weeks:Month", "AttributeError"),
        ("shop_weeks:Nothing", "it has no method extract"),
        ("shop_weeks:Broken", "SystemExit: 3"),
    ],
)
def test_class_that_cannot_be_built_is_refused_and_another_one_helps(
    reference: str, said: str
) -> None:
    with pytest.raises(ExtractorUnknown, match=said):
        clock(reference)

    assert clock("shop_weeks:Weeks").time(week("6")).local == datetime(2026, 2, 2)
