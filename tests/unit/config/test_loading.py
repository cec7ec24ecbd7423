"""Pipeline files: what they mean, and how each mistake is named."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from refusing import as_nobody
from tidegate.config import (
    PipelineConfig,
    SuccessFilePolicy,
    claimants,
    find_pipeline,
    load_pipeline,
    load_pipelines,
    pipeline_files,
    read_source,
)
from tidegate.errors import (
    ConfigInvalid,
    NameTaken,
    PipelineNotFound,
    StorageDenied,
    WorkInsideTarget,
)
from tidegate.model.partition import PartitionField, Transform

if TYPE_CHECKING:
    from pathlib import Path

SHORT = """\
name: orders
schedule: "@hourly"
source: {kind: iceberg, table: lake.raw.orders}
event_time: ordered_at
target:
  path: /lake/published/orders
  partition_by: {dt: day(ordered_at)}
gate: {suite: orders_suite.json}
"""

WHOLE = """\
name: orders
timezone: Europe/Berlin
dag: {schedule: "@hourly", start_date: 2026-01-01, end_date: null, owner: sales, tags: [sales]}
source:
  kind: iceberg
  catalog: {name: lake, uri: "${env:LAKE_URI}", warehouse: s3://lake}
  table: raw.orders
  start: {after: 8744736658442914487}
  read:
    mode: append
    on_non_append: fail
    columns: [order_id, amount, region, ordered_at]
    filter: "region in ('eu','us')"
    schema: snapshot
  split: {target_size: 128MiB, open_cost: 4MiB, max_rows: 5_000_000}
  instant_time: {summary: known-at}
  location_rewrite: {/golden: /tmp/golden}
event_time:
  {column: ordered_at, lateness: 5m, future_tolerance: 0s, idle_timeout: 2h, when_idle: advance}
rows:
  - {name: positive_amount, where: "amount >= 0", on_failure: quarantine}
target:
  path: /lake/published/orders
  work: /lake/work/orders
  format: parquet
  partition_by: {dt: day(ordered_at), hr: hour(ordered_at), region: region}
  write: append
  rolling: {file_size: 64 MB}
  max_open_partitions: 8
gate: {suite: orders_suite.json, on_failure: fail, approval: {timeout: 24h}, pandas_limit: 1 GB}
commit:
  trigger: partition-time
  delay: 15 min
  late_data: revise
  policies: [{custom: "shop.policies:Announce", parameters: [loud]}, success-file]
  marker: {name: _DONE}
execute: {engine: local, local_below: 64MiB, workers: 3, claim_timeout: 30m}
"""


def write(folder: Path, text: str, name: str = "orders.yaml") -> Path:
    """Write a pipeline file."""
    file = folder / name
    file.write_text(textwrap.dedent(text), "utf-8")
    return file


def refusal(folder: Path, text: str) -> ConfigInvalid:
    """Load a file that cannot be meant."""
    with pytest.raises(ConfigInvalid) as refused:
        load_pipeline(write(folder, text))
    return refused.value


def test_short_file_is_completed_by_the_defaults(tmp_path: Path) -> None:
    config = load_pipeline(write(tmp_path, SHORT))

    assert config.dag.schedule == "@hourly"
    assert config.timezone == "UTC"
    assert config.source.catalog is not None
    assert config.source.catalog.name == "lake"
    assert config.source.catalog.properties == {}
    assert config.source.table == "raw.orders"
    assert config.source.start.kind == "full"
    assert config.source.read.mode == "append"
    assert config.source.split.target_size == 128 * 1024**2
    assert config.event_time is not None
    assert config.event_time.column == "ordered_at"
    assert config.target.work == "/lake/published/.tidegate-orders"
    assert config.target.partition_by == (PartitionField("dt", "ordered_at", Transform.DAY),)
    assert config.gate is not None
    assert config.gate.suite == str(tmp_path / "orders_suite.json")
    assert config.commit.trigger == "partition-time"
    assert config.commit.policies == (SuccessFilePolicy(),)
    assert config.commit.marker.name == "_SUCCESS"
    assert config.execute.engine == "auto"
    assert config.file == str(tmp_path / "orders.yaml")
    assert config.notes() == ()


def test_whole_file_is_read_as_written(tmp_path: Path) -> None:
    config = load_pipeline(write(tmp_path, WHOLE))

    assert config.dag.start_date == datetime(2026, 1, 1)  # noqa: DTZ001 (wall clock)
    assert config.source.catalog is not None
    assert config.source.catalog.properties == {"uri": "${env:LAKE_URI}", "warehouse": "s3://lake"}
    assert (config.source.start.kind, config.source.start.value) == ("after", "8744736658442914487")
    assert config.source.read.read_schema == "snapshot"
    assert config.source.split.max_rows == 5_000_000
    assert config.event_time is not None
    assert config.event_time.lateness == timedelta(minutes=5)
    assert config.target.rolling.file_size == 64 * 1024**2
    assert [field.transform for field in config.target.partition_by] == [
        Transform.DAY,
        Transform.HOUR,
        Transform.IDENTITY,
    ]
    assert config.commit.delay == timedelta(minutes=15)
    assert config.execute.claim_timeout == timedelta(minutes=30)


@pytest.mark.parametrize("text", [SHORT, WHOLE], ids=["short", "whole"])
def test_resolved_configuration_survives_json(tmp_path: Path, text: str) -> None:
    config = load_pipeline(write(tmp_path, text))

    raw = json.loads(json.dumps(config.resolved()))

    again = PipelineConfig.from_resolved(raw)
    assert again == config
    assert again.resolved() == config.resolved()
    assert again.identity() == config.identity()
    assert again.plan_inputs() == config.plan_inputs()


def test_words_take_dash_underscore_and_capitals(tmp_path: Path) -> None:
    text = SHORT + "commit: {trigger: Process_Time, policies: [success_file]}\n"

    config = load_pipeline(write(tmp_path, text))

    assert config.commit.trigger == "process-time"
    assert config.commit.policies == (SuccessFilePolicy(),)


def test_relative_places_are_relative_to_the_pipeline_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipelines").mkdir()
    monkeypatch.chdir(tmp_path)
    text = """\
        name: p
        source: {kind: files, path: in/}
        event_time: at
        target: {path: out, partition_by: {dt: day(at)}}
        gate: {suite: suites/s.json}
        """

    config = load_pipeline(write(tmp_path / "pipelines", text))

    assert config.source.path == str(tmp_path / "pipelines/in")
    assert config.target.path == str(tmp_path / "pipelines/out")
    assert config.target.work == str(tmp_path / "pipelines/.tidegate-out")
    assert config.gate is not None
    assert config.gate.suite == str(tmp_path / "pipelines" / "suites" / "s.json")


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ("earliest", ("earliest", None)),
        ("{from: 2026-01-01T00:00:00Z}", ("from", "2026-01-01T00:00:00+00:00")),
    ],
)
def test_start_is_a_word_or_an_instant(
    tmp_path: Path, said: str, start: tuple[str, str | None]
) -> None:
    text = SHORT.replace("orders}", "orders, start: " + said + "}", 1)

    found = load_pipeline(write(tmp_path, text)).source.start

    assert (found.kind, found.value) == start


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("2026-07-01T12:00:30", "2026-07-01T10:00:30+00:00"),
        ("'2026-01-31 12:00'", "2026-01-31T11:00:00+00:00"),
        ("'2026-07-01T12:00:00-04:00'", "2026-07-01T12:00:00-04:00"),
        ("2026-07-01", "2026-07-01"),
        ("20260701120030000", "20260701120030000"),
    ],
)
def test_start_without_a_zone_is_a_time_in_that_of_the_pipeline(
    tmp_path: Path, said: str, value: str
) -> None:
    text = SHORT.replace("orders}", "orders, start: {after: " + said + "}}", 1)

    config = load_pipeline(write(tmp_path, "timezone: Europe/Berlin\n" + text))

    assert config.source.start.value == value
    assert PipelineConfig.model_validate(config.resolved()) == config


def test_types_of_partition_keys_are_read(tmp_path: Path) -> None:
    types = "{a: Date, b: 'decimal(10, 2)', c: long}"
    text = SHORT.replace(
        "{kind: iceberg, table: lake.raw.orders}",
        "{kind: files, path: 'file:///in', partition_by: " + types + "}",
    )

    source = load_pipeline(write(tmp_path, text)).source

    assert source.path == "/in"
    assert source.partition_by == {"a": "date", "b": "decimal(10,2)", "c": "long"}


def test_keys_that_yaml_does_not_read_as_text_name_options_and_columns(tmp_path: Path) -> None:
    files = (
        "{kind: files, path: /in, format: csv, columns: {no: long, on: date, 1: string}, "
        'csv: {delimiter: ";", null: [NA, ""]}}'
    )
    text = SHORT.replace("{kind: iceberg, table: lake.raw.orders}", files)
    text = text.replace("ordered_at", '"on"')

    source = load_pipeline(write(tmp_path, text)).source

    assert source.columns == {"no": "long", "on": "date", "1": "string"}
    assert source.csv.null == ("NA", "")


def test_secret_in_a_place_stays_unresolved(tmp_path: Path) -> None:
    text = SHORT.replace("/lake/published/orders", '"${env:LAKE}/orders"')

    config = load_pipeline(write(tmp_path, text))

    assert config.target.path == "${env:LAKE}/orders"
    assert config.target.work == "${env:LAKE}/.tidegate-orders"


# What the file says (replacing a line of SHORT, or added at its end), and the complaint.
MISTAKES = {
    "misspelt word": (
        "commit: {trigger: partition-tme}",
        "commit.trigger",
        9,
        "unknown value 'partition-tme'; did you mean 'partition-time'?",
    ),
    "misspelt key": (
        "commit:\n  delay: 1h\n  polices: []",
        "commit.polices",
        11,
        "unknown key; did you mean 'policies'?",
    ),
    "misspelt key at the top": (
        "evnt_time: x",
        "evnt_time",
        9,
        "unknown key; did you mean 'event_time'?",
    ),
    "key of a deeper part": (
        "execute: {engin: local}",
        "execute.engin",
        9,
        "unknown key; did you mean 'engine'?",
    ),
    "key twice": (
        "timezone: UTC\ntimezone: Europe/Berlin",
        "timezone",
        10,
        "is given twice; YAML would silently use the last one",
    ),
    "no time zone": (
        "timezone: Europe/Berln",
        "timezone",
        9,
        "unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
    ),
    "number without unit": (
        "commit: {delay: 15}",
        "commit.delay",
        9,
        "expected a duration with its unit, found 15; write '15s' or '15m'",
    ),
    "unknown unit": (
        "commit: {delay: 15 parsecs}",
        "commit.delay",
        9,
        "unknown unit 'parsecs'; known: ms, s, min, h, d, w",
    ),
    "month as a delay": (
        "commit: {delay: 1 month}",
        "commit.delay",
        9,
        "a month has no fixed length; write days",
    ),
    "no size": (
        "execute: {local_below: much}",
        "execute.local_below",
        9,
        "expected a size such as '128MiB' or '64 KB', found 'much'",
    ),
    "size of nothing": (
        "execute: {local_below: 0}",
        "execute.local_below",
        9,
        "expected more than 0, found 0",
    ),
    "text for a number": (
        "execute: {workers: many}",
        "execute.workers",
        9,
        "expected a whole number, found 'many'",
    ),
    "word that YAML does not read as text": (
        "source: {kind: files, path: /x, read: {columns: [id, no]}}",
        "source.read.columns[1]",
        3,
        "expected text, found False: YAML reads `no` so; write it in quotes, as 'no'",
    ),
    "no revision kept": (
        "retention: {revisions: 0}",
        "retention.revisions",
        9,
        "input should be greater than 0, found 0",
    ),
    "age that is none": (
        "retention: {quarantine: some}",
        "retention.quarantine",
        9,
        "expected a duration such as '15m', '6 h' or '1d', found 'some'",
    ),
    "kept under another name": (
        "retention: {revision: 3}",
        "retention.revision",
        9,
        "unknown key; did you mean 'revisions'?",
    ),
    "list for a part": (
        "execute: [local]",
        "execute",
        9,
        "expected keys with values, found ['local']",
    ),
    "text for a list": ("rows: amount", "rows", 9, "expected a list, found 'amount'"),
    "rule without predicate": (
        "rows:\n  - {name: a}",
        "rows[0].where",
        10,
        "is required: SQL predicate that good rows satisfy; NULL does not",
    ),
    "rule that names no directory": (
        "rows:\n  - {name: a/b, where: x}",
        "rows[0].name",
        10,
        "expected letters, digits and _ . -, found 'a/b'",
    ),
    "two rules of one name": (
        "rows:\n  - {name: a, where: x}\n  - {name: a, where: y}",
        "rows",
        9,
        "the rule 'a' stands there twice",
    ),
    "misspelt policy for late data": (
        "commit: {late_data: hodl}",
        "commit.late_data",
        9,
        "unknown value 'hodl'; did you mean 'hold'?",
    ),
    "two policies for late data": (
        "commit: {late_data: {hold: {rows: 1}, side: {path: late}}}",
        "commit.late_data",
        9,
        "expected one policy, such as {hold: {rows: 1000}}; found 2",
    ),
    "options of a policy without any": (
        "commit:\n  late_data:\n    reject: {rows: 1}",
        "commit.late_data.reject",
        11,
        "has no options; it is written `late_data: reject`",
    ),
    "misspelt threshold": (
        "commit:\n  late_data:\n    hold: {row: 1}",
        "commit.late_data.hold.row",
        11,
        "unknown key; did you mean 'rows'?",
    ),
    "threshold of nothing": (
        "commit: {late_data: {hold: {age: 0s}}}",
        "commit.late_data.hold.age",
        9,
        "expected more than 0s; `late_data: revise` publishes late rows at once",
    ),
    "late root that is not named": (
        "commit: {late_data: side}",
        "commit.late_data.side.path",
        9,
        "is required: the root below which late rows are published",
    ),
    "late root without a path": (
        "commit: {late_data: {side: {}}}",
        "commit.late_data.side.path",
        9,
        "is required: the late root: a table of its own, on the file system of the target",
    ),
    "late root inside the target": (
        "commit: {late_data: {side: {path: /lake/published/orders/late}}}",
        "commit.late_data.side.path",
        9,
        "'/lake/published/orders/late' overlaps `target.path`, '/lake/published/orders': late rows "
        "need a root of their own, such as '/lake/published/orders_late'",
    ),
    "late root around the work directory": (
        "commit: {late_data: {side: {path: /lake/published}}}",
        "commit.late_data.side.path",
        9,
        "'/lake/published' overlaps `target.path`, '/lake/published/orders': late rows need a root "
        "of their own, such as '/lake/published/orders_late'",
    ),
    "metastore without a metastore": (
        "commit: {policies: [metastore, success-file]}",
        "commit.policies",
        9,
        "'metastore' needs `target.metastore: {uri: thrift://…, table: database.table}`, or "
        "`{through: spark, table: database.table}`",
    ),
    "metastore without an address": (
        "target: {path: /lake/o, metastore: {table: shop.orders}}\n"
        "commit: {policies: [metastore, success-file]}",
        "target.metastore.uri",
        5,
        "is required: `thrift://host:port` of a Hive metastore; or write `through: spark` for the "
        "catalog of Spark",
    ),
    "key of an Iceberg table for files": (
        "target: {path: /lake/published/orders, branch: audit}",
        "target.branch",
        5,
        "belongs to `kind: iceberg`; add `kind: iceberg`, or remove it",
    ),
    "key of an Iceberg table for files that are said to be files": (
        "target: {kind: files, path: /lake/published/orders, table: shop.orders}",
        "target.table",
        5,
        "belongs to `kind: iceberg`; the kind is 'files'",
    ),
    "Iceberg table on a branch of held partitions": (
        "target: {kind: iceberg, path: /lake/o, catalog: lake, table: shop.orders, "
        "branch: tidegate-held/x}",
        "target.branch",
        5,
        "'tidegate-held/x' begins like the branches of held partitions, which a reset drops; "
        "choose another name",
    ),
    "Iceberg table without a catalog": (
        "target: {kind: iceberg, path: /lake/published/orders, table: shop.orders}",
        "target.catalog",
        5,
        "is required for `kind: iceberg`: the catalog of the table, a name or a mapping with the "
        "options that a source's catalog has",
    ),
    "Iceberg table without a name": (
        "target: {kind: iceberg, path: /lake/published/orders, catalog: lake}",
        "target.table",
        5,
        "is required for `kind: iceberg`: `namespace.table` of the catalog",
    ),
    "Iceberg table without a namespace": (
        "target: {kind: iceberg, path: /lake/published/orders, catalog: lake, table: orders}",
        "target.table",
        5,
        "expected `namespace.table`, found 'orders'",
    ),
    "Iceberg table of another format": (
        "target: {kind: iceberg, path: /lake/o, catalog: lake, table: shop.orders, format: orc}",
        "target.format",
        5,
        "'orc' is none of `kind: iceberg`, whose files are parquet",
    ),
    "Iceberg table in a metastore": (
        "target: {kind: iceberg, path: /lake/o, catalog: lake, table: shop.orders, "
        "metastore: {uri: 'thrift://m:9083', table: a.b}}",
        "target.metastore",
        5,
        "lists folders of files; an Iceberg table is found in `target.catalog`: remove it",
    ),
    "Iceberg table that no snapshot shows": (
        "target: {kind: iceberg, path: /lake/o, catalog: lake, table: shop.orders}\n"
        "commit: {policies: [success-file]}",
        "commit.policies",
        6,
        "without 'snapshot', no reader of `kind: iceberg` finds what is published; write "
        "`[snapshot, success-file]`",
    ),
    "snapshot of files": (
        "commit: {policies: [snapshot]}",
        "commit.policies",
        9,
        "'snapshot' belongs to another kind of target than 'files'",
    ),
    "misspelt policy": (
        "commit:\n  policies:\n    - sucess-file",
        "commit.policies[0]",
        11,
        "unknown policy 'sucess-file'; did you mean 'success-file'?",
    ),
    "misspelt key of a policy": (
        "commit: {policies: [{custom: 'a:B', params: [x]}]}",
        "commit.policies[0].params",
        9,
        "unknown key; did you mean 'parameters'?",
    ),
    "number for a word": (
        "commit: {trigger: 5}",
        "commit.trigger",
        9,
        "expected one of partition-time, process-time, found 5",
    ),
    "writers that are none": (
        "target: {path: /x, max_open_partitions: 0}",
        "target.max_open_partitions",
        5,
        "input should be greater than 0, found 0",
    ),
    "order by a partition key": (
        "target: {path: /x, partition_by: {region: region}, sort_by: [at, -region]}",
        "target.sort_by",
        5,
        "'region' is a partition key: it is the same in all rows of a file",
    ),
    "order by a column twice": (
        "target: {path: /x, sort_by: [at, -at]}",
        "target.sort_by",
        5,
        "the column 'at' stands there twice",
    ),
    "order by nothing": (
        "target: {path: /x, sort_by: ['-']}",
        "target.sort_by",
        5,
        "expected a column, or `-column` for the largest first; found '-'",
    ),
    "order that is no list": (
        "target: {path: /x, sort_by: {at: desc}}",
        "target.sort_by",
        5,
        "expected a list of columns such as [region, -ordered_at]",
    ),
    "order of an upsert": (
        "target: {path: /x, write: upsert, keys: [id], shuffle_by_partition: true}",
        "target.shuffle_by_partition",
        5,
        "would lose the order of changes, which `write: upsert` needs",
    ),
    "rows brought together without keys": (
        "target: {path: /x, shuffle_by_partition: true}",
        "target.shuffle_by_partition",
        5,
        "needs partition keys; `target.partition_by` names none",
    ),
    "policy of no word": (
        "commit: {policies: [{parameters: [x]}]}",
        "commit.policies[0]",
        9,
        "unknown policy 'parameters'; known: success-file, snapshot, metastore, custom",
    ),
    "option of a policy without any": (
        "commit: {policies: [{success-file: loud}]}",
        "commit.policies[0].success-file",
        9,
        "unknown key; this section has no keys",
    ),
    "number for a policy": (
        "commit: {policies: [5]}",
        "commit.policies[0]",
        9,
        "unknown policy '5'; known: success-file, snapshot, metastore, custom",
    ),
    "marker before a policy": (
        "commit: {policies: [success-file, {custom: 'a:B'}]}",
        "commit.policies",
        9,
        "'success-file' comes before another policy; the marker is written last",
    ),
    "policy that is no class": (
        "commit: {policies: [{custom: a.B}]}",
        "commit.policies[0].custom",
        9,
        "expected `module:Class`, found 'a.B'",
    ),
    "custom without class": (
        "commit: {policies: [custom]}",
        "commit.policies[0]",
        9,
        "a policy of your own is written {custom: 'module:Class', parameters: [...]}",
    ),
    "visible marker": (
        "commit: {marker: {name: DONE}}",
        "commit.marker.name",
        9,
        "expected one hidden name, with '_' or '.' at its start; found 'DONE'",
    ),
    "formatter of unknown letters": (
        "commit: {partition_time: {formatter: YYYYMMdd}}",
        "commit.partition_time.formatter",
        9,
        "'YYYYMMdd': the letter 'Y' is not read; known: y, u, M, d, H, m, s, S",
    ),
    "time of made values": (
        "commit: {partition_time: {interval: 1 d}}",
        "commit.partition_time",
        9,
        "is known from `dt: day(ordered_at)`; remove this key, it is for partition values "
        "taken from a column",
    ),
    "key that is written otherwise": ("sink: {path: /x}", "sink", 9, "is written `target`"),
    "placeholder of a shell": (
        "dag: {owner: '${OWNER}'}",
        "dag.owner",
        9,
        "unknown placeholder '${OWNER}'; write '${env:NAME}'",
    ),
    "schedule twice": (
        "dag: {schedule: '@daily'}",
        "schedule",
        2,
        "is short for `dag.schedule`; one of the two is enough",
    ),
    "dates the wrong way round": (
        "dag: {start_date: 2026-02-01, end_date: 2026-01-01}",
        "dag.end_date",
        9,
        "2026-01-01 00:00:00 lies before start_date 2026-02-01 00:00:00",
    ),
    "date with an offset": (
        "dag: {start_date: '2026-02-01T00:00:00+01:00'}",
        "dag.start_date",
        9,
        "'2026-02-01 00:00:00+01:00' has an offset; write the wall clock time of the pipeline's "
        "`timezone`",
    ),
    "idle without time-out": (
        "event_time: {column: ordered_at, when_idle: advance}",
        "event_time.idle_timeout",
        4,
        "is required for `when_idle: advance`: the time without data after which a source is idle",
    ),
    "negative lateness": (
        "event_time: {column: ordered_at, lateness: -5m}",
        "event_time.lateness",
        4,
        "expected a duration such as '15m', '6 h' or '1d', found '-5m'",
    ),
    "no schedule": (
        'schedule: "@dayly"',
        "dag.schedule",
        2,
        "unknown schedule '@dayly'; did you mean '@daily'?",
    ),
    "no cron": (
        'schedule: "0 6 * *"',
        "dag.schedule",
        2,
        "expected five cron fields or one of @hourly, @daily, @weekly, @monthly, @quarterly, "
        "@yearly, found '0 6 * *'",
    ),
    "no name for a DAG": (
        "name: my orders",
        "name",
        1,
        "expected letters, digits and _ . -, found 'my orders'",
    ),
    "repeated keys on an append target": (
        "source: {kind: hudi, path: /x}",
        "source.read.mode",
        3,
        "'complete' returns an updated row again, which `target.write: append` would publish "
        "beside the old one; use `target.write: upsert` or 'snapshot', or set "
        "`source.read.keys_repeat: true` if that is wanted, as for a table that only gets new "
        "keys",
    ),
    "changes whose kinds nobody sees": (
        "source: {kind: hudi, path: /x, read: {mode: changelog}}",
        "source.read.mode",
        3,
        "'changelog' emits row kinds, which `target.write: append` would publish as if every one "
        "were a new row; use `target.write: upsert`, which applies them, add `_change_type` to "
        "`source.read.columns`, so that readers can tell "
        "them apart, or use 'rebuild_partitions'",
    ),
    "start of a whole state": (
        "source: {kind: hudi, path: /x, start: latest, read: {mode: snapshot}}",
        "source.start",
        3,
        "`read.mode: snapshot` reads a whole state of the table, without start or end; remove "
        "this key",
    ),
    "order of another kind": (
        "source: {kind: hudi, path: /x, read: {mode: snapshot}, split: {order: event_time}}",
        "source.split.order",
        3,
        "'event_time' belongs to sources of kind 'iceberg'",
    ),
    "zone that does not exist": (
        "source: {kind: hudi, path: /x, read: {mode: snapshot}, timeline_timezone: Mars/Here}",
        "source.timeline_timezone",
        3,
        "'Mars/Here' is no time zone; expected a name such as 'UTC' or 'Europe/Berlin'",
    ),
    "deletes that a snapshot cannot tell": (
        "source: {kind: hudi, path: /x, read: {mode: changelog, columns: [k, _change_type]}, "
        "on_cleaned: snapshot}",
        "source.on_cleaned",
        3,
        "'snapshot' cannot tell what was deleted, which `read.mode: changelog` promises; use "
        "'fail', or a mode such as 'complete' or 'rebuild_partitions'",
    ),
    "modification times of a timeline": (
        "source: {kind: hudi, path: /x, read: {mode: rebuild_partitions}, "
        "on_hollow_instant: USE_TRANSITION_TIME}",
        "source.on_hollow_instant",
        3,
        "'USE_TRANSITION_TIME' cannot be offered: a file of the timeline may have an earlier "
        "modification time than one that was seen before it, and has another one in a copy of the "
        "table, so that a write could be passed over without a trace; use 'block', and let Hudi "
        "roll a dead write back",
    ),
    "row kinds on an append target": (
        "source: {kind: iceberg, table: a.b.c, read: {mode: changelog}}",
        "source.read.mode",
        3,
        "'changelog' emits row kinds, which `target.write: append` would publish as if every one "
        "were a new row; use `target.write: upsert`, which applies them, add `_change_type` to "
        "`source.read.columns`, so that readers can tell "
        "them apart, or use 'append'",
    ),
    "start without a side": (
        "source: {kind: iceberg, table: a.b.c, start: 123}",
        "source.start",
        3,
        "'123' does not say its side; write {after: 123} or {from: 123}",
    ),
    "misspelt start": (
        "source: {kind: iceberg, table: a.b.c, start: earlyest}",
        "source.start",
        3,
        "unknown value 'earlyest'; did you mean 'earliest'?",
    ),
    "start with an unknown side": (
        "source: {kind: iceberg, table: a.b.c, start: {before: 1}}",
        "source.start",
        3,
        "expected {after: INSTANT} or {from: INSTANT}",
    ),
    "table without catalog": (
        "source: {kind: iceberg, table: raw.orders}",
        "source.table",
        3,
        "'raw.orders' names no catalog; write `catalog.namespace.table`, or name the catalog "
        "under `source.catalog`",
    ),
    "table without namespace": (
        "source: {kind: iceberg, catalog: lake, table: orders}",
        "source.table",
        3,
        "expected `namespace.table`, found 'orders'",
    ),
    "no table": (
        "source: {kind: iceberg}",
        "source.table",
        3,
        "is required: `namespace.table` of the catalog, or `metadata` in its place",
    ),
    "table and metadata": (
        "source: {kind: iceberg, table: a.b.c, metadata: /x}",
        "source.metadata",
        3,
        "names the table already; leave out `catalog` and `table`",
    ),
    "two selections": (
        "source: {kind: iceberg, table: a.b.c, tag: x, snapshot_id: 5}",
        "source.tag",
        3,
        "and `snapshot_id` both select what to read; remove one of the two",
    ),
    "branch and tag": (
        "source: {kind: iceberg, table: a.b.c, branch: audit, as_of_timestamp: 5}",
        "source.as_of_timestamp",
        3,
        "and `branch` both select what to read; remove one of the two",
    ),
    "selection with a mode of changes": (
        "source: {kind: iceberg, table: a.b.c, tag: x, read: {mode: append}}",
        "source.read.mode",
        3,
        "'append' reads windows of commits, and `source.tag` names one state of the table; leave "
        "out one of the two, or use 'snapshot'",
    ),
    "selection with a start": (
        "source: {kind: iceberg, table: a.b.c, tag: x, start: latest}",
        "source.start",
        3,
        "`tag` names a whole state of the table, without start or end; remove this key",
    ),
    "selection with an end": (
        "source: {kind: iceberg, table: a.b.c, snapshot_id: 5, end: 6}",
        "source.end",
        3,
        "`snapshot_id` names a whole state of the table, without start or end; remove this key",
    ),
    "time without zone": (
        "source: {kind: iceberg, table: a.b.c, as_of_timestamp: '2026-01-01T00:00:00'}",
        "source.as_of_timestamp",
        3,
        "'2026-01-01T00:00:00' does not name its zone; write '2026-01-01T00:00:00Z' for UTC",
    ),
    "no time": (
        "source: {kind: iceberg, table: a.b.c, as_of_timestamp: yesterday}",
        "source.as_of_timestamp",
        3,
        "expected an ISO time such as '2026-01-31T12:00:00Z', or milliseconds since 1970; found "
        "'yesterday'",
    ),
    "limit of changes": (
        "source: {kind: iceberg, table: a.b.c, read: {limit: 5}}",
        "source.read.limit",
        3,
        "would lose all further rows for ever, because the next window begins after them; it is "
        "for `mode: snapshot` (`source.limits` cuts windows between commits)",
    ),
    "difference without kinds": (
        "source: {kind: iceberg, table: a.b.c, on_off_lineage: snapshot_diff}",
        "source.on_off_lineage",
        3,
        "'snapshot_diff' gives rows of several kinds, which `read.mode: append` has no column for; "
        "use `read.mode: changelog`, or another policy",
    ),
    "upserts without kinds": (
        "source: {kind: iceberg, table: a.b.c, on_expired_cursor: lineage_upserts}",
        "source.on_expired_cursor",
        3,
        "'lineage_upserts' gives rows of several kinds, which `read.mode: append` has no column "
        "for; use `read.mode: changelog`, or another policy",
    ),
    "deletes in a mode of upserts": (
        "source: {kind: iceberg, table: a.b.c, "
        "on_expired_cursor: snapshot-diff, read: {mode: lineage-upserts}}",
        "source.on_expired_cursor",
        3,
        "'snapshot_diff' gives deletes, which `read.mode: lineage_upserts` never does; use "
        "`read.mode: changelog`, or another policy",
    ),
    "skipping in a changelog": (
        "source: {kind: iceberg, table: a.b.c, read: {mode: changelog, on_non_append: skip}}",
        "source.read.on_non_append",
        3,
        "belongs to `mode: append`; 'changelog' reads every kind of commit",
    ),
    "changelog of commits that do not append, without a column": (
        "source: {kind: iceberg, table: a.b.c, read: {on_non_append: changelog}}",
        "source.read.on_non_append",
        3,
        "'changelog' emits row kinds, which `target.write: append` would publish as if every one "
        "were a new row; use `target.write: upsert`, which applies them, add `_change_type` to "
        "`source.read.columns`, so that readers can tell "
        "them apart, or use 'skip'",
    ),
    "net changes of appends": (
        "source: {kind: iceberg, table: a.b.c, read: {net_changes: true}}",
        "source.read.net_changes",
        3,
        "belongs to `mode: changelog`; the mode is 'append'",
    ),
    "net changes with carried-over rows": (
        "source: {kind: iceberg, table: a.b.c, "
        "read: {mode: snapshot_diff, remove_carry_over: false}}",
        "source.read.remove_carry_over",
        3,
        "net changes never include carried-over rows; leave it true",
    ),
    "strict pairs of net changes": (
        "source: {kind: iceberg, table: a.b.c, "
        "read: {mode: changelog, net_changes: true, strict_identifiers: true}}",
        "source.read.strict_identifiers",
        3,
        "net changes are not paired as updates; remove one of the two",
    ),
    "deleted rows of a changelog": (
        "source: {kind: iceberg, table: a.b.c, read: {mode: changelog, include_deleted: true}}",
        "source.read.include_deleted",
        3,
        "belongs to `mode: snapshot`; a changelog has deletes as rows of their own",
    ),
    "metadata column of another mode": (
        "source: {kind: iceberg, table: a.b.c, read: {columns: [a, _deleted]}}",
        "source.read.columns",
        3,
        "'_deleted' does not exist in mode 'append'; there are _commit_snapshot_id, _file, "
        "_last_updated_sequence_number, _pos, _row_id, _spec_id",
    ),
    "policy of a snapshot read": (
        "source: {kind: iceberg, table: a.b.c, "
        "read: {mode: snapshot}, on_expired_cursor: full_reload}",
        "source.on_expired_cursor",
        3,
        "belongs to modes that read changes; 'snapshot' needs no checkpoint in the table",
    ),
    "empty limit": (
        "source: {kind: iceberg, table: a.b.c, limits: {rows: 0}}",
        "source.limits.rows",
        3,
        "input should be greater than 0, found 0",
    ),
    "tag on static metadata": (
        "source: {kind: iceberg, metadata: /t, protect_cursor: tag}",
        "source.protect_cursor",
        3,
        "'tag' writes to the table, which needs a catalog; static metadata is only read",
    ),
    "branch of files": (
        "source: {kind: files, path: /x, branch: audit}",
        "source.branch",
        3,
        "belongs to sources of kind 'iceberg', not to 'files'",
    ),
    "changelog of files": (
        "source: {kind: files, path: /x, read: {mode: changelog}}",
        "source.read.mode",
        3,
        "'changelog' belongs to sources of kind 'iceberg'; use 'append'",
    ),
    "order of files by a manifest's number": (
        "source: {kind: files, path: /x, split: {order: file_sequence}}",
        "source.split.order",
        3,
        "'file_sequence' belongs to sources of kind 'iceberg'",
    ),
    "inclusive latest of files": (
        "source: {kind: files, path: /x, start: latest_inclusive}",
        "source.start",
        3,
        "'latest_inclusive' belongs to sources of kind 'iceberg'",
    ),
    "no files": (
        "source: {kind: files}",
        "source.path",
        3,
        "is required: the root directory of the files",
    ),
    "misspelt key that is required": (
        "source:\n  kind: files\n  pth: /x",
        "source.pth",
        5,
        "unknown key; did you mean 'path'?\n"
        "{file}:3: `source.path`: is required: the root directory of the files",
    ),
    "no kind": (
        "source: {path: /x}",
        "source.kind",
        3,
        "is required: iceberg, hudi or files",
    ),
    "misspelt kind": (
        "source: {kind: icebreg, table: a.b.c}",
        "source.kind",
        3,
        "unknown value 'icebreg'; did you mean 'iceberg'?",
    ),
    "kind that is no word": (
        "source: {kind: 5, table: a.b.c}",
        "source.kind",
        3,
        "expected one of iceberg, hudi, files, found 5",
    ),
    "source that is no mapping": (
        "source: a.b.c",
        "source",
        3,
        "expected keys with values, found 'a.b.c'",
    ),
    "option of files on a table": (
        "source: {kind: iceberg, table: a.b.c, path_regex: x}",
        "source.path_regex",
        3,
        "belongs to sources of kind 'files', not to 'iceberg'",
    ),
    "misspelt key of a deep part of a source": (
        "source: {kind: iceberg, table: a.b.c, read: {columnz: [a]}}",
        "source.read.columnz",
        3,
        "unknown key; did you mean 'columns'?",
    ),
    "key of another kind, twice": (
        "source: {kind: files, path: /x, limits: {rows: 5}, tag: eow}",
        "source.limits",
        3,
        "belongs to sources of kind 'iceberg', not to 'files'\n"
        "{file}:3: `source.tag`: belongs to sources of kind 'iceberg', not to 'files'",
    ),
    "key of another kind": (
        "source: {kind: files, path: /x, table: a.b}",
        "source.table",
        3,
        "belongs to sources of kind 'iceberg', not to 'files'",
    ),
    "files in an unknown store": (
        "source: {kind: files, path: 'gs://x/y'}",
        "source.path",
        3,
        "'gs://x/y': gs:// is not in this version of Tidegate; "
        "write a path of a mounted file system, or s3://",
    ),
    "files in a store without a bucket": (
        "source: {kind: files, path: 's3:///y'}",
        "source.path",
        3,
        "expected `s3://bucket/prefix`, found 's3:///y'",
    ),
    "files in a bucket with a name that none has": (
        "source: {kind: files, path: 's3://my lake/y'}",
        "source.path",
        3,
        "'my lake' is no name of a bucket: expected 3 to 63 small letters, digits, dots and "
        "hyphens, with a letter or digit at both ends",
    ),
    "files in a bucket with a name that is too short": (
        "source: {kind: files, path: 's3://ab/y'}",
        "source.path",
        3,
        "'ab' is no name of a bucket: expected 3 to 63 small letters, digits, dots and "
        "hyphens, with a letter or digit at both ends",
    ),
    "files in a store whose address misses a character": (
        "source: {kind: files, path: 's3:/x/y'}",
        "source.path",
        3,
        "expected `s3://bucket/prefix`, found 's3:/x/y'",
    ),
    "type of a key": (
        "source: {kind: files, path: /x, partition_by: {dt: dat}}",
        "source.partition_by.dt",
        3,
        "unknown type 'dat'; did you mean 'date'?",
    ),
    "path that is no expression": (
        "source: {kind: files, path: /x, path_regex: '('}",
        "source.path_regex",
        3,
        "'(' is not a regular expression: missing ), unterminated subpattern at position 0",
    ),
    "changed file read again": (
        "source: {kind: files, path: /x, on_changed_file: reread}",
        "source.on_changed_file",
        3,
        "'reread' is not supported: a changed file is never read again automatically; use 'fail' "
        "and `tidegate rebuild`",
    ),
    "columns without the event time": (
        "source: {kind: files, path: /x, read: {columns: [ordered_on, amount]}}",
        "target.partition_by.dt",
        7,
        "'ordered_at' is not among `source.read.columns`; did you mean 'ordered_on'?",
    ),
    "column twice": (
        "source: {kind: files, path: /x, read: {columns: [ordered_at, ordered_at]}}",
        "source.read.columns",
        3,
        "the column 'ordered_at' stands there twice",
    ),
    "schema twice": (
        "source: {kind: files, path: /x, read_schema: table, read: {schema: table}}",
        "source.read_schema",
        3,
        "is short for `read.schema`; one of the two is enough",
    ),
    "catalog of lists": (
        "source: {kind: iceberg, table: a.b, catalog: {name: a, uri: [x]}}",
        "source.catalog.uri",
        3,
        "expected text, found ['x']",
    ),
    "format": (
        "target: {path: /x, format: xls}",
        "target.format",
        5,
        "unknown value 'xls'; known: parquet, orc, csv, json, avro",
    ),
    "target in a store of another kind": (
        "target: {path: 'gs://x/y'}",
        "target.path",
        5,
        "'gs://x/y': gs:// is not in this version of Tidegate; "
        "write a path of a mounted file system, or s3://",
    ),
    "layout of an Iceberg table": (
        "target: {kind: iceberg, table: a.b, path: /x, catalog: {name: a}, layout: revisions}",
        "target.layout",
        5,
        "belongs to `kind: files`; readers of `kind: iceberg` see whole revisions",
    ),
    "work directory in another store": (
        "target: {path: 's3://xyz/y', work: /x}",
        "target.work",
        5,
        "'/x' and `target.path` have to be both in a store, or both on a disk",
    ),
    "target that is a bucket": (
        "target: {path: 's3://xyz'}",
        "target.work",
        5,
        "is required, because `target.path: s3://xyz` has no plain name at its end",
    ),
    "secret in plain text": (
        "s3: {access_key: A, secret_key: B}",
        "s3.secret_key",
        9,
        "is written in plain text; write `${env:NAME}` and set the variable",
    ),
    "half a pair of keys": (
        "s3: {access_key: A}",
        "s3.secret_key",
        9,
        "is required, because the other half of the pair is given",
    ),
    "address of a store": (
        "s3: {endpoint: store.example}",
        "s3.endpoint",
        9,
        "expected `https://host` or `http://host:port`, found 'store.example'",
    ),
    "unknown function": (
        "target: {path: /x, partition_by: {dt: days(at)}}",
        "target.partition_by.dt",
        5,
        "unknown function 'days'; did you mean 'day'?",
    ),
    "function of a later version": (
        "target: {path: /x, partition_by: {b: 'bucket(4, x)'}}",
        "target.partition_by.b",
        5,
        "bucket() is not in this version of Tidegate; known: hour, day, month",
    ),
    "hidden key": (
        "target: {path: /x, partition_by: {_dt: day(at)}}",
        "target.partition_by._dt",
        5,
        "a key that starts with '_' or '.' would make hidden directories",
    ),
    "key named as its column": (
        "target: {path: /x, partition_by: {at: day(at)}}",
        "target.partition_by.at",
        5,
        "day(at): the key needs a column, and a name other than the column's: readers would find "
        "two columns of one name",
    ),
    "key without column": (
        "target: {path: /x, partition_by: {dt: 5}}",
        "target.partition_by.dt",
        5,
        "expected a column, or day(), hour() or month() of one; found 5",
    ),
    "keys as a list": (
        "target: {path: /x, partition_by: [dt]}",
        "target.partition_by",
        5,
        "expected a mapping such as {dt: day(ordered_at), region: region}",
    ),
    "keys as a list with one twice": (
        "target: {path: /x, partition_by: [{dt: day(at)}, {dt: at}]}",
        "target.partition_by",
        5,
        "a partition key is given twice",
    ),
    "name of NULL that is a day": (
        "target: {path: /x, partition_by: {dt: day(at)}, default_partition_name: '1970-01-01'}",
        "target.default_partition_name",
        5,
        "'1970-01-01' is what `dt: day(at)` writes for a time",
    ),
    "work beside nothing": (
        "target: {path: '${env:OUT}'}",
        "target.work",
        5,
        "is required, because `target.path: ${env:OUT}` has no plain name at its end",
    ),
}
LAST_LINE_OF = {"target": (5, 7)}


def mistaken(said: str) -> str:
    """Put a mistake into SHORT: in place of its key, or at the end."""
    lines = SHORT.splitlines()
    key = said.split(":")[0]
    for number, line in enumerate(lines):
        if line.startswith(f"{key}:"):
            _, last = LAST_LINE_OF.get(key, (0, number + 1))
            return "\n".join([*lines[:number], said, *lines[last:]]) + "\n"
    return SHORT + said + "\n"


@pytest.mark.parametrize(("said", "key", "line", "problem"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistake_is_named_with_line_key_and_remedy(
    tmp_path: Path, said: str, key: str, line: int, problem: str
) -> None:
    refused = refusal(tmp_path, mistaken(said))

    problem = problem.replace("{file}", f"{tmp_path}/orders.yaml")
    assert (refused.key, refused.line, refused.problem) == (key, line, problem)
    assert str(refused) == f"{tmp_path}/orders.yaml:{line}: `{key}`: {problem}"


_ICEBERG = "target: {{kind: iceberg, path: /out, table: a.b, catalog: {{name: c, {0}}}}}"
_SOURCE = "source: {{kind: iceberg, table: raw.orders, catalog: {{name: c, {0}}}}}"
_LISTED = "target: {{path: /out, metastore: {{uri: '{0}', table: a.b}}}}"


@pytest.mark.parametrize(
    ("said", "key"),
    [
        (_SOURCE.format("s3.secret-access-key: hidden"), "source.catalog.s3.secret-access-key"),
        (_SOURCE.format("uri: 'postgresql://me:hidden@host/db'"), "source.catalog.uri"),
        (_ICEBERG.format("uri: 'postgresql+psycopg2://me:hidden@h/d'"), "target.catalog.uri"),
        (_ICEBERG.format("token: hidden"), "target.catalog.token"),
        (_ICEBERG.format("credential: 'me:hidden'"), "target.catalog.credential"),
        (
            _ICEBERG.format("header.Authorization: 'Bearer hidden'"),
            "target.catalog.header.Authorization",
        ),
        (
            _ICEBERG.format("adls.connection-string: 'AccountKey=hidden'"),
            "target.catalog.adls.connection-string",
        ),
        (_ICEBERG.format("adls.account-key: hidden"), "target.catalog.adls.account-key"),
        (_LISTED.format("thrift://me:hidden@host:9083"), "target.metastore.uri"),
        ("target: {path: 's3://me:hidden@lake/orders'}", "target.path"),
        ("s3: {endpoint: 'https://me:hidden@store'}", "s3.endpoint"),
        ("s3: {endpoint: 'https://store/?token=hidden'}", "s3.endpoint"),
    ],
)
def test_secret_in_plain_text_is_refused_and_not_said(tmp_path: Path, said: str, key: str) -> None:
    refused = refusal(tmp_path, mistaken(said))

    assert refused.key == key
    assert "hidden" not in str(refused)


@pytest.mark.parametrize(
    "said",
    [
        "token-refresh-enabled: 'false'",
        "gcs.oauth2.token-expires-at: '17'",
        "oauth2-server-uri: 'http://host/tokens'",
        "header.X-Iceberg-Access-Delegation: vended-credentials",
        "s3.access-key-id: known",
        "token: '${{env:TOKEN}}'",
    ],
)
def test_option_of_a_catalog_that_is_no_secret_is_written_as_it_is(
    tmp_path: Path, said: str
) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(mistaken(_ICEBERG.format(said.format())))

    target = load_pipeline(path).target
    assert target.catalog is not None
    assert said.partition(":")[0] in target.catalog.properties


def test_several_mistakes_are_all_named_with_their_lines(tmp_path: Path) -> None:
    refused = refusal(
        tmp_path, SHORT + "execute: {engine: sparc}\ncommit: {delay: 5, trigger: x}\n"
    )

    assert refused.line == 9
    first, *others = refused.problem.splitlines()
    assert first == "unknown value 'sparc'; did you mean 'spark'?"
    assert sorted(line.split(" ")[:2] for line in others) == [
        [f"{tmp_path}/orders.yaml:10:", "`commit.delay`:"],
        [f"{tmp_path}/orders.yaml:10:", "`commit.trigger`:"],
    ]


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    keys = "".join(f"key{number}: 1\n" for number in range(14))

    refused = refusal(tmp_path, SHORT + keys)

    assert refused.problem.count("unknown key") == 10
    assert refused.problem.endswith("\nand 4 more")


def test_partition_time_without_event_time_is_refused(tmp_path: Path) -> None:
    refused = refusal(tmp_path, SHORT.replace("event_time: ordered_at\n", ""))

    assert refused.key == "event_time"
    assert refused.problem == (
        "is required: the trigger 'partition-time' waits for the watermark of an event time; "
        "name its column, or set `commit.trigger: process-time`"
    )


def test_pattern_of_an_unknown_key_is_refused(tmp_path: Path) -> None:
    text = SHORT.replace("day(ordered_at)", "dt") + 'commit: {partition_time: {pattern: "$day"}}\n'

    refused = refusal(tmp_path, text)

    assert refused.key == "commit.partition_time.pattern"
    assert refused.problem.startswith("'$day' is no partition key")


@pytest.mark.parametrize("key", ["order-day", "a.b", "день", "day 1"])
def test_pattern_names_a_key_of_any_spelling(tmp_path: Path, key: str) -> None:
    """PC-T12: Flink takes the same keys and patterns."""
    text = SHORT.replace("{dt: day(ordered_at)}", f'{{"{key}": dt}}')
    commit = 'commit: {{partition_time: {{pattern: "{}"}}}}\n'

    known = load_pipeline(write(tmp_path, text + commit.format(f"${key} 00:00:00")))
    refused = refusal(tmp_path, text + commit.format("$другой"))

    assert known.commit.partition_time is not None
    assert known.commit.partition_time.pattern == f"${key} 00:00:00"
    assert refused.problem.startswith("'$другой' is no partition key")


def test_partition_time_of_an_unpartitioned_target_is_refused(tmp_path: Path) -> None:
    text = SHORT.replace("  partition_by: {dt: day(ordered_at)}\n", "")

    refused = refusal(tmp_path, text + "commit: {partition_time: {interval: 1 d}}\n")

    assert refused.problem == "needs partition keys; `target.partition_by` names none"


@pytest.mark.parametrize(
    "work",
    ["/lake/published/orders", "/lake/published/orders/.work", "/lake/published/orders/a/../b"],
)
def test_work_inside_the_target_is_refused(tmp_path: Path, work: str) -> None:
    text = SHORT.replace("  partition_by", f"  work: {work}\n  partition_by")

    with pytest.raises(WorkInsideTarget, match="is inside /lake/published/orders"):
        load_pipeline(write(tmp_path, text))


def test_work_with_the_target_as_the_beginning_of_its_name_is_accepted(tmp_path: Path) -> None:
    text = SHORT.replace("  partition_by", "  work: /lake/published/orders-work\n  partition_by")

    assert load_pipeline(write(tmp_path, text)).target.work == "/lake/published/orders-work"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("name: [a", 1, "cannot be read as YAML"),
        ("name: a\n\tsource: b", 2, "cannot be read as YAML"),
        ("", 1, "expected the keys of a pipeline"),
        ("- name", 1, "expected the keys of a pipeline"),
        ("name: a\ndag: {start_date: 2026-02-30}", 2, "day is out of range"),
    ],
    ids=["open bracket", "tab", "empty", "list", "no date"],
)
def test_file_that_is_no_mapping_is_refused(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    refused = refusal(tmp_path, text)

    assert refused.line == line
    assert problem in refused.problem


def test_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes("name: größe".encode("latin-1"))

    with pytest.raises(ConfigInvalid, match="UTF-8"):
        load_pipeline(tmp_path / "p.yaml")


def test_pipeline_is_found_by_the_name_it_says(tmp_path: Path) -> None:
    write(tmp_path, "name: [broken", "a_broken.yaml")
    file = write(tmp_path, SHORT, "other_name.yaml")

    assert find_pipeline("orders", tmp_path) == file
    assert find_pipeline(str(file)) == file


def test_unknown_pipeline_names_the_known_ones(tmp_path: Path) -> None:
    write(tmp_path, SHORT, "one.yaml")
    write(tmp_path, SHORT.replace("name: orders", "name: 'flights'"), "two.yml")
    write(tmp_path, SHORT, "_draft.yaml")

    with pytest.raises(PipelineNotFound) as refused:
        find_pipeline("order", tmp_path)

    assert refused.value.known == "orders, flights"
    assert [file.name for file in pipeline_files(tmp_path)] == ["one.yaml", "two.yml"]


def test_missing_file_or_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(PipelineNotFound, match="no pipeline files"):
        load_pipeline(tmp_path / "none" / "x.yaml")


def test_name_that_two_files_say_is_the_first_ones(tmp_path: Path) -> None:
    second = write(tmp_path, SHORT, "b.yaml")
    first = write(tmp_path, SHORT, "a.yaml")

    found = dict(load_pipelines(tmp_path))

    assert find_pipeline("orders", tmp_path) == first
    assert claimants("orders", tmp_path) == (first, second)
    assert isinstance(found[first], PipelineConfig)
    assert isinstance(found[second], NameTaken)
    assert str(first) in str(found[second])
    assert str(second) in str(found[second])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("name: orders\ntarget: [", id="no YAML"),
        pytest.param("name: orders\n", id="keys missing"),
        pytest.param(SHORT.replace("iceberg", "icebreg"), id="unknown kind"),
    ],
)
@pytest.mark.parametrize("name", ["a_copy.yaml", "z_copy.yaml"], ids=["before", "after"])
def test_broken_file_that_says_a_name_does_not_stop_the_good_one(
    tmp_path: Path, name: str, text: str
) -> None:
    good = write(tmp_path, SHORT, "orders.yaml")
    broken = write(tmp_path, text, name)

    found = dict(load_pipelines(tmp_path))

    assert find_pipeline("orders", tmp_path) == good
    assert claimants("orders", tmp_path) == (good, broken)
    assert isinstance(found[good], PipelineConfig)
    assert isinstance(found[broken], ConfigInvalid)


@pytest.mark.parametrize("name", ["orders.yaml", "other.yaml"], ids=["same file name", "other"])
def test_name_in_a_comment_or_another_key_is_no_claim(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"# was\n# name: orders\n{SHORT.replace('name: orders', 'name: b')}", name)

    with pytest.raises(PipelineNotFound):
        find_pipeline("orders", tmp_path)


def test_file_with_a_name_is_looked_at_again_when_it_changed(tmp_path: Path) -> None:
    first = write(tmp_path, SHORT, "a.yaml")
    second = write(tmp_path, SHORT, "b.yaml")
    assert find_pipeline("orders", tmp_path) == first

    write(tmp_path, SHORT.replace("name: orders", "name: another"), "a.yaml")

    assert find_pipeline("orders", tmp_path) == second


def test_pipeline_with_no_good_file_is_its_broken_one(tmp_path: Path) -> None:
    broken = write(tmp_path, "name: orders\n", "a.yaml")

    assert find_pipeline("orders", tmp_path) == broken


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "source: {}\n"], ids=["empty", "list", "none"])
def test_file_without_a_name_is_found_by_that_of_the_file_to_say_its_own_mistake(
    tmp_path: Path, text: str
) -> None:
    nameless = write(tmp_path, text, "x.yaml")

    found = find_pipeline("x", tmp_path)

    assert found == nameless
    with pytest.raises(ConfigInvalid):
        load_pipeline(found)


def test_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    good = write(tmp_path, SHORT, "orders.yaml")

    with pytest.raises(ConfigInvalid, match=r"a\.yaml:1: .*cannot be read: Is a directory"):
        load_pipeline(tmp_path / "a.yaml")
    assert find_pipeline("orders", tmp_path) == good


def test_folder_that_may_not_be_listed_is_refused(tmp_path: Path) -> None:
    tmp_path.parent.chmod(0o755)
    tmp_path.parent.parent.chmod(0o755)
    write(tmp_path, SHORT)
    tmp_path.chmod(0)

    def look() -> None:
        with pytest.raises(StorageDenied, match="Permission denied"):
            pipeline_files(tmp_path)
        with pytest.raises(ConfigInvalid, match="Permission denied"):
            load_pipeline(tmp_path / "orders.yaml")

    as_nobody(look)


def test_source_mapping_is_read_without_a_file() -> None:
    source = read_source({"kind": "iceberg", "metadata": "/t", "read_schema": "snapshot"})

    assert source.metadata == "/t"
    assert source.read.read_schema == "snapshot"


def test_source_mapping_with_a_mistake_names_the_key() -> None:
    with pytest.raises(
        ConfigInvalid, match=r"`source\.tabel`: unknown key; did you mean 'table'\?"
    ):
        read_source({"kind": "iceberg", "tabel": "a.b.c", "metadata": "/t"})


def test_importing_the_configuration_loads_nothing_heavy() -> None:
    script = (
        "import sys, tidegate.config; "
        "print([name for name in ('pyarrow', 'pandas', 'sqlalchemy', 'pyspark', 'pyiceberg')"
        " if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
