"""Commands that are printed can be typed, whatever the partition and the file are called."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import NOW
from tidegate.cli.app import app
from tidegate.errors import LedgerBehind, NotApproved, NotCommittable, NotHeld, PublicationLapsed
from tidegate.errors.commands import command
from tidegate.ledger.holder import Holder
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

CITIES = ["New York", "$HOME", "it's", 'the "Hague"', "a`b", "x; y & z", "(more)", "Köln", "*"]


def words_of(line: str) -> list[str]:
    """Let a shell take a line apart; it must run nothing on the way."""
    taken = subprocess.run(
        ["/bin/sh", "-c", f'printf "%s\\0" {line}'], capture_output=True, text=True, check=True
    )
    return taken.stdout.split("\0")[:-1]


@pytest.mark.parametrize("city", CITIES)
def test_command_is_taken_apart_into_the_words_that_it_was_made_of(city: str) -> None:
    line = command("rebuild", "orders", city, 7)

    assert words_of(line) == ["tidegate", "rebuild", "orders", city, "7"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            NotApproved(pipeline="orders", partition="city=New York", outcome="hold"),
            ["tidegate", "explain", "orders", "city=New York"],
        ),
        (
            NotCommittable(pipeline="orders", partition="city=$x", why="it is not over"),
            ["tidegate", "publish", "orders", "city=$x", "--final", "-m", "WHY"],
        ),
        (
            PublicationLapsed(pipeline="orders", partition="city=a b", change="+1 rows"),
            ["tidegate", "publish", "orders", "city=a b"],
        ),
        (
            LedgerBehind(pipeline="orders", found="a marker", known="none"),
            ["tidegate", "fsck", "orders", "--rebuild"],
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_command_of_an_error_is_taken_apart_into_its_words(
    error: Exception, words: list[str]
) -> None:
    assert [words_of(found) for found in re.findall("`(tidegate .*?)`", str(error))] == [words]


def test_what_an_error_tells_beside_its_commands_stands_as_it_is() -> None:
    told = str(NotHeld(pipeline="orders", partition="city=New York", state="pending"))

    assert told.startswith("pipeline 'orders': city=New York is pending:")


@pytest.fixture(params=CITIES)
def cities(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a pipeline whose one partition is a city, and lies in a folder that has to be quoted."""
    root = tmp_path / "the lake's"
    (root / "landing").mkdir(parents=True)
    pq.write_table(pa.table({"city": [request.param] * 3}), root / "landing" / "one.parquet")
    (root / "published").mkdir()
    suite = root / "suite.json"
    fails = {
        "type": "expect_table_row_count_to_be_between",
        "kwargs": {"min_value": 1000},
        "severity": "critical",
    }
    suite.write_text(json.dumps({"name": "cities", "expectations": [fails]}))
    file = root / "cities.yaml"
    keys = {
        "name": "cities",
        "source": {"kind": "files", "path": str(root / "landing")},
        "target": {"path": str(root / "published" / "cities"), "partition_by": {"city": "city"}},
        "commit": {"trigger": "process-time"},
        "gate": {"suite": str(suite)},
    }
    file.write_text(json.dumps(keys))
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(root))
    return file


def typed(line: str, *codes: int) -> str:
    program, *arguments = words_of(line)
    assert program == "tidegate"
    result: Result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code in (codes or (0,)), result.output
    return result.output


def advised(output: str) -> list[str]:
    """Find the commands that a command names at its end."""
    return re.findall(r"^(?:Next: |  or: )(.*)$", output, re.MULTILINE)


def test_commands_that_follow_each_other_are_typed_to_the_end(cities: Path) -> None:
    (publish,) = advised(typed(command("load", cities)))
    explain, approve, reject, reopen = advised(typed(publish, 3))
    assert advised(typed(explain)) == [approve, reject, reopen]
    # A suite may have been corrected before anybody decided.
    (publish_again,) = advised(typed(reopen))
    _, _, reject, _ = advised(typed(publish_again, 3))
    assert advised(typed(reject)) == [reopen]
    assert advised(typed(reopen)) == [publish_again]

    _, approve, _, _ = advised(typed(publish_again, 3))
    (publish_approved,) = advised(typed(approve))
    typed(publish_approved)

    made = open_pipeline(cities).ledger.partitions.all()
    assert [(state.revision, state.rows) for state in made] == [(1, 3)]


def held_by_another(cities: Path) -> Pipeline:
    opened = open_pipeline(cities)
    (state,) = opened.ledger.partitions.all()
    holder = Holder("another", NOW, opened.config.execute.claim_timeout)
    opened.ledger.partitions.claim(state.partition, holder)
    return opened


def test_command_of_a_claim_that_is_held_is_typed(cities: Path) -> None:
    typed(command("load", cities))
    opened = held_by_another(cities)
    (state,) = opened.ledger.partitions.all()

    outcome = opened.publish_all(process_owner("cli"), NOW)
    (told,) = [item.error for item in outcome]

    found = re.findall(r"again, `(tidegate .*)` after", str(told))
    assert [words_of(line)[3] for line in found] == [str(state.partition)]
    typed(found[0], 1)
