"""Rows that fail a row rule hold their partition: beside a suite, and named by the rule alone."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from small_lake import NOW, SmallLake, day, decide, load, local, publish
from terminal import text_of
from tidegate.cli.explain_view import explanation
from tidegate.model.publication import Outcome
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

SMALL = {"name": "small", "where": "amount < 50", "on_failure": "hold"}
HAS_ID = {"name": "has_id", "where": "id > 0", "on_failure": "hold"}
EARLY = {"name": "early", "where": "id < 3", "on_failure": "hold"}
AT_MOST_10 = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "amount", "min_value": 0, "max_value": 10},
    "severity": "critical",
}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.keys = {"commit": {"trigger": "process-time"}}
    return lake


def why(lake: SmallLake, number: int) -> str:
    found = lake.pipeline().ledger.partitions.get(day(number)).why
    assert found is not None
    return found.detail


@pytest.mark.parametrize("rules", [[], [SMALL]], ids=["alone", "beside a rule"])
@pytest.mark.parametrize(
    ("effect", "alone", "beside"),
    [
        ("fail", Outcome.FAIL, Outcome.FAIL),
        ("hold", Outcome.HOLD, Outcome.HOLD),
        ("warn", Outcome.WARN, Outcome.HOLD),
    ],
)
def test_rule_that_holds_softens_no_suite_that_fails(
    lake: SmallLake, rules: list[Any], effect: str, alone: Outcome, beside: Outcome
) -> None:
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps({"name": "sane", "expectations": [AT_MOST_10]}))
    lake.keys |= {"rows": rules, "gate": {"suite": str(suite), "on_failure": effect}}
    ids = lake.commit({1: 2}, amount=100)
    load(lake.pipeline())

    (outcome,) = publish(lake.pipeline())

    assert outcome.gate is (beside if rules else alone)
    assert lake.ids() == ({"dt=2026-02-01": ids} if outcome.gate is Outcome.WARN else {})
    if effect == "fail":
        assert ("small" in why(lake, 1), "amount" in why(lake, 1)) == (bool(rules), True)


def test_partition_that_fails_its_suite_is_claimed_by_nobody(lake: SmallLake) -> None:
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps({"name": "sane", "expectations": [AT_MOST_10]}))
    lake.keys["gate"] = {"suite": str(suite), "on_failure": "fail"}
    lake.commit({1: 2}, amount=100)
    load(lake.pipeline())

    publish(lake.pipeline())

    state = lake.pipeline().ledger.partitions.get(day(1))
    assert (state.pending, state.owner) == ("pending", None)


def test_hold_names_the_rules_that_rows_of_the_partition_failed(lake: SmallLake) -> None:
    lake.keys["rows"] = [SMALL, HAS_ID, EARLY]
    lake.commit({1: 2}, amount=100)
    lake.commit({2: 1})
    lake.commit({3: 1}, amount=100)

    load(lake.pipeline())
    publish(lake.pipeline())

    told = [re.findall("row rule ([a-z]+):", why(lake, number)) for number in (1, 2, 3)]
    assert told == [["small"], ["early"], ["early", "small"]]
    assert lake.ids() == {}


@pytest.mark.parametrize("many", [1, 1200], ids=["one", "many"])
def test_hold_says_how_many_rows_fail_which_share_of_the_partition(
    lake: SmallLake, many: int
) -> None:
    lake.keys["rows"] = [SMALL, HAS_ID]
    lake.commit({1: 399, 2: 1400})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({1: many, 2: 1}, amount=100)
    load(lake.pipeline())

    publish(lake.pipeline())

    few = "observed 1 row of window 2 fails it ({share} of the partition), expected no row fails it"
    first = {
        1: few.format(share="0.2 %"),
        1200: few.replace("1 row", "1,200 rows").replace("fails", "fail", 1).format(share="75.0 %"),
    }
    assert why(lake, 1) == f"row rule small: {first[many]}"
    assert why(lake, 2) == f"row rule small: {few.format(share='< 0.1 %')}"
    found = lake.pipeline().explain(day(1), NOW)
    assert [item.held_rows for item in found.contributions] == [None, {"small": many}]
    assert f"{many:,} fail" in text_of(explanation(found, None, "UTC"))


def test_hold_of_a_contribution_without_counts_names_the_rule_and_the_window(
    lake: SmallLake,
) -> None:
    lake.keys["rows"] = [SMALL]
    lake.commit({1: 2}, amount=100)
    load(lake.pipeline())
    with sqlite3.connect(lake.root / "ledger.db") as ledger:
        ledger.execute("UPDATE contribution SET held_rows = NULL")

    publish(lake.pipeline())

    assert why(lake, 1).startswith("row rule small: observed rows of window 1 fail it")


def test_hold_counts_the_rows_that_were_handed_on_and_those_of_every_split(
    lake: SmallLake,
) -> None:
    lake.keys |= {"rows": [SMALL], "source": {"split": {"target_size": "1KiB"}}}
    for _ in range(4):
        lake.commit(dict.fromkeys(range(1, 29), 3), amount=100)
    load(lake.pipeline())

    contributions = [lake.pipeline().ledger.contributions.to(day(n)) for n in range(1, 29)]

    assert [item.held_rows for (item,) in contributions] == [{"small": 12}] * 28


def test_hold_that_a_replay_made_pointless_is_shown_no_more(lake: SmallLake) -> None:
    lake.keys["rows"] = [SMALL]
    lake.commit({1: 3})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({1: 2}, amount=100)
    load(lake.pipeline())
    publish(lake.pipeline())
    pipeline = lake.pipeline(source={"read": {"filter": "amount < 50"}})
    planned = pipeline.replay(2, Run("replay", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline)

    found = pipeline.explain(day(1), NOW)

    assert (found.report.name, found.report.rows_pending, found.proposed) == ("committed", 0, None)
    assert "not yet" not in text_of(explanation(found, None, "UTC"))


def test_rows_that_fail_no_rule_are_not_held_for_those_that_were_approved(lake: SmallLake) -> None:
    lake.keys |= {"rows": [SMALL]}
    ids = lake.commit({1: 1}, amount=100)
    load(lake.pipeline())
    publish(lake.pipeline())
    decide(lake.pipeline(), day(1))
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids}

    ids += lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": ids}
