"""Conditions: every one has to hold, at the boundary and one row either side (PC-C01, C03)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.commit.completeness import Waiting, counts_hold, evaluate_conditions
from tidegate.commit.triggers import Tide
from tidegate.config import PipelineConfig
from tidegate.config.completeness import CountsConfig
from tidegate.model.partition import Partition
from tidegate.model.upstream import UpstreamCounts
from tidegate.model.watermark import Evaluation, Reason

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OVER = datetime(2026, 2, 2, 0, 0, 1, tzinfo=UTC)
DAY = Partition((("dt", "2026-02-01"),))


def pipeline(**commit: Any) -> PipelineConfig:
    return PipelineConfig.from_resolved(
        {
            "name": "orders",
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": {"dt": "day(at)"}},
            "commit": {"counts": {"file": "/counts.csv"}, **commit},
        }
    )


def counted(upstream: int | None = None, problem: str | None = None) -> UpstreamCounts:
    return UpstreamCounts("counts.csv", {} if upstream is None else {("2026-02-01",): upstream},
                          problem)  # fmt: skip


def look(
    config: PipelineConfig, rows: int, upstream: UpstreamCounts | None, watermark: datetime = OVER
) -> Evaluation:
    return evaluate_conditions(config, Waiting(DAY, NOW, rows), Tide(NOW, watermark), upstream)


@pytest.mark.parametrize(
    ("rows", "upstream", "threshold", "holds"),
    [
        (999, 1000, 0.999, True),
        (998, 1000, 0.999, False),
        (1000, 1000, 1, True),
        (999, 1000, 1, False),
        (1001, 1000, 1, True),
        (0, 0, 0.999, True),
        (5, 0, 0.999, True),
        (0, 1, 0.999, False),
        (7, 10, 0.7, True),
        (9, 10, 0.9, True),
    ],
)
def test_counts_at_their_threshold(rows: int, upstream: int, threshold: float, holds: bool) -> None:
    said = CountsConfig(file="/counts.csv", threshold=threshold)

    found = counts_hold(said, Waiting(DAY, NOW, rows), counted(upstream))

    assert found.holds is holds
    assert found.reason is (None if holds else Reason.COUNT_SHORT)
    assert found.inputs == {"rows": rows, "threshold": threshold, "upstream": upstream}


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 1000))
def test_counts_are_compared_exactly(rows: int, upstream: int, thousandths: int) -> None:
    said = CountsConfig(file="/counts.csv", threshold=thousandths / 1000)

    found = counts_hold(said, Waiting(DAY, NOW, rows), counted(upstream))

    assert found.holds is (rows >= Fraction(thousandths, 1000) * upstream)
    assert ("100.0 %;" in found.detail) is False


def test_partition_without_a_count_is_not_complete_unless_the_file_says_so() -> None:
    strict = look(pipeline(), 3, counted())
    lenient = look(pipeline(counts={"file": "/c.csv", "complete_on_no_counts": True}), 3, counted())

    assert (strict.committable, strict.reason) == (False, Reason.COUNT_UNKNOWN)
    assert strict.detail == (
        "counts.csv does not mention it; a row with 0 says that it has none, and "
        "`complete_on_no_counts` waits for none"
    )
    assert (lenient.committable, lenient.reason) == (True, None)


def test_counts_that_cannot_be_read_never_make_complete() -> None:
    config = pipeline(counts={"file": "/c.csv", "complete_on_no_counts": True})

    found = look(config, 3, counted(problem="no route to host"))

    assert (found.committable, found.reason) == (False, Reason.COUNT_UNKNOWN)
    assert found.detail == "no route to host"


@pytest.mark.parametrize(("over", "agree"), [*itertools.product([True, False], repeat=2)])
def test_every_failing_condition_is_told_and_the_first_decides(over: bool, agree: bool) -> None:
    watermark = OVER if over else NOW.replace(year=2020)

    found = look(pipeline(), 5 if agree else 4, counted(5), watermark)

    expected = [
        reason
        for reason, fails in ((Reason.WATERMARK_BEHIND, not over), (Reason.COUNT_SHORT, not agree))
        if fails
    ]
    assert found.committable is (over and agree)
    assert list(found.reasons) == expected
    assert found.reason is (expected[0] if expected else None)
    assert all(f"{reason.value}: " in found.failing for reason in expected)
    assert [item.name for item in found.conditions or ()] == ["trigger", "counts"]
    assert Evaluation.from_json(found.to_json()) == found


def test_trigger_that_is_not_required_is_not_asked() -> None:
    config = pipeline(require=["counts"])

    found = look(config, 5, counted(5), NOW.replace(year=2020))

    assert found.committable
    assert [item.name for item in found.conditions or ()] == ["counts"]


def test_approval_is_listed_as_still_to_come() -> None:
    found = look(pipeline(require=["trigger", "counts", "approval"]), 5, counted(5))

    assert found.committable
    assert [(item.name, item.holds) for item in found.conditions or ()][-1] == ("approval", None)


def test_pipeline_that_asks_only_its_trigger_keeps_what_it_kept_before() -> None:
    found = look(pipeline(counts=None), 5, None)

    assert found.conditions is None
    assert "conditions" not in found.to_json()


def test_pipeline_that_never_commits_says_only_that() -> None:
    found = look(pipeline(policies=[]), 0, counted(5))

    assert found.reasons == (Reason.NO_POLICY,)


def test_closed_source_passes_any_partition_but_not_the_counts() -> None:
    tide = Tide(NOW, None, is_final=True)

    short = evaluate_conditions(pipeline(), Waiting(DAY, NOW, 4), tide, counted(5))
    whole = evaluate_conditions(pipeline(), Waiting(DAY, NOW, 5), tide, counted(5))

    assert (short.committable, short.reasons) == (False, (Reason.COUNT_SHORT,))
    assert whole.committable


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        ("never", "`tidegate publish orders dt=__DEFAULT_PARTITION__ --final -m WHY` publishes it"),
        ("at_end", "`tidegate publish orders --final` publishes it, once its counts hold"),
    ],
)
def test_way_out_of_a_partition_without_a_time_knows_of_its_counts(turn: str, told: str) -> None:
    waiting = Waiting(Partition((("dt", None),)), NOW, 3)

    found = evaluate_conditions(
        pipeline(default_partition=turn), waiting, Tide(NOW, OVER), counted()
    )

    assert not found.committable
    assert told in str(found.detail)
