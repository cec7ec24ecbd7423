"""What `check` passes is loaded and published; what a load or a gate would refuse, it finds."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from small_lake import merged
from tidegate.cli import pipeline_checks
from tidegate.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

DAY = datetime(2026, 2, 1, 12, tzinfo=UTC)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def lines(result: Result) -> dict[str, dict[str, str]]:
    """Give the lines about the pipeline, by what they are about."""
    found = json.loads(result.stdout)["lines"]
    return {
        line["subject"].removeprefix("orders: "): line
        for line in found
        if line["subject"].startswith("orders") and line["outcome"] != "note"
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one file."""
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "pipelines"))
    (tmp_path / "raw").mkdir()
    (tmp_path / "pipelines").mkdir()
    columns = {
        "id": [1, 2],
        "at": pa.array([DAY, DAY], pa.timestamp("us", "UTC")),
        "said_at": ["2026-02-01", "?"],
        "epoch": [1_769_000_000, 1_769_000_001],
        "nano": [1_769_000_000 * 10**9, 1_769_000_001 * 10**9],
        "number": [1, 7],
        "gone": pa.nulls(2, pa.int64()),
        "amount": [1.0, 2.0],
        "place": [{"city": "a"}, {"city": "b"}],
    }
    pq.write_table(pa.table(columns), tmp_path / "raw" / "a.parquet")
    return tmp_path


def write(root: Path, keys: dict[str, Any]) -> None:
    usual = {
        "name": "orders",
        "source": {"kind": "files", "path": f"{root}/raw"},
        "event_time": "at",
        "target": {"path": f"{root}/published", "partition_by": {"dt": "day(at)"}},
        "execute": {"engine": "local"},
    }
    asked = merged(usual, keys)
    # Keys of a partitioning replace each other.
    by = keys.get("target", {}).get("partition_by")
    asked["target"]["partition_by"] = by or usual["target"]["partition_by"]
    (root / "pipelines" / "orders.yaml").write_text(json.dumps(asked, indent=1))


def rule(where: str) -> dict[str, Any]:
    return {"rows": [{"name": "r", "where": where, "on_failure": "quarantine"}]}


REFUSED_BY_A_LOAD = {
    "no event time": {"event_time": "nowhere"},
    "event time of text": {"event_time": "said_at"},
    "no partition column": {"target": {"partition_by": {"dt": "day(at)", "r": "region"}}},
    "day of text": {"target": {"partition_by": {"dt": "day(said_at)"}}},
    "struct": {"target": {"partition_by": {"dt": "day(at)", "p": "place"}}},
    "SQL": rule("amount >"),
    "unknown column of a rule": rule("amountt > 1"),
    "unknown column of the filter": {"source": {"read": {"filter": "regions = 'x'"}}},
}


LINES = {
    "no event time": 7,
    "event time of text": 7,
    "no partition column": 12,
    "day of text": 11,
    "struct": 12,
    "SQL": 20,
    "unknown column of a rule": 20,
    "unknown column of the filter": 7,
}
"""Where the key is; a file has one key a line."""


@pytest.mark.parametrize("name", REFUSED_BY_A_LOAD)
def test_check_finds_what_a_load_refuses(root: Path, name: str) -> None:
    write(root, REFUSED_BY_A_LOAD[name])

    checked = run("check", "orders", "--json")
    assert not (root / "published").exists()
    loaded = run("load", "orders", "--json")

    assert (checked.exit_code, loaded.exit_code == 0) == (1, False)
    line = lines(checked)["rows"]
    message = json.loads(loaded.stdout)["error"]["message"]
    assert line["outcome"] == "problem"
    at = f"{root}/pipelines/orders.yaml:{LINES[name]}: "
    assert at + message == ". ".join(filter(None, (line["found"], line["remedy"])))
    assert ("; the nearest is 'amount'" in message) is (name == "unknown column of a rule")


def test_check_finds_every_mistake_at_once(root: Path) -> None:
    suite = root / "suite.json"
    checks = [SUITES[name][0] for name in ("unknown", "arguments", "column", "good")]
    suite.write_text(json.dumps({"name": "s", "expectations": checks}))
    keys = merged(REFUSED_BY_A_LOAD["no partition column"], {"gate": {"suite": str(suite)}})
    rules = [
        {"name": name, "where": where, "on_failure": "warn"}
        for name, where in (("a", "amount >"), ("b", "amountt > 1"))
    ]
    write(
        root,
        {**keys, "event_time": "nowhere", "rows": rules},
    )

    checked = run("check", "orders", "--json")

    said = [
        (item["subject"].removeprefix("orders: "), item["found"])
        for item in json.loads(checked.stdout)["lines"]
        if item["outcome"] == "problem"
    ]
    expected = [
        ("rows", "region"),
        ("rows", "amount >"),
        ("rows", "amountt"),
        ("rows", "nowhere"),
        ("suite", "expect_unicorns"),
        ("suite", "minimum"),
        ("suite", "amount_"),
    ]
    assert [subject for subject, _ in said] == [subject for subject, _ in expected]
    assert all(word in found for (_, found), (_, word) in zip(said, expected, strict=True)), said


def expectation(kind: str, **keys: Any) -> dict[str, Any]:
    return {"type": kind, "kwargs": keys}


SUITES = {
    "unknown": (expectation("expect_unicorns"), "expect_unicorns"),
    "arguments": (
        expectation("expect_column_values_to_be_between", column="amount", minimum=1),
        "minimum",
    ),
    "column": (
        expectation("expect_column_values_to_not_be_null", column="amount_"),
        "did you mean 'amount'?",
    ),
    "broken pattern": (
        expectation("expect_column_values_to_match_regex", column="said_at", regex="(["),
        "regular expression",
    ),
    "number for text": (
        expectation("expect_column_values_to_be_between", column="said_at", min_value=1),
        "min_value",
    ),
    "time for a number": (
        expectation("expect_column_max_to_be_between", column="amount", max_value="2026-01-01"),
        "max_value",
    ),
    "mean of text": (
        expectation("expect_column_mean_to_be_between", column="said_at", min_value=1),
        "of which there is no mean",
    ),
    "mean of a key": (
        expectation("expect_column_mean_to_be_between", column="dt", min_value=1),
        "of which there is no mean",
    ),
    "number for a time": (
        expectation("expect_column_min_to_be_between", column="at", min_value=1),
        "expected a time",
    ),
    "number in quotes": (
        expectation("expect_column_max_to_be_between", column="amount", max_value="9"),
        None,
    ),
    "good": (expectation("expect_column_values_to_not_be_null", column="dt"), None),
}


@pytest.mark.parametrize("name", SUITES)
def test_check_finds_what_a_gate_refuses(root: Path, name: str) -> None:
    check, problem = SUITES[name]
    suite = root / "suite.json"
    suite.write_text(json.dumps({"name": "s", "expectations": [check]}))
    write(root, {"gate": {"suite": str(suite)}, "commit": {"trigger": "process-time"}})

    checked = run("check", "orders", "--json")
    run("load", "orders")
    published = run("publish", "orders", "--json")

    line = lines(checked)["suite"]
    (outcome,) = json.loads(published.stdout)["outcomes"]
    assert (line["outcome"] == "ok") is (outcome["state"] == "committed") is (problem is None)
    explained = run("explain", "orders", "dt=2026-02-01")
    passed = re.search("Gate of revision 1.*passed", explained.output, re.DOTALL)
    assert (passed is not None) is (problem is None)
    if problem:
        assert problem in line["found"]
        assert problem in outcome["error"] or "could not be run" in outcome["error"]


def test_check_knows_a_policy_that_cannot_be_opened(root: Path) -> None:
    policies = [{"custom": "nowhere:Thing"}, "success-file"]
    write(root, {"commit": {"policies": policies, "trigger": "process-time"}})

    checked = run("check", "orders", "--json")
    run("load", "orders")
    published = run("publish", "orders", "--json")

    line = lines(checked)["policies"]
    (outcome,) = json.loads(published.stdout)["outcomes"]
    assert (line["outcome"], outcome["state"]) == ("problem", "failed")
    assert outcome["error"].startswith(line["found"])


@pytest.mark.parametrize("schedule", ["61 * * * *", "0 2 31 2 *", "H * * * *"])
def test_check_refuses_a_schedule_that_names_no_time(root: Path, schedule: str) -> None:
    write(root, {"dag": {"schedule": schedule}})

    checked = run("check", "orders", "--json")

    assert checked.exit_code == 1
    (line,) = lines(checked).values()
    assert "`dag.schedule`" in line["found"]


@pytest.mark.follows("PartitionTimeUnnamed")
@pytest.mark.parametrize(
    "remedy",
    [
        {"commit": {"trigger": "process-time"}},
        {"target": {"partition_by": {"dt": "day(at)", "id": "id"}}},
    ],
    ids=["process-time", "day"],
)
def test_check_refuses_partitions_that_would_wait_for_ever(
    root: Path, remedy: dict[str, Any]
) -> None:
    wrong = {"target": {"partition_by": {"id": "id"}}}
    write(root, wrong)
    checked = run("check", "orders", "--json")
    assert "process-time" in lines(checked)["rows"]["remedy"]
    assert run("load", "orders").exit_code == 0
    waiting = json.loads(run("publish", "orders", "--json").stdout)["outcomes"]
    assert {item["why"]["reason"] for item in waiting} == {"TIME_UNPARSABLE"}
    assert all("`commit.trigger: process-time`" in item["why"]["detail"] for item in waiting)

    (root / "home").rename(root / "home-before")
    (root / "published").rename(root / "published-before")
    (root / ".tidegate-published").rename(root / "work-before")
    write(root, merged(wrong, remedy) if "commit" in remedy else remedy)
    assert lines(run("check", "orders", "--json"))["rows"]["outcome"] == "ok"
    assert run("load", "orders").exit_code == 0
    found = json.loads(run("publish", "orders", "--json").stdout)["outcomes"]
    assert {(item["state"], item["why"] and item["why"]["reason"]) for item in found} <= {
        ("committed", None),
        ("pending", "WATERMARK_BEHIND"),
    }


def test_check_accepts_a_directory_without_files_as_a_load_does(root: Path) -> None:
    (root / "raw" / "a.parquet").unlink()
    suite = root / "suite.json"
    check = expectation("expect_column_values_to_not_be_null", column="amount")
    suite.write_text(json.dumps({"name": "s", "expectations": [check]}))
    write(root, {"source": {"read": {"filter": "amount > 1"}}, "gate": {"suite": str(suite)}})

    checked = run("check", "orders", "--json")

    assert {line["outcome"] for line in lines(checked).values()} == {"ok"}
    assert "there is no file in" in checked.stdout
    assert "Nothing to load" in run("load", "orders").output


@pytest.mark.parametrize("keys", [{}, {"partition_by": {"region": "string"}}], ids=["", "keys"])
def test_check_says_that_no_path_matches_as_a_load_finds_nothing(
    root: Path, keys: dict[str, Any]
) -> None:
    write(root, {"source": {"path_regex": "nothing", **keys}})

    checked = run("check", "orders", "--json")

    assert checked.exit_code == 0
    assert "matches `source.path_regex: nothing`" in checked.stdout
    assert "Nothing to load" in run("load", "orders").output


@pytest.mark.follows("FileOfOtherFormat")
def test_folder_of_another_format_is_told_by_init_and_refused_by_check_and_load(root: Path) -> None:
    (root / "raw" / "a.parquet").rename(root / "b.parquet")
    orc.write_table(pa.table({"id": [1]}), root / "raw" / "a.orc")
    write(root, {})

    said = [
        run("init", "--from", str(root / "raw"), "--out", str(root / "new.yaml")),
        run("check", "orders"),
        run("load", "orders"),
    ]

    assert said[0].exit_code == 0
    assert yaml.safe_load((root / "new.yaml").read_text())["source"]["format"] == "orc"
    refusal = "a.orc: expected a file of `source.format: parquet`"
    assert all(refusal in " ".join(it.output.split()) for it in said[1:])
    assert [result.exit_code for result in said[1:]] == [1, 1]
    (root / "b.parquet").rename(root / "raw" / "a.parquet")
    write(root, {"source": {"path_regex": ".*[.]parquet"}})
    assert run("check", "orders").exit_code == 0
    assert run("load", "orders").exit_code == 0


def test_check_accepts_a_number_that_a_formatter_reads_as_a_day(root: Path) -> None:
    rows = pa.table({"at": pa.array([DAY], pa.timestamp("us", "UTC")), "dt": [20260201]})
    pq.write_table(rows, root / "raw" / "a.parquet")
    time = {"formatter": "yyyyMMdd", "interval": "1d"}
    target = {"partition_by": {"dt": "dt"}}
    write(root, {"target": target, "commit": {"partition_time": time}})

    checked = run("check", "orders", "--json")
    run("load", "orders")
    (outcome,) = json.loads(run("publish", "orders", "--json").stdout)["outcomes"]

    assert lines(checked)["rows"]["outcome"] == "ok"
    assert outcome["why"]["reason"] == "WATERMARK_BEHIND"


def test_remedy_of_a_check_names_the_pipeline_as_it_was_asked_for(
    root: Path, tmp_path: Path
) -> None:
    write(root, {"source": {"start": {"after": "nowhere"}}})
    inside = root / "pipelines" / "orders.yaml"
    outside = tmp_path / "orders.yaml"

    by_name = lines(run("check", "orders", "--json"))["source"]["remedy"]
    inside.rename(outside)
    by_file = lines(run("check", str(outside), "--json"))["source"]["remedy"]

    assert "`tidegate instants orders`" in by_name
    assert f"`tidegate instants {outside}`" in by_file


def test_source_that_cannot_be_read_is_told_once(root: Path) -> None:
    write(root, {"source": {"path": f"{root}/nowhere"}})

    checked = run("check", "orders", "--json")

    problems = [name for name, line in lines(checked).items() if line["outcome"] == "problem"]
    assert problems == ["source"]


@pytest.mark.follows("PlaceUnwritable")
@pytest.mark.parametrize("place", ["/proc/x/y", "/sys/x"])
def test_check_refuses_a_target_that_nobody_can_make(root: Path, place: str) -> None:
    write(root, {"target": {"path": place}})

    line = lines(run("check", "orders", "--json"))["target"]

    assert line["outcome"] == "problem"
    assert "which the kernel fills" in line["found"]
    assert line["remedy"] == "Set `target.path` to a place on another file system."
    write(root, {})
    assert lines(run("check", "orders", "--json"))["target"]["outcome"] == "ok"
    assert not (root / "published").exists()
    assert run("load", "orders").exit_code == 0
    write(root, {"name": "too", "target": {"path": place}})
    assert run("load", "too").exit_code == 1


SECONDS = 1_769_000_001
IN_SECONDS = "and in s it is 2026-01-21 12:53:2"


@pytest.mark.parametrize("wrong", ["us", "ms", "ns"])
def test_numbers_of_another_unit_are_told_by_check_load_and_explain(root: Path, wrong: str) -> None:
    write(root, of_numbers("epoch", wrong))

    checked = json.loads(run("check", "orders", "--json").stdout)["lines"]
    loaded = json.loads(run("load", "orders", "--json").stdout)
    explained = json.loads(run("explain", "orders", "dt=2026-02-01", "--json").stdout)

    (note,) = [line for line in checked if line["outcome"] == "note" and "epoch" in line["found"]]
    assert str(SECONDS) in note["found"]
    assert IN_SECONDS in note["found"]
    assert note["remedy"] == "Set `event_time.unit: s` if that is right."
    assert [IN_SECONDS in text for text in loaded["notes"]] == [True]
    assert "another `event_time.unit`" in explained["report"]["why"]["detail"]


@pytest.mark.parametrize(
    ("column", "unit", "likely"),
    [("epoch", "s", None), ("nano", "us", "ns"), ("nano", "s", "ns"), ("nano", "ns", None),
     ("number", "us", None), ("gone", "s", None)],
)  # fmt: skip
def test_check_names_a_unit_only_if_it_makes_likely_times(
    root: Path, column: str, unit: str, likely: str | None
) -> None:
    write(root, of_numbers(column, unit))

    checked = json.loads(run("check", "orders", "--json").stdout)["lines"]

    said = [line["remedy"] for line in checked if "no likely time" in line["found"]]
    assert said == ([f"Set `event_time.unit: {likely}` if that is right."] if likely else [])


def of_numbers(column: str, unit: str) -> dict[str, Any]:
    """Give keys of a pipeline whose event times are whole numbers; its partitions are days."""
    by = {"target": {"partition_by": {"dt": "said_at"}}}
    return {"event_time": {"column": column, "unit": unit}, **by}


def test_check_says_how_whole_numbers_are_read(root: Path) -> None:
    write(root, {"event_time": {"column": "epoch", "unit": "s"}})

    checked = run("check", "orders", "--json")

    assert "epoch of type int64, in s since 1970" in lines(checked)["rows"]["found"]


@pytest.mark.follows("TargetShared")
@pytest.mark.parametrize("other", ["published", "published/below", "linked"])
def test_check_finds_another_file_with_the_same_target_before_either_is_loaded(
    root: Path, other: str
) -> None:
    (root / "linked").symlink_to(root / "published")
    write(root, {})
    second = {"name": "orders_too", "target": {"path": str(root / other), "work": f"{root}/work"}}
    write_second(root, second)

    for name, target in (("orders", "published"), ("orders_too", other)):
        result = run("check", name, "--json")
        line = target_line(result, name)
        assert (result.exit_code, line["outcome"]) == (1, "problem")
        assert line["found"].startswith(f"{root}/{target}: the pipeline 'orders")

    write_second(root, {"name": "orders_too", "target": {"path": f"{root}/beside"}})
    assert run("check").exit_code == 0
    write_second(root, second)
    assert run("load", "orders").exit_code == 0
    assert target_line(run("check", "orders", "--json"), "orders")["outcome"] == "ok"
    assert "TargetOwned" in run("load", "orders_too").output
    assert (
        "belongs to pipeline 'orders'"
        in target_line(run("check", "orders_too", "--json"), "orders_too")["found"]
    )


def test_check_finds_another_file_with_the_same_work_directory(root: Path) -> None:
    write(root, {"target": {"work": f"{root}/work"}})
    write_second(
        root, {"name": "too", "target": {"path": f"{root}/elsewhere", "work": f"{root}/work"}}
    )

    line = target_line(run("check", "too", "--json"), "too")

    assert line["outcome"] == "problem"
    assert "another `target.work`" in line["remedy"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"target": {"work": "@/published/w"}}, "published, the table of pipeline 'orders'"),
        ({"target": {"work": "@/published"}}, "published, the table of pipeline 'orders'"),
        ({"target": {"path": "@/desk/t"}}, "desk, the work directory of pipeline 'orders'"),
        (
            {"commit": {"late_data": {"side": {"path": "@/published/late"}}}},
            "published, which belongs to pipeline 'orders'",
        ),
    ],
    ids=["work in a table", "work is a table", "target in work", "late in a table"],
)
def test_check_and_load_refuse_a_place_inside_a_directory_of_another_pipeline(
    root: Path, keys: dict[str, Any], said: str
) -> None:
    write(root, {"target": {"work": f"{root}/desk"}})
    assert run("load", "orders").exit_code == 0
    assert run("publish", "orders").exit_code in {0, 3}
    usual = {"name": "too", "target": {"path": f"{root}/beside", "work": f"{root}/.too"}}
    write_second(root, merged(usual, json.loads(json.dumps(keys).replace("@", str(root)))))

    checked, loaded = run("check", "too", "--json"), run("load", "too", "--json")

    assert target_line(checked, "too")["outcome"] == "problem"
    assert f"{root}/{said}" in target_line(checked, "too")["found"]
    assert f"{root}/{said}" in json.loads(loaded.stdout)["error"]["message"]
    write_second(root, usual)
    assert run("check", "too").exit_code == 0
    assert run("load", "too").exit_code == 0


def test_check_passes_targets_side_by_side(root: Path) -> None:
    write(root, {})
    write_second(root, {"name": "too", "target": {"path": f"{root}/published_too"}})

    assert run("check").exit_code == 0


def write_second(root: Path, keys: dict[str, Any]) -> None:
    """Write a second pipeline file beside the first, which has some keys changed."""
    first = json.loads((root / "pipelines" / "orders.yaml").read_text())
    text = json.dumps(merged(first | {"target": dict(first["target"])}, keys))
    (root / "pipelines" / "second.yaml").write_text(text)


def target_line(result: Result, name: str) -> dict[str, str]:
    found = json.loads(result.stdout)["lines"]
    return next(line for line in found if line["subject"] == f"{name}: target")


@pytest.mark.parametrize("wrong", ["folder", "text", "cut"])
def test_file_that_a_load_refuses_is_found(root: Path, wrong: str) -> None:
    folder = root / "folders" / "region=eu"
    shutil.copytree(root / "raw", folder)
    source = {"path": f"{root}/folders", "partition_by": {"region": "string"}}
    write(root, {"source": source})
    checked = lines(run("check", "orders", "--json"))["load"]
    assert (checked["outcome"], checked["subject"]) == ("ok", "orders: load")
    assert not (root / "published").exists()

    whole = (folder / "a.parquet").read_bytes()
    if wrong == "folder":
        shutil.copytree(folder, folder.with_name("region=__HIVE_DEFAULT_PARTITION__"))
    else:
        (folder / "b.parquet").write_bytes(b"text" if wrong == "text" else whole[:-20])
    problem = lines(run("check", "orders", "--json"))["load"]
    refused = json.loads(run("load", "orders", "--json").stdout)["error"]

    assert problem["outcome"] == "problem"
    assert refused["message"].replace("PIPELINE", "orders").endswith(problem["remedy"])


def test_metastore_that_says_nothing_is_told_and_not_waited_for_as_a_commit_does(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_checks, "_METASTORE_SECONDS", 1.0)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        place = f"thrift://127.0.0.1:{server.getsockname()[1]}"
        metastore = {"uri": place, "table": "shop.orders"}
        policies = ["metastore", "success-file"]
        write(root, {"target": {"metastore": metastore}, "commit": {"policies": policies}})

        found = lines(run("check", "orders", "--json"))

    assert (
        "answers nothing, for 1 s; it is busy, or may be no metastore" in found["commit"]["found"]
    )
