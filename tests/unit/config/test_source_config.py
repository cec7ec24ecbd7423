"""What a source says about itself: defaults per mode, other words for starts, times, columns."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import jsonschema
import pytest

from tidegate.config import PipelineConfig, SourceConfig, json_schema, load_pipeline, read_source
from tidegate.errors import AmbiguousStart, ConfigInvalid

TABLE = {"kind": "iceberg", "table": "lake.raw.orders"}


def source(**said: Any) -> SourceConfig:
    """Read the source of one table."""
    return read_source({**TABLE, **said})


def test_defaults_are_those_of_the_specification() -> None:
    made = source()

    assert (made.read.mode, made.read.on_non_append) == ("append", "fail")
    assert (made.on_off_lineage, made.on_expired_cursor) == ("fail", "fail")
    assert (made.on_truncated_history, made.protect_cursor) == ("fail", "none")
    assert (made.path_match, made.assume_names, made.case_sensitive) == (
        "scheme_insensitive",
        False,
        False,
    )
    assert made.max_planning_failures == 3
    assert (made.split.order, made.split.lookback) == ("none", 10)
    assert made.split.max_delete_memory == 256 * 1024**2
    assert made.read.remove_carry_over
    assert set(made.limits.model_dump().values()) == {None}


@pytest.mark.parametrize("key", ["snapshot_id", "tag", "as_of_timestamp"])
def test_selected_state_is_read_as_a_snapshot(key: str) -> None:
    assert source(**{key: 5 if key != "tag" else "eow"}).read.mode == "snapshot"


def test_branch_is_read_by_its_commits() -> None:
    made = source(branch="audit", start={"after": "eow"})

    assert made.read.mode == "append"
    assert made.address == "iceberg lake.raw.orders branch audit"
    assert source(branch="main").address == source().address


@pytest.mark.parametrize(
    ("said", "policies"),
    [
        ({"read": {"mode": "changelog"}}, ("fail", "fail")),
        ({"read": {"mode": "snapshot-diff"}}, ("snapshot_diff", "snapshot_diff")),
        ({"read": {"mode": "lineage_upserts"}}, ("fail", "lineage_upserts")),
        ({"read": {"mode": "snapshot_diff"}, "on_off_lineage": "fail"}, ("fail", "snapshot_diff")),
    ],
    ids=["changelog", "difference", "upserts", "said"],
)
def test_policies_default_to_what_the_mode_can_do_anyway(
    said: dict[str, Any], policies: tuple[str, str]
) -> None:
    made = source(**said)

    assert (made.on_off_lineage, made.on_expired_cursor) == policies


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("full_then_incremental", "full"),
        ("latest-inclusive", "latest_inclusive"),
        ("latest_exclusive", "latest"),
    ],
)
def test_start_words_of_the_specification_are_known(word: str, kind: str) -> None:
    assert source(start=word).start.kind == kind


@pytest.mark.parametrize(
    "text", ["1767225600000", 1767225600000, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00.0009+01"]
)
def test_time_is_read_as_text_or_as_milliseconds(text: str | int) -> None:
    assert source(as_of_timestamp=text).as_of_timestamp == 1767225600000


@pytest.mark.parametrize("found", [True, "", {"after": 5}, [5]])
def test_end_that_is_no_point_is_refused(found: object) -> None:
    with pytest.raises(ConfigInvalid, match="expected a snapshot id, an ISO time or a tag name"):
        source(end=found)


@pytest.mark.parametrize(
    ("start", "point"),
    [
        ("12", "12"),
        ("2030-01-01", "2030-01-01T00:00:00Z"),
        ("2026-11-23T16:12", "2026-11-23T16:12:00Z"),
        ("2026-11-23T16:12+01:00", "2026-11-23T16:12:00+01:00"),
    ],
)
def test_bare_start_is_ambiguous_and_names_both_ways(tmp_path: Any, start: str, point: str) -> None:
    said = "name: a\nsource: {kind: iceberg, table: a.b.c, start: START}\ntarget: {path: /x}"
    file = tmp_path / "orders.yaml"
    file.write_text(said.replace("START", start))

    with pytest.raises(AmbiguousStart) as refused:
        load_pipeline(file)

    assert (refused.value.line, refused.value.key) == (2, "source.start")
    remedy = re.findall(r"(after|from): ([^}]*)", refused.value.problem)
    assert [side for side, _ in remedy] == ["after", "from"]
    for side, found in remedy:
        assert datetime_or_text(found) == datetime_or_text(point)
        file.write_text(said.replace("START", f"{{{side}: '{found}'}}"))
        assert load_pipeline(file).source.start.value == found


def datetime_or_text(text: str) -> datetime | str:
    return text if text.isdecimal() else datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("read", "mode"),
    [
        ({"mode": "append"}, "append"),
        ({"mode": "append", "on_non_append": "changelog"}, "changelog"),
        ({"mode": "snapshot_diff"}, "snapshot_diff"),
    ],
    ids=["append", "changelog where needed", "difference"],
)
def test_output_columns_follow_the_mode_that_is_read(read: dict[str, Any], mode: str) -> None:
    made = source(read=read)

    assert made.read.output_mode == mode
    assert made.read.emits_kinds == (mode != "append")


def test_reserved_names_are_ordinary_columns_of_plain_files() -> None:
    made = read_source({"kind": "files", "path": "/in", "read": {"columns": ["_deleted"]}})

    assert made.read.columns == ("_deleted",)


def test_kinds_may_be_appended_where_their_column_is_read() -> None:
    raw = {
        "name": "orders",
        "source": {**TABLE, "read": {"mode": "changelog", "columns": ["id", "_change_type"]}},
        "target": {"path": "/out"},
    }

    config = PipelineConfig.from_resolved(raw)

    assert PipelineConfig.from_resolved(config.resolved()) == config
    jsonschema.validate(raw, json_schema())


@pytest.mark.parametrize("word", ["iceberg", "Iceberg", " ICEBERG "])
def test_kind_is_a_word_in_any_case(word: str) -> None:
    assert source(kind=word).kind == "iceberg"


def test_resolved_source_has_the_options_of_its_kind_alone() -> None:
    files = read_source({"kind": "files", "path": "/in"}).model_dump(mode="json", by_alias=True)
    table = source().model_dump(mode="json", by_alias=True)

    assert files.keys() & table.keys() == {"kind", "start", "read", "split"}
    assert read_source(files).model_dump(mode="json", by_alias=True) == files
    assert read_source(table).model_dump(mode="json", by_alias=True) == table


@pytest.mark.parametrize(
    ("said", "foreign"),
    [
        ({"kind": "files", "path": "/in"}, {"table": None, "limits": {"rows": None}, "tag": None}),
        (TABLE, {"path": None, "format": "parquet", "partition_by": {}, "on_bad_path": "fail"}),
    ],
    ids=["files", "iceberg"],
)
def test_resolved_source_of_earlier_versions_had_the_options_of_every_kind(
    said: dict[str, Any], foreign: dict[str, Any]
) -> None:
    config = PipelineConfig.from_resolved({"name": "a", "source": said, "target": {"path": "/x"}})
    resolved = config.resolved()

    again = PipelineConfig.from_resolved({**resolved, "source": {**resolved["source"], **foreign}})

    assert again.resolved() == resolved


def test_resolved_source_has_no_options_that_no_kind_knows() -> None:
    whole = {"name": "a", "source": {**TABLE, "teh_path": 1}, "target": {"path": "/x"}}

    with pytest.raises(ValueError, match="teh_path"):
        PipelineConfig.from_resolved(whole)


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "files", "path": "/in", "table": "a.b.c"},
        {"kind": "iceberg", "table": "a.b.c", "path": "/in"},
        {"kind": "files"},
        {"kind": "delta", "path": "/in"},
    ],
    ids=["table of files", "path of a table", "files nowhere", "unknown kind"],
)
def test_schema_tells_the_options_of_one_kind_from_those_of_another(said: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "a", "source": said, "target": {"path": "/x"}}, json_schema())


@pytest.mark.parametrize(
    "said", [{"kind": "files", "path": "/in"}, TABLE], ids=["files", "iceberg"]
)
def test_schema_knows_the_shorthand_of_every_kind(said: dict[str, Any]) -> None:
    raw = {"name": "a", "source": {**said, "read_schema": "snapshot"}, "target": {"path": "/x"}}

    jsonschema.validate(raw, json_schema())


def test_event_time_order_needs_the_column() -> None:
    raw = {
        "name": "orders",
        "source": {**TABLE, "split": {"order": "event-time"}},
        "target": {"path": "/out"},
    }

    with pytest.raises(ValueError, match="'event_time' needs the column under `event_time`"):
        PipelineConfig.from_resolved(raw)


def test_missing_bounds_may_be_nothing() -> None:
    raw = {
        "name": "orders",
        "source": {**TABLE, "split": {"order": None}},
        "event_time": {"column": "at", "on_missing_bounds": None, "unit": "MS"},
        "target": {"path": "/out"},
    }

    config = PipelineConfig.from_resolved(raw)

    assert config.event_time is not None
    assert (config.event_time.on_missing_bounds, config.event_time.unit) == ("null", "ms")
    assert config.source.split.order == "none"


FILES = {"kind": "files", "path": "/in"}


@pytest.mark.parametrize(
    "keys",
    [
        {"format": "csv", "columns": {"id": "BIGINT", "amount": "decimal(10, 2)"}},
        {"format": "csv", "csv": {"delimiter": "\t", "quote": None, "null": "NA"}},
        {"format": "json", "columns": {"tags": "array<string>"}},
        {"format": "ORC", "metadata_columns": ["file.path", "file.modification_time"]},
        {"require_marker": True},
        {"require_marker": {"name": "_DONE"}},
    ],
    ids=["columns", "csv", "json", "metadata", "marker", "marker of a name"],
)
def test_options_of_files_survive_being_stored_and_are_in_the_schema(keys: dict[str, Any]) -> None:
    raw = {"name": "a", "source": {**FILES, **keys}, "target": {"path": "/x"}}
    config = PipelineConfig.from_resolved(raw)

    again = PipelineConfig.from_resolved(config.resolved())

    assert again.source == config.source
    plain = PipelineConfig.from_resolved({**raw, "source": FILES})
    assert (again.plan_inputs() != plain.plan_inputs()) == ("require_marker" not in keys)
    if keys.get("format") != "ORC":
        jsonschema.validate(raw, json_schema())


def test_source_without_later_options_is_stored_as_earlier_versions_stored_it() -> None:
    stored = read_source(FILES).model_dump(mode="json")

    assert stored.keys().isdisjoint({"columns", "csv", "metadata_columns", "require_marker"})


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"format": "xml"}, "`source.format`: unknown value 'xml'"),
        ({"columns": {"a": "int"}}, "`source.columns`: belongs to `format: csv` and `json`"),
        ({"format": "csv", "columns": {"a": "array<int>"}}, "`source.columns.a`: a value of CSV"),
        ({"format": "json", "columns": {"a": "strings"}}, "did you mean 'string'"),
        ({"format": "json", "csv": {}}, "`source.csv`: belongs to `format: csv`"),
        ({"format": "csv", "csv": {"header": False}}, "`source.csv.header`: needs"),
        ({"format": "csv", "csv": {"quote": ","}}, "`source.csv.quote`: is the same"),
        ({"format": "csv", "csv": {"delimiter": "||"}}, "`source.csv.delimiter`: expected one"),
        ({"format": "csv", "csv": {"encoding": "utf-9"}}, "`source.csv.encoding`: unknown"),
        ({"format": "csv", "csv": {"header_row": 1}}, "`source.csv.header_row`: unknown key"),
        ({"require_marker": {"name": "done"}}, "`source.require_marker.name`"),
        ({"metadata_columns": ["file"]}, "`source.metadata_columns[0]`: unknown value"),
        (
            {"metadata_columns": ["file.path"], "partition_by": {"_file_path": "string"}},
            "`source.metadata_columns`: a column of the source has the name `_file_path`",
        ),
    ],
    ids=lambda it: "" if isinstance(it, dict) else it.replace("`", "")[:40],
)
def test_options_of_files_that_do_not_fit_are_refused_with_their_key(
    keys: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        read_source({**FILES, **keys})

    assert problem in str(refused.value)
