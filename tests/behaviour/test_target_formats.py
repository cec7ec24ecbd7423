"""A pipeline publishes in every format: staged, gated, committed, read back, and kept apart."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from typer.testing import CliRunner

from small_lake import DAY_1, NOW, SmallLake, day, interval, known, load, local, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    ColumnsAlike,
    ColumnsDrifted,
    ColumnUnfit,
    ConfigInvalid,
    PipelineChanged,
    StandingFileUnreadable,
    ValueUnfit,
)
from tidegate.model.run import Run
from tidegate.target.compaction import CompactionRule

if TYPE_CHECKING:
    from pathlib import Path

FORMS: dict[str, dict[str, Any]] = {
    "orc": {"format": "orc"},
    "csv": {"format": "csv", "csv": {"null_value": "NULL"}},
    "csv without header": {
        "format": "csv",
        "compression": "gzip",
        "csv": {"header": False, "delimiter": ";"},
    },
    "csv zstd": {"format": "csv", "compression": "zstd"},
    "json": {"format": "json"},
    "json zstd": {"format": "json", "compression": "zstd"},
    "avro": {"format": "avro"},
    "parquet snappy": {"format": "parquet", "compression": "snappy", "row_group": {"rows": 2}},
}
SUITE = {
    "name": "orders",
    "expectations": [
        {
            "type": "expect_column_values_to_not_be_null",
            "kwargs": {"column": "id"},
            "severity": "critical",
        },
        {
            "type": "expect_column_max_to_be_between",
            "kwargs": {"column": "amount", "min_value": 0, "max_value": 5},
            "severity": "critical",
        },
    ],
}


def slow(name: str) -> Any:
    """Try a form only where time does not matter."""
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def take(lake: SmallLake, **target: Any) -> None:
    pipeline = lake.pipeline(target=target)
    load(pipeline)
    publish(pipeline)


def published(lake: SmallLake, number: int = 1) -> list[dict[str, Any]]:
    rows = read_committed(lake.target).to_table().to_pylist()
    wanted = f"2026-02-{number:02d}"
    return sorted((row for row in rows if row["dt"] == wanted), key=lambda row: row["id"])


def append(lake: SmallLake, **columns: Any) -> None:
    """Append a row of the first day, and one of the second that lets the first be published."""
    lake.commits += 1
    rows = {
        "id": pa.array([lake.commits, -lake.commits], pa.int64()),
        "at": pa.array(
            [DAY_1 + timedelta(days=day, minutes=lake.commits) for day in (0, 1)],
            pa.timestamp("us", "UTC"),
        ),
        **columns,
    }
    moment = known(lake.commits - 0.5).isoformat()
    lake.table.append(pa.table(rows), snapshot_properties={"known-at": moment})


def add_column(lake: SmallLake, name: str, kind: Any) -> None:
    with lake.table.update_schema() as update:
        update.add_column(name, kind)


@pytest.mark.parametrize("name", ["csv without header", slow("orc"), slow("json"), "avro"])
def test_rows_are_gated_committed_and_read_back_and_late_ones_make_a_revision(
    lake: SmallLake, name: str
) -> None:
    target = FORMS[name]
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps(SUITE))
    lake.keys = {"gate": {"suite": str(suite)}}
    first = lake.commit({1: 3, 2: 1})
    take(lake, **target)
    late = lake.commit({1: 2, 3: 1})
    take(lake, **target)

    rows = published(lake)

    assert [row["id"] for row in rows] == [*first[:3], *late[:2]]
    assert [row["at"] for row in rows[:2]] == [DAY_1 + timedelta(minutes=n) for n in (1, 2)]
    explained = lake.pipeline(target=target).explain(day(1), NOW)
    assert explained.report.state.revision == 2
    lake.commit({1: 1, 4: 1}, amount=9)
    pipeline = lake.pipeline(target=target)
    load(pipeline)
    publish(pipeline)
    assert pipeline.ledger.partitions.get(day(1)).pending == "held"


@pytest.mark.parametrize(
    "name",
    [*map(slow, ("orc", "csv", "csv zstd", "json zstd", "parquet snappy")), "csv without header"],
)
def test_replayed_window_has_the_same_names_and_bytes(lake: SmallLake, name: str) -> None:
    target = FORMS[name]
    lake.commit({1: 3, 2: 1})
    take(lake, **target)
    before = lake.stamps()
    hashes = {path: digest for path, (digest, _) in before.items() if "part-" in path}

    load(lake.pipeline(target=target), interval(1))
    publish(lake.pipeline(target=target))

    assert hashes
    assert {
        path: digest for path, (digest, _) in lake.stamps().items() if "part-" in path
    } == hashes


@pytest.mark.on_disk
@pytest.mark.parametrize("name", ["orc", "csv", "json", "avro"])
def test_damaged_file_stops_the_gate_and_is_named(lake: SmallLake, name: str) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline(target=FORMS[name])
    load(pipeline)
    (staged,) = lake.work.rglob("dt=2026-02-01/part-*")
    content = staged.read_bytes()
    damaged = {
        "orc": content[:-20],
        "avro": content[:-20],
        "csv": content.replace(b"\n1,", b"\nx,"),
        "json": content.replace(b'{"id":1,', b'["id":1,'),
    }
    staged.write_bytes(damaged[name])

    outcomes = {str(item.partition): item.error for item in pipeline.publish_all("cli", NOW)}

    assert staged.name in str(outcomes["dt=2026-02-01"])


@pytest.mark.follows("ColumnUnfit")
def test_column_that_the_format_cannot_hold_is_refused_before_a_window_is_taken(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.types import BinaryType

    add_column(lake, "raw", BinaryType())
    append(lake, raw=pa.array([b"\xff", None]))
    lake.found_by_name(monkeypatch)
    pipeline = lake.pipeline(target={"format": "json"})

    told = CliRunner().invoke(app, ["check", str(lake.root / "orders.yaml")])
    with pytest.raises(ColumnUnfit, match=r"'raw' has the type (large_)?binary") as refused:
        load(pipeline)

    assert told.exit_code != 0
    assert "raw" in told.output
    assert "`source.read.columns`" in str(refused.value)
    assert not pipeline.ledger.windows.all()
    load(lake.pipeline(target={"format": "json"}, source={"read": {"columns": ["id", "at"]}}))
    publish(lake.pipeline(target={"format": "json"}))
    assert [row["id"] for row in published(lake)] == [1]


@pytest.mark.follows("ColumnsAlike")
@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json", "avro"])
def test_columns_that_differ_only_in_case_are_refused_before_a_window_is_taken(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    from pyiceberg.types import LongType

    add_column(lake, "AMOUNT", LongType())
    append(lake, AMOUNT=pa.array([5, 6]))
    lake.found_by_name(monkeypatch)
    pipeline = lake.pipeline(target={"format": form})

    told = CliRunner().invoke(app, ["check", str(lake.root / "orders.yaml")])
    with pytest.raises(ColumnsAlike, match=r"`source\.read\.columns`") as refused:
        load(pipeline)

    assert told.exit_code != 0
    assert " ".join(told.output.split()).count("differ only in upper and lower case") == 1
    assert (refused.value.column, refused.value.other) == ("amount", "AMOUNT")
    assert not pipeline.ledger.windows.all()
    named = {"read": {"columns": ["id", "at", "AMOUNT"]}, "case_sensitive": True}
    load(lake.pipeline(target={"format": form}, source=named))
    publish(lake.pipeline(target={"format": form}, source=named))
    assert [row["AMOUNT"] for row in published(lake)] == [5]


@pytest.mark.follows("ValueUnfit")
def test_value_that_the_format_cannot_spell_is_quarantined_as_the_error_says(
    lake: SmallLake,
) -> None:
    from pyiceberg.types import DoubleType

    add_column(lake, "x", DoubleType())
    append(lake, x=pa.array([math.nan, 1.5]))
    append(lake, x=pa.array([2.5, None]))
    target = {"format": "json"}

    with pytest.raises(ValueUnfit, match="column 'x' has NaN") as refused:
        load(lake.pipeline(target=target))

    rule = {"name": "writable", "where": refused.value.values["rule"]}
    load(lake.pipeline(target=target, rows=[rule]))
    publish(lake.pipeline(target=target, rows=[rule]))
    assert [row["x"] for row in published(lake)] == [2.5]
    (aside,) = lake.work.rglob("quarantine/**/part-*.zstd.parquet")
    assert math.isnan(pq.read_table(aside)["x"][0].as_py())


FAR = datetime(9999, 12, 31, tzinfo=UTC)
ALL_SMALL = CompactionRule(1 << 20, 1 << 20, 1)


def orc_files(lake: SmallLake) -> list[Path]:
    """Return the files of the first day, oldest first."""
    found = (lake.target / "dt=2026-02-01").glob("part-*")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def append_until(lake: SmallLake, moment: datetime) -> None:
    """Append and publish a row of the first day that is valid until then."""
    append(lake, until=pa.array([moment, None], pa.timestamp("us", "UTC")))


@pytest.mark.on_disk
def test_files_with_times_that_arrow_cannot_read_are_left_as_they_are_when_others_are_joined(
    lake: SmallLake, caplog: pytest.LogCaptureFixture
) -> None:
    from pyiceberg.types import TimestamptzType

    add_column(lake, "until", TimestamptzType())
    target = {"format": "orc"}
    for moment in (DAY_1, FAR, DAY_1):
        append_until(lake, moment)
        take(lake, **target)
    far = orc_files(lake)[1]
    content = far.read_bytes()

    done = lake.pipeline(target=target).compact(day(1), ALL_SMALL, "cli", NOW)

    assert done is not None
    assert done.rows == 3
    assert far.read_bytes() == content
    (joined,) = (path for path in orc_files(lake) if path != far)
    assert orc.read_table(joined, columns=["id"])["id"].to_pylist() == [1, 3]
    assert caplog.text.count(f"{far} is not joined to others") == 1
    assert lake.pipeline(target=target).compact(day(1), ALL_SMALL, "cli", NOW) is None
    assert list(lake.pipeline(target=target).findings()) == []

    # Once revisions join files by themselves, publish and rebuild go on as well.
    target = {"format": "orc", "compaction": {"every": 1}}
    append_until(lake, FAR)
    take(lake, **target)
    pipeline = lake.pipeline(target=target)
    planned = pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline)
    rows = [orc.read_table(path, columns=["id"])["id"].to_pylist() for path in orc_files(lake)]
    assert sorted(number for ids in rows for number in ids) == [1, 2, 3, 4]
    assert list(pipeline.findings()) == []


def test_damaged_file_is_no_file_that_was_written_unreadable(lake: SmallLake) -> None:
    for _ in range(2):
        lake.commit({1: 1, 2: 1})
        take(lake, format="orc")
    first = orc_files(lake)[0]
    first.write_bytes(bytes(first.stat().st_size))

    with pytest.raises(StandingFileUnreadable, match=first.name):
        lake.pipeline(target={"format": "orc"}).compact(day(1), ALL_SMALL, "cli", NOW)


@pytest.mark.follows("FormatNotJoined")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_that_do_not_say_their_columns_are_not_joined_which_is_said_once(
    lake: SmallLake, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.commit({1: 1, 2: 1, 3: 1})
    take(lake, format=form)

    refused = CliRunner().invoke(app, ["compact", "orders"])

    assert refused.exit_code == 1
    assert refused.output.count(f"found `target.format: {form}`") == 1
    lake.commit({1: 1, 2: 1})
    take(lake, format=form)
    assert len(published(lake)) == 2


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_files_of_other_formats_are_joined(lake: SmallLake, form: str) -> None:
    for _ in range(2):
        lake.commit({1: 2, 2: 1})
        take(lake, format=form)
    before = published(lake)

    made = lake.pipeline(target={"format": form}).compact(
        day(1), CompactionRule(1 << 20, 1 << 20, 1), "cli", NOW
    )

    assert made is not None
    assert sorted(map(str, published(lake))) == sorted(map(str, before))
    assert len(list(lake.target.rglob("part-*"))) == 1


def test_format_belongs_to_the_identity_of_a_pipeline(lake: SmallLake) -> None:
    lake.commit({1: 1, 2: 1})
    take(lake)
    lake.commit({1: 1, 2: 1})

    with pytest.raises(PipelineChanged, match=r"`target\.format` was parquet and is now orc"):
        load(lake.pipeline(target={"format": "orc"}))

    take(lake, compression="snappy")
    assert len(published(lake)) == 2


def test_form_of_csv_belongs_to_the_identity_and_its_compression_does_not(lake: SmallLake) -> None:
    lake.commit({1: 1, 2: 1})
    take(lake, format="csv")
    lake.commit({1: 1, 2: 1})

    with pytest.raises(PipelineChanged, match=r"`target\.csv`"):
        load(lake.pipeline(target={"format": "csv", "csv": {"delimiter": ";"}}))

    take(lake, format="csv", compression="gzip")
    assert len(published(lake)) == 2
    take(lake, format="csv", compression="zstd")


@pytest.mark.follows("ColumnsDrifted")
@pytest.mark.parametrize(
    ("target", "way_out"),
    [
        ({"format": "csv"}, {"source": {"read": {"columns": ["id", "at"]}}}),
        ({"evolve": "none"}, {"source": {"read": {"columns": ["id", "at"]}}}),
        ({"evolve": "none"}, {"target": {"evolve": "add_columns"}}),
        ({"format": "json", "evolve": "none"}, {"target": {"evolve": "add_columns"}}),
    ],
    ids=["csv", "columns", "add_columns", "json add_columns"],
)
def test_new_column_is_refused_by_name_and_each_way_out_helps(
    lake: SmallLake, target: dict[str, Any], way_out: dict[str, Any]
) -> None:
    from pyiceberg.types import LongType

    with lake.table.update_schema() as update:
        update.delete_column("amount")
    append(lake)
    take(lake, **target)
    add_column(lake, "n", LongType())
    append(lake, n=pa.array([5, 6], pa.int64()))
    pipeline = lake.pipeline(target=target)

    with pytest.raises(ColumnsDrifted, match=r"column 'n' \(int64\) is new") as refused:
        load(pipeline)

    assert "`source.read.columns: [id, at]`" in str(refused.value)
    assert ("add_columns" in str(refused.value)) == (target.get("format") != "csv")
    keys = {**way_out, "target": {**target, **way_out.get("target", {})}}
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    rows = published(lake)
    assert [row["id"] for row in rows] == [1, 2]
    assert [row.get("n") for row in rows] == [None, 5 if "target" in way_out else None]


@pytest.mark.follows("ColumnsDrifted")
def test_column_that_is_gone_is_refused_and_a_reset_publishes_everything_anew(
    lake: SmallLake,
) -> None:
    lake.commit({1: 1, 2: 1})
    take(lake, format="csv")
    with lake.table.update_schema() as update:
        update.delete_column("amount")
    append(lake)
    pipeline = lake.pipeline(target={"format": "csv"})

    with pytest.raises(ColumnsDrifted, match="column 'amount' is gone") as refused:
        load(pipeline)

    assert "tidegate reset orders" in str(refused.value)
    pipeline.finish_load(pipeline.reset(Run("cli", "cli"), NOW), NOW, local)
    publish(pipeline)
    assert sorted(published(lake)[0]) == ["at", "dt", "id"]


def test_rebuild_may_not_bring_other_columns_either(lake: SmallLake) -> None:
    lake.commit({1: 1, 2: 1})
    take(lake, format="csv")
    with lake.table.update_schema() as update:
        update.delete_column("amount")
    pipeline = lake.pipeline(target={"format": "csv"})

    with pytest.raises(ColumnsDrifted, match="column 'amount' is gone"):
        pipeline.rebuild([day(1)], Run("cli", "cli"), NOW)


@pytest.mark.parametrize(
    ("target", "key", "said"),
    [
        ({"format": "csv", "compression": "snappy"}, "compression", "known: none, gzip, zstd"),
        ({"format": "csv", "row_group": {"rows": 5}}, "row_group", "belongs to parquet and orc"),
        ({"format": "orc", "csv": {"header": False}}, "csv", "belongs to `format: csv`"),
        ({"format": "csv", "evolve": "add_columns"}, "evolve", "use 'none'"),
        ({"format": "csv", "csv": {"delimiter": '"'}}, "csv.quote", "is the delimiter as well"),
        ({"format": "csv", "csv": {"delimiter": ";;"}}, "csv.delimiter", "one ASCII character"),
        (
            {"format": "csv", "csv": {"null_value": "a,b"}},
            "csv.null_value",
            "contains the delimiter",
        ),
        ({"format": "json", "write": "upsert", "keys": ["id"]}, "write", "use 'append'"),
        ({"format": "csv", "compaction": True}, "compaction", "use parquet"),
        ({"format": "xml"}, "format", "known: parquet, orc, csv, json, avro"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_their_key(
    lake: SmallLake, target: dict[str, Any], key: str, said: str
) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        lake.pipeline(target=target)

    assert f"`target.{key}`" in str(refused.value)
    assert said in str(refused.value)
