"""Completeness on real files: counts, calendar, approval, a closed source, and every reason."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, decide, load, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.cli.output import NOTHING
from tidegate.errors import CountsUnreadable, NotApproved, SourceBacklog
from tidegate.model.publication import Outcome, Override
from tidegate.model.watermark import Reason
from tidegate.pipeline.publish.counting import FRESH

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tidegate.pipeline import Pipeline

WORD = Override("ada", NOW, "the source is closed")
ABSENT = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1},
          "severity": "critical"}  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def counting(lake: SmallLake, counts: dict[int, int], **said: Any) -> None:
    """Let the pipelines of a lake compare with these counts."""
    path = lake.root / "counts.csv"
    lines = [f"2026-02-{number:02d},{rows}" for number, rows in counts.items()]
    path.write_text("\n".join(["dt,rows", *lines]))
    lake.keys = {"commit": {"counts": {"file": str(path)}, **said}}


def expecting(lake: SmallLake, on_empty: str, **said: Any) -> None:
    lake.keys = {"commit": {"expected": {"start": "2026-02-01", "on_empty": on_empty}, **said}}


def suite(lake: SmallLake, *expectations: dict[str, Any]) -> dict[str, Any]:
    path = lake.root / "suite.json"
    path.write_text(json.dumps({"name": "orders", "expectations": list(expectations)}))
    return {"suite": str(path)}


def states(pipeline: Pipeline) -> dict[str, str]:
    """Return the state of every partition, as `status` shows it."""
    report = pipeline.status(NOW)
    assert report is not None
    return {str(item.state.partition)[-2:]: item.name for item in report.partitions}


def reasons(pipeline: Pipeline, number: int) -> tuple[Reason, ...]:
    why = pipeline.ledger.partitions.get(day(number)).why
    return why.reasons if why else ()


def typed(line: str) -> Result:
    return CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)


def test_load_evaluates_every_pending_partition_whether_it_touched_it_or_not(
    lake: SmallLake,
) -> None:
    """PC-T01."""
    lake.commit({1: 1, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    assert reasons(pipeline, 2) == (Reason.WATERMARK_BEHIND,)
    lake.commit({4: 1})
    load(pipeline)

    why = pipeline.ledger.partitions.get(day(2)).why
    assert why is not None
    assert (why.committable, why.reasons) == (True, ())


def test_partition_waits_for_its_counts_and_is_published_with_its_last_row(
    lake: SmallLake,
) -> None:
    lake.commit({1: 3, 2: 1})
    counting(lake, {1: 4, 3: 0})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    assert lake.ids() == {}
    assert reasons(pipeline, 1) == (Reason.COUNT_SHORT,)
    assert reasons(pipeline, 2) == (Reason.WATERMARK_BEHIND, Reason.COUNT_UNKNOWN)

    lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": [1, 2, 3, 5]}


@pytest.mark.follows("CountsUnreadable")
def test_counts_that_cannot_be_read_let_only_wait_and_the_corrected_place_helps(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.commit({1: 3, 2: 1})
    counting(lake, {1: 3})
    wrong = {"commit": {"counts": {"file": str(lake.root / "nothing.csv")}}}
    pipeline = lake.pipeline(**wrong)
    load(pipeline)
    outcomes = publish(pipeline)
    assert [item.state for item in outcomes] == ["pending", "pending"]
    assert reasons(pipeline, 1) == (Reason.COUNT_UNKNOWN,)
    said = pipeline.config.commit.counts
    assert said is not None
    with pytest.raises(CountsUnreadable, match=r"Correct `commit\.counts`"):
        pipeline.upstream.read(said)
    assert "there is no such file" in " ".join(typed("tidegate check orders").stdout.split())

    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": [1, 2, 3]}
    assert "counts of 1 partition" in typed("tidegate check orders").stdout


@pytest.mark.parametrize(
    "written",
    [
        {"dt": ["2026-02-01"], "rows": 3},
        {"dt": {"day": "2026-02-01"}, "rows": 3},
        {"dt": "01.02.2026", "rows": 3},
        {"dt": "2026-02-01", "rows": [3]},
        {"dt": "2026-02-01", "rows": -3},
        {"dt": "2026-02-01", "rows": 3.5},
        {"dt": "2026-02-01", "rows": True},
        {"dt": "2026-02-01", "rows": 10**30},
    ],
    ids=lambda written: json.dumps(written),
)
def test_counts_of_another_form_let_only_wait_and_every_command_goes_on(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, written: dict[str, Any]
) -> None:
    lake.found_by_name(monkeypatch)
    lake.commit({1: 3, 2: 1})
    counts = lake.root / "counts.json"
    counts.write_text(json.dumps([written]))
    pipeline = lake.pipeline(commit={"counts": {"file": str(counts)}})
    load(pipeline)
    assert reasons(pipeline, 1) == (Reason.COUNT_UNKNOWN,)
    for line in ("tidegate load orders", "tidegate publish orders"):
        assert typed(line).exit_code == NOTHING
    assert "2026-02-01" in typed("tidegate status orders").stdout
    said = " ".join(typed("tidegate check orders").stdout.split())
    assert "cannot be read: expected" in said
    assert str(counts) in said.replace(" ", "")

    counts.write_text('[{"dt": "2026-02-01", "rows": 3}]')
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": [1, 2, 3]}


def test_person_who_names_a_partition_overrules_trigger_and_counts_and_both_are_kept(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.commit({1: 3})
    counting(lake, {1: 4})
    load(lake.pipeline())

    assert typed("tidegate publish orders dt=2026-02-01 --final -m 'one is lost'").exit_code == 0

    marker = json.loads((lake.target / "dt=2026-02-01" / "_SUCCESS").read_text())
    assert "WATERMARK_BEHIND: " in marker["override"]["overruled"]
    assert "COUNT_SHORT: 3 of 4 rows" in marker["override"]["overruled"]


def test_explain_shows_one_state_and_every_failing_condition(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PC-C01, C07."""
    lake.found_by_name(monkeypatch)
    lake.commit({1: 3})
    counting(lake, {1: 4}, require=["trigger", "counts", "gate", "approval"])
    lake.keys["gate"] = suite(lake)
    load(lake.pipeline())

    told = json.loads(typed("tidegate explain orders dt=2026-02-01 --json").stdout)
    text = typed("tidegate explain orders dt=2026-02-01").stdout

    assert told["report"]["name"] == "pending"
    assert [(it["name"], it["holds"]) for it in told["evaluation"]["conditions"]] == [
        ("trigger", False), ("counts", False), ("gate", None), ("approval", None),
    ]  # fmt: skip
    assert told["evaluation"]["conditions"][1]["inputs"] == {
        "rows": 3, "upstream": 4, "threshold": 0.999,
    }  # fmt: skip
    assert "WATERMARK_BEHIND" in text
    assert "COUNT_SHORT" in text


@pytest.mark.parametrize("asked", [["gate"], ["approval"], ["gate", "approval"]])
def test_explain_of_a_held_partition_lists_what_held_before_the_gate(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    """PC-C01."""
    lake.found_by_name(monkeypatch)
    lake.commit({1: 3, 2: 1})
    counting(lake, {1: 3}, require=["trigger", "counts", *asked])
    if "gate" in asked:
        lake.keys["gate"] = suite(lake, {**ABSENT, "kwargs": {"min_value": 9}})
    load(lake.pipeline())
    assert {item.state for item in publish(lake.pipeline())} == {"held", "pending"}

    told = json.loads(typed("tidegate explain orders dt=2026-02-01 --json").stdout)
    text = typed("tidegate explain orders dt=2026-02-01").stdout

    assert [(it["name"], it["holds"]) for it in told["report"]["why"]["conditions"]] == [
        ("trigger", True), ("counts", True), *((name, False) for name in asked),
    ]  # fmt: skip
    assert "3 of 3 rows upstream" in " ".join(text.split())


@pytest.mark.parametrize("gated", [False, True])
def test_every_revision_waits_for_a_person(lake: SmallLake, gated: bool) -> None:
    """PC-C06."""
    require = ["trigger", *(["gate"] if gated else []), "approval"]
    lake.keys = {"commit": {"require": require}} | ({"gate": suite(lake, ABSENT)} if gated else {})
    for revision in (1, 2):
        lake.commit({1: 1, 2: 1})
        pipeline = lake.pipeline()
        load(pipeline)
        outcomes = {item.partition: item for item in publish(pipeline)}
        assert outcomes[day(1)].state == "held"
        assert reasons(pipeline, 1) == (Reason.APPROVAL_MISSING,)
        assert len(lake.ids()) == revision - 1

        decide(pipeline, day(1))
        publish(pipeline)

        assert pipeline.ledger.partitions.get(day(1)).revision == revision


def test_failed_gate_is_told_beside_the_missing_approval(lake: SmallLake) -> None:
    few = {**ABSENT, "kwargs": {"min_value": 9}}
    lake.keys = {
        "commit": {"require": ["trigger", "gate", "approval"]}, "gate": suite(lake, few),
    }  # fmt: skip
    lake.commit({1: 1, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)

    assert reasons(pipeline, 1) == (Reason.GATE_FAILED, Reason.APPROVAL_MISSING)


def test_revision_that_passed_before_approval_was_required_is_not_committed(
    lake: SmallLake,
) -> None:
    lake.commit({1: 1, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    proposal = pipeline.propose(day(1), "cli", NOW)
    assert proposal is not None
    assert pipeline.gate(day(1), proposal.digest, "cli", NOW).outcome is Outcome.PASS

    asking = lake.pipeline(commit={"require": ["trigger", "approval"]})
    with pytest.raises(NotApproved):
        asking.commit(day(1), proposal.digest, "cli", NOW)
    assert asking.gate(day(1), proposal.digest, "cli", NOW).outcome is Outcome.HOLD

    assert lake.ids() == {}


def test_expected_day_without_rows_gets_a_marker_without_files(lake: SmallLake) -> None:
    """PC-C04."""
    expecting(lake, "mark")
    kwargs = {"column": "id"}
    whole = {"type": "expect_column_values_to_not_be_null", "kwargs": kwargs}
    lake.keys["gate"] = suite(lake, {**whole, "severity": "critical"})
    lake.commit({2: 1, 4: 1})
    pipeline = lake.pipeline()
    announced = load(pipeline)
    publish(pipeline)

    assert announced.expected == (day(1), day(3))
    assert lake.ids() == {"dt=2026-02-01": [], "dt=2026-02-02": [1], "dt=2026-02-03": []}
    marker = json.loads((lake.target / "dt=2026-02-03" / "_SUCCESS").read_text())
    assert (marker["revision"], marker["rows"], marker["files"]) == (1, 0, [])
    assert read_committed(lake.target).to_table().num_rows == 1
    assert list(pipeline.findings()) == []
    assert load(lake.pipeline()).expected is None

    late = lake.commit({3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-03"] == late
    assert pipeline.ledger.partitions.get(day(3)).revision == 2


def test_lost_ledger_is_restored_with_the_days_that_had_no_rows(lake: SmallLake) -> None:
    expecting(lake, "mark")
    lake.commit({2: 1, 4: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    before = {state.partition: state.revision for state in lake.pipeline().ledger.partitions.all()}
    stamps = lake.stamps()
    (lake.root / "ledger.db").unlink()

    again = lake.pipeline()
    again.restore_ledger()
    publish(again)

    assert {it.partition: it.revision for it in again.ledger.partitions.all()} == before
    assert lake.stamps() == stamps
    assert list(again.findings()) == []


def test_marker_of_an_expected_day_of_text_tells_the_columns_of_the_others(
    lake: SmallLake,
) -> None:
    expecting(lake, "mark")
    lake.commit({1: 1, 3: 1, 4: 1})
    pipeline = lake.pipeline(target={"format": "json"})
    load(pipeline)
    publish(pipeline)

    markers = [
        json.loads((lake.target / f"dt=2026-02-0{number}" / "_SUCCESS").read_text())
        for number in (1, 2)
    ]

    assert [bool(marker["files"]) for marker in markers] == [True, False]
    assert markers[1]["reading"] == markers[0]["reading"]


def test_expected_day_whose_counts_promise_rows_is_no_empty_one(
    lake: SmallLake, caplog: pytest.LogCaptureFixture
) -> None:
    counting(lake, {1: 5, 2: 1, 3: 0}, expected={"start": "2026-02-01", "on_empty": "mark"})
    lake.commit({2: 1, 4: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    for _ in range(2):
        pipeline.review(NOW)

    assert set(lake.ids()) == {"dt=2026-02-02", "dt=2026-02-03"}
    assert reasons(pipeline, 1) == (Reason.COUNT_SHORT,)
    told = [it.getMessage() for it in caplog.records if "expected and due" in it.getMessage()]
    assert told == [
        "orders: dt=2026-02-01: expected and due, and not published: COUNT_SHORT: 0 of 5 rows "
        "upstream, 0.0 %; 99.9 % are needed"
    ]


def test_missing_day_is_told_once_and_shown_until_its_rows_come(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake.found_by_name(monkeypatch)
    expecting(lake, "alarm")
    lake.commit({1: 1, 3: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    for _ in range(2):
        publish(pipeline)
        pipeline.review(NOW)

    told = [it.getMessage() for it in caplog.records if "no row came" in it.getMessage()]
    assert told == ["orders: dt=2026-02-02: expected, and no row came for it"]
    assert states(pipeline) == {"01": "committed", "02": "missing", "03": "pending"}
    for command in ("status orders", "explain orders dt=2026-02-02"):
        shown = " ".join(typed(f"tidegate {command}").stdout.split())
        assert "no row came for it" in shown
    assert "missing" in typed("tidegate status").stdout
    assert lake.ids().keys() == {"dt=2026-02-01"}

    late = lake.commit({2: 1})
    load(pipeline)
    publish(pipeline)
    assert lake.ids()["dt=2026-02-02"] == late
    assert states(pipeline)["02"] == "committed"


def test_day_that_may_be_empty_is_left_alone(lake: SmallLake) -> None:
    expecting(lake, "ignore")
    lake.commit({1: 1, 3: 1})
    pipeline = lake.pipeline()
    load(pipeline)

    assert states(pipeline) == {"01": "pending", "03": "pending"}


def test_held_day_that_is_expected_raises_an_alarm_once(lake: SmallLake) -> None:
    expecting(lake, "ignore")
    lake.keys["gate"] = suite(lake, {**ABSENT, "kwargs": {"min_value": 9}})
    lake.commit({1: 1, 3: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)

    alarms = [pipeline.review(NOW).alarms for _ in range(2)]

    assert [len(told) for told in alarms] == [1, 0]
    assert "GATE_FAILED" in alarms[0][0]


def test_calendar_that_changed_is_read_from_its_beginning(lake: SmallLake) -> None:
    lake.keys = {"commit": {"expected": {"start": "2026-02-02", "on_empty": "mark"}}}
    lake.commit({3: 1, 4: 1})
    assert load(lake.pipeline()).expected == (day(2),)

    expecting(lake, "mark")
    publish(lake.pipeline())

    assert set(lake.ids()) == {"dt=2026-02-01", "dt=2026-02-02", "dt=2026-02-03"}


def test_two_reviews_at_once_make_each_day_known_once(lake: SmallLake) -> None:
    expecting(lake, "mark")
    lake.commit({1: 1, 5: 1})
    pipeline, other = lake.pipeline(), lake.pipeline()
    load(lake.pipeline(commit={"expected": None}))
    seen = pipeline.ledger.expected.position()
    first = other.review(NOW)
    again = pipeline.ledger.expected.know([], NOW, seen, replace_position(pipeline), None)

    assert first.marked == (day(2), day(3), day(4))
    assert again == ()
    assert pipeline.review(NOW).marked == ()


def replace_position(pipeline: Pipeline) -> Any:
    found = pipeline.ledger.expected.position()
    assert found is not None
    return replace(found, intervals=99)


def test_closed_source_publishes_everything_and_stores_no_watermark(lake: SmallLake) -> None:
    """PC-M09, W09."""
    expecting(lake, "mark", default_partition="at_end")
    lake.commit({1: 1, 3: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    before = pipeline.ledger.pipeline.get()

    outcomes = list(pipeline.publish_final("cli", NOW, WORD))

    assert [item.state for item in outcomes] == ["committed"] * 3
    assert set(lake.ids()) == {f"dt=2026-02-0{number}" for number in (1, 2, 3)}
    assert pipeline.ledger.pipeline.get().watermark == before.watermark
    overruled = {
        item.revision: item.override and item.override.overruled
        for item in pipeline.ledger.publications.revisions(day(3))
    }
    assert "WATERMARK_BEHIND" in str(overruled[1])
    (first,) = pipeline.ledger.publications.revisions(day(1))
    assert first.override is None


def test_closed_source_does_not_close_counts_or_what_has_no_time(lake: SmallLake) -> None:
    counting(lake, {1: 2})
    lake.commit({1: 1})
    pipeline = lake.pipeline()
    load(pipeline)

    (outcome,) = pipeline.publish_final("cli", NOW, WORD)

    assert outcome.state == "pending"
    assert outcome.why is not None
    # Not that the watermark is behind, which the person has overruled.
    assert outcome.why.reasons == (Reason.COUNT_SHORT,)
    assert lake.ids() == {}


@pytest.mark.follows("SourceBacklog")
def test_source_with_unloaded_changes_is_not_closed_and_the_remedy_helps(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.commit({1: 1})
    load(lake.pipeline())
    lake.commit({2: 1})
    with pytest.raises(SourceBacklog, match="found changes after") as refused:
        list(lake.pipeline().publish_final("cli", NOW, WORD))
    assert lake.ids() == {}

    lines = [part for part in str(refused.value).split("`") if part.startswith("tidegate")]
    assert [typed(line).exit_code for line in lines] == [0, 0]

    assert lake.ids() == {"dt=2026-02-01": [1], "dt=2026-02-02": [2]}


def test_partition_without_a_time_has_its_turn_after_a_while(lake: SmallLake) -> None:
    """PC-T17, at the boundary and one microsecond later."""
    pipeline = nameless(lake, {"after": "2d"})
    due = NOW + timedelta(days=2)

    (waits,) = publish(pipeline, now=due)
    (outcome,) = publish(pipeline, now=due + timedelta(microseconds=1))

    assert waits.why is not None
    assert (waits.why.reason, waits.why.due) == (Reason.DEFAULT_PARTITION, due)
    assert outcome.state == "committed"


def test_partition_without_a_time_is_never_due_by_itself(lake: SmallLake) -> None:
    pipeline = nameless(lake, "never")

    (open_source,) = publish(pipeline, now=NOW + timedelta(days=999))
    (closed,) = pipeline.publish_final("cli", NOW, WORD)

    assert (open_source.state, closed.state) == ("pending", "pending")


def test_partition_without_a_time_is_published_at_the_end(lake: SmallLake) -> None:
    pipeline = nameless(lake, "at_end")

    (open_source,) = publish(pipeline, now=NOW + timedelta(days=999))
    (closed,) = pipeline.publish_final("cli", NOW, WORD)

    assert (open_source.state, closed.state) == ("pending", "committed")


def nameless(lake: SmallLake, turn: Any) -> Pipeline:
    """Load a row whose day is not known."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (lake.root / "drop").mkdir()
    rows = {"id": [1], "at": pa.nulls(1, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), lake.root / "drop" / "a.parquet")
    lake.source = {"kind": "files", "path": str(lake.root / "drop")}
    lake.keys = {"commit": {"default_partition": turn}}
    pipeline = lake.pipeline()
    load(pipeline)
    return pipeline


def test_counts_are_read_once_for_a_round(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    counting(lake, {1: 1, 2: 1, 3: 1})
    lake.commit({1: 1, 2: 1, 3: 1, 4: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    reads = []
    upstream = pipeline.upstream
    monkeypatch.setattr(
        upstream, "_columns", lambda said: reads.append(said) or {"dt": [], "n": []}
    )

    later = NOW + FRESH
    pipeline.status(later)
    list(pipeline.publish_all("cli", later))

    assert len(reads) == 1
