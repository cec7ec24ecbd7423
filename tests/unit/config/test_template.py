"""The first pipeline file: always loadable, with the likeliest event time."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import (
    PipelineConfig,
    guess_event_time,
    load_pipeline,
    pipeline_template,
    source_meant_by,
)
from tidegate.model.partition import PartitionField, Transform

STAMP = "timestamp[us, tz=UTC]"
DATE = "date32[day]"


def loaded(text: str) -> PipelineConfig:
    """Load a pipeline from the text of its file."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "made.yaml"
        file.write_text(text, "utf-8")
        return load_pipeline(file)


def test_template_of_a_table_waits_for_its_event_time() -> None:
    columns = [("order_id", "int64"), ("updated_at", STAMP), ("ordered_at", STAMP), ("day", DATE)]

    text = pipeline_template(
        source_meant_by("lake.raw.orders"), columns, target="/lake/published/orders"
    )

    config = loaded(text)
    assert config.name == "orders"
    assert config.source.address == "iceberg lake.raw.orders"
    assert config.target.path == "/lake/published/orders"
    assert config.target.partition_by == (PartitionField("dt", "ordered_at", Transform.DAY),)
    assert config.event_time is not None
    assert config.event_time.column == "ordered_at"
    assert config.commit.trigger == "partition-time"
    assert "a guess, others: updated_at, day" in text


def test_template_of_files_without_a_time_commits_by_process_time() -> None:
    text = pipeline_template(source_meant_by("/in/my files/"), [("a", "int64")], target="/out")

    config = loaded(text)
    assert config.name == "my_files"
    assert config.source.path == "/in/my files"
    assert config.event_time is None
    assert config.commit.trigger == "process-time"


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("/lake/raw/orders/metadata/v3.metadata.json", "orders"),
        ("/lake/raw/orders", "orders"),
        ("lake.raw.2024", "2024"),
        ("lake.raw.null", "null"),
        ("/lake/raw/Ärger mit Leerzeichen", "Arger_mit_Leerzeichen"),
        ("/…/", "pipeline"),
    ],
)
def test_template_is_named_for_its_table(table: str, name: str) -> None:
    config = loaded(pipeline_template(source_meant_by(table), [], target="/out"))

    assert config.name == name


def test_names_in_any_script_stand_in_the_template_as_they_are() -> None:
    text = pipeline_template(source_meant_by("/in/größe/売上"), [("ændret", STAMP)], target="/ut")

    assert 'path: "/in/größe/売上"' in text
    assert 'column: "ændret"' in text
    assert loaded(text).source.path == "/in/größe/売上"


def test_commented_suggestions_are_valid_when_taken() -> None:
    text = pipeline_template(source_meant_by("a.b.orders"), [("ordered_at", STAMP)], target="/out")
    taken = re.sub(r"(?m)^( *)# ( *(?:- |[a-z_]+:))", r"\1\2", text)

    config = loaded(taken)

    assert config.event_time is not None
    assert config.event_time.when_idle == "advance"
    assert config.gate is not None
    assert config.gate.suite.endswith("/orders_suite.json")
    assert [rule.name for rule in config.rows] == ["positive_amount"]
    assert config.source.read.columns == ("ordered_at",)
    assert config.source.read.filter == "amount > 0"


@pytest.mark.parametrize(
    ("names", "guess"),
    [
        (["created_at", "event_time", "order_date"], "event_time"),
        (["updated_at", "created_at", "deleted_at"], "created_at"),
        (["tpep_pickup_datetime", "tpep_dropoff_datetime"], "tpep_pickup_datetime"),
        (["loaded_at", "ts"], "ts"),
        (["Known", "OccurredOn"], "OccurredOn"),
        (["updated_at"], "updated_at"),
        (["first", "second"], "first"),
        ([], None),
    ],
)
def test_guess_takes_the_name_that_says_when_it_happened(
    names: list[str], guess: str | None
) -> None:
    assert guess_event_time([("id", "int64"), *((name, STAMP) for name in names)]) == guess


def test_guess_takes_a_timestamp_before_a_date() -> None:
    assert guess_event_time([("order_date", DATE), ("ordered_at", "timestamp[ns]")]) == "ordered_at"


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name == name.strip() and "${" not in name
)


@given(columns=st.lists(st.tuples(names, st.sampled_from([STAMP, DATE, "string"])), max_size=10))
def test_template_of_any_columns_is_accepted(columns: list[tuple[str, str]]) -> None:
    config = loaded(pipeline_template(source_meant_by("lake.raw.orders"), columns, target="/out"))

    guess = guess_event_time(columns)
    assert (config.event_time.column if config.event_time else None) == guess
    assert [field.column for field in config.target.partition_by] == ([guess] if guess else [])
