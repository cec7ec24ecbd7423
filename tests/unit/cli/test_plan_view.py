"""What a load would read, and what it changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import values_of
from terminal import text_of
from tidegate.cli.plan_view import announced_facts, preview_facts, stored_facts
from tidegate.model.assembly import Assembly
from tidegate.model.exchange import Exchange
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import Pin, PlanTotals, ScanPlan, Split, SubSplit, Window, WindowKind
from tidegate.model.plan_record import (
    DeleteTotal,
    InstantAction,
    LimitCut,
    Listed,
    PlanRecord,
    SplitTotal,
)
from tidegate.model.run import Announced, PlannedWindow

DAY = Partition((("dt", "2013-02-09"),))


@hypothesis.settings(max_examples=20)
@given(values_of(ScanPlan), values_of(Split))
def test_preview_of_any_plan_names_partitions_with_rows(plan: ScanPlan, split: Split) -> None:
    text = text_of(preview_facts(plan, [split], {DAY: 1234}, "America/New_York", {}))

    assert "dt=2013-02-09 with 1,234 rows" in text


@hypothesis.settings(max_examples=20)
@given(values_of(ScanPlan), values_of(PlanRecord), st.lists(values_of(Split), max_size=15))
def test_stored_plan_of_any_kind_says_what_decided_it(
    plan: ScanPlan, record: PlanRecord, splits: list[Split]
) -> None:
    text = text_of(stored_facts(replace(plan, record=record), splits, "UTC", {}))

    if record.limit:
        assert "source.limits." in text
    assert ("lighter split" in text) is (len(splits) > 10)


RECORD = PlanRecord(
    checkpoint="in lineage: everything since is kept",
    listed=Listed((InstantAction("append", "read", 3), InstantAction("replace", "skipped", 1)), 7),
    deletes={"keys": DeleteTotal(2, 2048, 50), "vector": DeleteTotal(1, 30, 4)},
    target_size=16 << 20,
    terms={"rows": SplitTotal(4, 4 << 20, 1 << 20)},
    footers_read=2,
    event_times=None,
    files_without_bounds=3,
    limit=LimitCut("files", 12),
)


@pytest.mark.parametrize(
    "said",
    [
        "4: 3 append read, 1 replace skipped",
        "`source.limits.files`: 12 commits left to the next runs",
        "in lineage: everything since is kept",
        "7 read",
        "keys: 2 files of 2.0 KiB, 50 rows",
        "vector: 1 vector of 30 B, 4 rows",
        "the metadata of 3 files does not say",
        "aiming at 16.0 MiB",
        "rows: 4 splits, the heaviest 1.0 MiB",
        "the filter ruled out 5 files by metrics",
    ],
)
def test_plan_says_in_words(said: str) -> None:
    assert said in text_of(stored_facts(_plan(), [], "UTC", {}))


@pytest.mark.parametrize(
    ("unmerged", "log_rows", "said", "unsaid"),
    [
        (None, 0, "log: 1 file of 100 B", "0 rows"),
        (None, 3, "log: 1 file of 100 B, 3 rows", "at most"),
        (True, 0, "at most 7 of the files, before they are merged and selected; records", "0 rows"),
        (True, 3, "at most 7 of the files, before they are merged and selected", "not counted"),
    ],
)
def test_plan_says_of_rows_whether_all_are_returned_and_all_counted(
    unmerged: bool | None, log_rows: int, said: str, unsaid: str
) -> None:
    listed = replace(RECORD.listed, unmerged=unmerged)
    deletes = {"log": DeleteTotal(1, 100, log_rows)}
    record = replace(RECORD, listed=listed, deletes=deletes)
    plan = _plan()
    plan = replace(plan, record=record, totals=replace(plan.totals, rows=7))

    text = " ".join(text_of(stored_facts(plan, [], "UTC", {})).split())

    assert said in text
    assert unsaid not in text


def test_plan_names_the_stages_of_an_exchange() -> None:
    begin = Exchange("g", 2, 4)
    stages = [begin, begin] + [
        replace(begin, stage=stage, bucket=bucket) for stage in (1, 2) for bucket in range(4)
    ]
    splits = [Split((SubSplit((), stage),), 1) for stage in stages]

    text = text_of(stored_facts(_plan(), [*splits, Split((SubSplit(()),), 1)], "UTC", {}))

    assert "stage 0 spreads over 4 buckets: 2 splits of 1 large commit" in text
    assert "stage 1 gathers rows by bucket and spreads them anew: 4 splits" in text
    assert "stage 2 gathers rows by bucket: 4 splits of 1 large commit" in text


def test_plan_tells_splits_that_assemble_from_an_exchange() -> None:
    splits = [
        Split((SubSplit((), Exchange("c", 1, 3)),), 1),
        *(Split((SubSplit((), assembly=Assembly(bucket, 2, 1, 32)),), 1) for bucket in range(2)),
    ]

    text = text_of(stored_facts(_plan(), splits, "UTC", {}))

    assert "stage 0 spreads over 3 buckets: 1 split of 1 large commit" in text
    assert "assembly" in text
    assert "2 splits for rows of partitions whose files would be many and small" in text


def test_plan_tells_that_all_rows_are_brought_together() -> None:
    split = Split((SubSplit((), assembly=Assembly(0, 1, 1, 1, 1)),), 1)

    text = text_of(stored_facts(_plan(), [split], "UTC", {}))

    assert "1 split for all rows, brought together by partition" in text


def test_plan_without_an_exchange_does_not_speak_of_one() -> None:
    text = text_of(stored_facts(_plan(), [Split((SubSplit(()),), 1)], "UTC", {}))

    assert "exchange" not in text
    assert "assembly" not in text


def _plan() -> ScanPlan:
    moment = datetime(2026, 2, 1, tzinfo=UTC)
    window = Window(4, InstantRange(None, Instant("77", moment)), WindowKind.LOAD, None, "run")
    return ScanPlan(
        digest="d",
        pipeline="orders",
        window=window,
        pin=Pin("t", None, ()),
        config={},
        fingerprint={},
        planned_at=moment,
        totals=PlanTotals(4, 9, 1 << 20, 1_000_000, 4, 5),
        notes=("the filter ruled out 5 files by metrics",),
        record=RECORD,
    )


@pytest.mark.parametrize(
    ("sealed", "said"), [(True, True), (False, False)], ids=["unchanged", "new"]
)
def test_announced_windows_that_were_sealed_are_called_unchanged(sealed: bool, said: bool) -> None:
    planned = PlannedWindow(3, 1, "d", "/w", 2, 0, 0, sealed)

    text = text_of(announced_facts([planned], Announced((), (3,), None, RunSummary()), [], "UTC"))

    assert ("already taken in, same plan" in text) is said
