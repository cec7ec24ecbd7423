"""The demo's pipeline file fits the lake that the demo makes."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.config import PipelineConfig, SuccessFilePolicy, load_pipeline, resolve_secret
from tidegate.demo.flights import Flight, read_flights
from tidegate.demo.lake import CATALOG, KNOWN_AT, TABLE, VARIABLE, catalog_properties
from tidegate.gate import load_suite
from tidegate.predicate import Predicate

FILE = Path(__file__).parents[3] / "include" / "pipelines" / "flights.yaml"


@pytest.fixture(scope="module")
def flights() -> PipelineConfig:
    return load_pipeline(str(FILE))


def table_of(rows: list[Flight]) -> pa.RecordBatch:
    columns = {name: [getattr(row, name) for row in rows] for name in Flight.__dataclass_fields__}
    moments = ("planned_departure", "departed_at", "landed_at")
    types = {name: pa.timestamp("us", "UTC") for name in moments}
    return pa.record_batch({name: pa.array(columns[name], types.get(name)) for name in columns})


def passing(flights: PipelineConfig, batch: pa.RecordBatch) -> dict[str, int]:
    rules = {rule.name: rule.where for rule in flights.rows}
    masks = {
        name: Predicate.parse(where, batch.schema, name).mask(batch)
        for name, where in rules.items()
    }
    return {name: sum(mask.to_pylist()) for name, mask in masks.items()}


def test_pipeline_file_points_at_the_lake(
    flights: PipelineConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    source = flights.source
    assert source.catalog is not None
    resolved = {key: resolve_secret(value, key) for key, value in source.catalog.properties.items()}

    assert resolved == catalog_properties(tmp_path)
    assert (source.catalog.name, source.table) == (CATALOG, TABLE)
    assert source.instant_time is not None
    assert source.instant_time.summary == KNOWN_AT


def test_pipeline_file_is_the_one_that_the_demo_tells_of(flights: PipelineConfig) -> None:
    assert flights.event_time is not None
    assert flights.gate is not None
    assert flights.timezone == "America/New_York"
    assert flights.event_time.lateness == timedelta(hours=6)
    assert (flights.dag.start_date, flights.dag.end_date) == (
        datetime(2013, 2, 5),  # noqa: DTZ001 (wall clock of the pipeline's zone)
        datetime(2013, 2, 12),  # noqa: DTZ001
    )
    assert flights.gate.on_failure == "hold"
    assert flights.execute.engine == "spark"
    assert flights.commit.policies == (SuccessFilePolicy(),)
    assert flights.notes() == ()


def test_suite_names_only_columns_of_the_lake(flights: PipelineConfig) -> None:
    assert flights.gate is not None
    named = load_suite(flights.gate.suite).columns

    assert named is not None
    assert named < set(Flight.__dataclass_fields__)


def test_row_rules_every_real_flight_passes(flights: PipelineConfig) -> None:
    rows = read_flights()

    assert set(passing(flights, table_of(rows)).values()) == {len(rows)}


def test_row_rules_impossible_flights_fail(flights: PipelineConfig) -> None:
    real = next(one for one in read_flights() if one.landed_at is not None)
    changes = {
        "lands before it departs": {"landed_at": real.planned_departure - timedelta(days=1)},
        "lands and never departed": {"departed_at": None},
        "goes nowhere": {"dest": real.origin},
        "no distance": {"distance_miles": 0},
    }
    rows = [Flight(**{**real.__dict__, **change}) for change in changes.values()]

    passed = passing(flights, table_of([real, *rows]))

    assert passed == {"lands_after_departure": 3, "goes_somewhere": 3}
