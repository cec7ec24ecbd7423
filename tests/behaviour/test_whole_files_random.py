"""Random tables, however they were made, come out alike whether files are copied or read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from small_lake import merged
from whole_copies import NOW, Twice, WholeIceberg

if TYPE_CHECKING:
    from collections.abc import Callable

ZONES = ("UTC", "UTC", "Asia/Kolkata", "America/St_Johns", "Europe/Berlin")
STARTS = (
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, tzinfo=UTC),
    # Clocks go back past midnight, and forward.
    datetime(2010, 11, 7, 1, 30, tzinfo=UTC),
    datetime(2026, 3, 29, 0, 30, tzinfo=UTC),
    NOW + timedelta(hours=23, minutes=30),
)
SPREADS = (0, 1, 60, 600, 1_200, 1_800, 3_600, 7_200, 90_000)
"""Seconds between the first row of a file and the last, at most."""
KEYS: tuple[dict[str, str] | None, ...] = (
    {"dt": "day(at)"},
    {"dt": "day(at)"},
    {"h": "hour(at)"},
    {"m": "month(at)"},
    {"dt": "day(at)", "h": "hour(at)"},
    {"dt": "day(at)", "other": "day(seen)"},
    {"dt": "day(at)", "region": "region"},
    None,
)
KINDS = ("instants", "instants", "wall clock", "milliseconds", "nanoseconds", "dates")
TYPES = {
    "instants": pa.timestamp("us", "UTC"),
    "wall clock": pa.timestamp("us"),
    "milliseconds": pa.timestamp("ms", "UTC"),
    "nanoseconds": pa.timestamp("ns", "UTC"),
    "dates": pa.date32(),
}
ICEBERG_TYPES = {
    "instants": TimestamptzType(),
    "wall clock": TimestampType(),
    "dates": DateType(),
}
RULES: tuple[list[dict[str, str]], ...] = (
    [{"name": "some", "where": "id % 2 = 0", "on_failure": "quarantine"}],
    [{"name": "few", "where": "id % 3 = 0", "on_failure": "hold"}],
)


@dataclass(frozen=True)
class Made:
    """One file of a table."""

    start: datetime
    spread: int
    rows: int
    some_null: bool
    odd: str
    """What is not as usual in the way it is written, if anything."""

    def values(self, kind: str) -> list[dict[str, Any]]:
        """The rows; event times as the type wants them."""
        last = max(self.rows - 1, 1)
        moments = [self.start + timedelta(seconds=self.spread) * n / last for n in range(self.rows)]
        plain = [
            moment if kind == "instants" else moment.replace(tzinfo=None) for moment in moments
        ]
        if kind == "dates":
            plain = [moment.date() for moment in moments]
        return [
            {
                "id": number,
                "at": None if self.some_null and number == 0 else moment,
                "seen": moments[-1] if number % 2 else self.start,
                "note": f"n{number}" if number % 3 else None,
                "region": "eu",
            }
            for number, moment in enumerate(plain)
        ]


ODD: dict[str, dict[str, Any]] = {
    "": {},
    "codec": {"compression": "snappy"},
    "no bounds": {"write_statistics": False},
    "row groups": {"row_group_size": 2},
}


def rarely(usual: Any, *odd: Any) -> st.SearchStrategy[Any]:
    """Draw mostly what is usual; what is odd from the middle, as the ends are tried first."""
    return st.integers(0, 99).map(lambda n: odd[n % len(odd)] if 40 <= n < 52 else usual)


files = st.builds(
    Made,
    start=st.sampled_from((STARTS[0], STARTS[0], STARTS[0], *STARTS)),
    spread=st.sampled_from(SPREADS),
    rows=st.integers(0, 5) | st.integers(1, 5),
    some_null=rarely(False, True),
    odd=rarely("", *(name for name in ODD if name), "order", "required", "fewer", "wider"),
)
pipelines = st.builds(
    lambda zone, rules, tolerance, cost, filter, keys, size: {
        "timezone": zone,
        "rows": rules,
        "event_time": {"column": "at", "future_tolerance": tolerance},
        "source": {
            "split": {"open_cost": cost},
            "read": {} if filter is None else {"filter": filter},
        },
        "target": {"partition_by": keys or {}, "rolling": {"file_size": size}},
    },
    zone=st.sampled_from(ZONES),
    rules=rarely([], *RULES),
    tolerance=st.sampled_from(("0s", "1d", "1d")),
    cost=st.sampled_from((1, 1 << 40)),
    filter=rarely(None, "id > 1", "at is not null"),
    keys=st.sampled_from(KEYS),
    size=st.sampled_from((1_000, 4_000, 6_000, 6_000, 20_000, 128 << 20)),
)


def in_folder(root: Path, kind: str, made: list[Made]) -> dict[str, Any]:
    """Write plain files; a pipeline's `source`."""
    (root / "raw").mkdir()
    for number, file in enumerate(made):
        schema = pa.schema(
            [
                ("id", pa.int32() if file.odd == "wider" else pa.int64()),
                ("at", TYPES[kind]),
                ("seen", pa.timestamp("us", "UTC")),
                ("note", pa.string()),
                ("region", pa.string()),
            ]
        )
        naive = kind in {"milliseconds", "nanoseconds"}
        rows = pa.Table.from_pylist(file.values("instants" if naive else kind), schema)
        pq.write_table(
            odd_table(rows, file.odd),
            root / "raw" / f"{number}.parquet",
            **{"compression": "zstd", **ODD.get(file.odd, {})},
        )
    return {"kind": "files", "path": str(root / "raw")}


def odd_table(rows: pa.Table, odd: str) -> pa.Table:
    if odd == "order":
        return rows.select(["at", "id", "seen", "note", "region"])
    if odd == "fewer":
        return rows.drop_columns("note")
    if odd == "required":
        fields = [field.with_nullable(field.name != "id") for field in rows.schema]
        return rows.cast(pa.schema(fields))
    return rows


def in_iceberg(root: Path, kind: str, made: list[Made]) -> dict[str, Any]:
    """Write an Iceberg table whose columns change and whose rows are deleted between files."""
    kind = kind if kind in ICEBERG_TYPES else "instants"
    columns = [
        NestedField(1, "id", LongType()),
        NestedField(2, "at", ICEBERG_TYPES[kind]),
        NestedField(3, "seen", TimestamptzType()),
        NestedField(4, "note", StringType()),
        NestedField(5, "region", StringType()),
    ]
    table = WholeIceberg(root / "raw", Schema(*columns))
    deletes = False
    for number, file in enumerate(made):
        table.options = ODD.get(file.odd, {})
        path = table.append(file.values(kind))
        if file.odd == "wider":
            columns.append(NestedField(10 + number, f"more{number}", DoubleType()))
        elif file.odd == "fewer":
            columns[3] = NestedField(4, f"note{number}", StringType())
        elif file.odd == "order":
            columns.insert(0, columns.pop(3))
            columns.insert(3, columns.pop(0))
        elif file.odd == "required" and file.rows:
            table.options = {}
            table.delete_positions(path, 0)
            deletes = True
        table.evolve(Schema(*columns))
    read = {"read": {"mode": "snapshot"}} if deletes else {}
    return table.config(start="full", **read)


TABLES: dict[str, Callable[[Path, str, list[Made]], dict[str, Any]]] = {
    "folder": in_folder,
    "iceberg": in_iceberg,
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "examples",
    [25, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3_000)])],
    ids=["quick", "long"],
)
def test_random_table_comes_out_alike_copied_or_read(
    table: str, examples: int, tmp_path: Path
) -> None:
    found: list[int] = []
    ledger = f"sqlite:///{tmp_path}/ledger.db"

    # The few of every day are always the same ones, so that their share of copies is, too.
    @settings(
        max_examples=examples,
        derandomize=examples < 100,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        kind=st.sampled_from(KINDS), made=st.lists(files, min_size=1, max_size=3), keys=pipelines
    )
    def comes_out_alike(kind: str, made: list[Made], keys: dict[str, Any]) -> None:
        if "hour(at)" in keys["target"]["partition_by"].values():
            kind = "instants" if kind == "dates" else kind
        root = Path(tempfile.mkdtemp(dir=tmp_path))
        described = merged(keys, {"source": TABLES[table](root, kind, made)})
        copied = Twice(root, described, ledger).copied()
        found.append(len(copied))

    comes_out_alike()

    # Where nearly nothing is copied, the test says little.
    assert sum(count > 0 for count in found) * 10 > len(found)
