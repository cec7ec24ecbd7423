"""How commands end: one message or one JSON object, and the exit code of the condition."""

from __future__ import annotations

import json

import pytest
import typer
from rich.table import Table

from tidegate.cli.output import FAILED, MISUSED, NOTHING, exit_code, reporting
from tidegate.errors import (
    ConfigInvalid,
    LedgerAddressWrong,
    NotHeld,
    PartitionNotFound,
    PipelineNotFound,
    SourceFileGone,
    TidegateError,
    WindowOpen,
)

GONE = SourceFileGone(path="s3://lake/[a].parquet")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(
            ConfigInvalid(file="a.yaml", line=3, key="name", problem="missing"), MISUSED, id="file"
        ),
        pytest.param(LedgerAddressWrong(found="a"), MISUSED, id="ledger"),
        pytest.param(
            PipelineNotFound(name="a", folder="f", known="b", remedy=""), MISUSED, id="name"
        ),
        pytest.param(
            PartitionNotFound(pipeline="a", partition="p", looked="", known=""),
            MISUSED,
            id="partition",
        ),
        pytest.param(GONE, FAILED, id="terminal"),
        pytest.param(
            WindowOpen(pipeline="a", sequence=1, run="r", renewed="n", outlook="o"),
            FAILED,
            id="transient",
        ),
        pytest.param(
            NotHeld(pipeline="a", partition="p", state="committed"), NOTHING, id="nothing-to-decide"
        ),
    ],
)
def test_error_of_a_command_has_its_exit_code(error: TidegateError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("text", ["[/a] is no time", "[red]b", "y-M-d H:m:s"])
def test_cells_are_printed_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("why")
    table.add_row(text)

    with reporting(as_json=False) as output:
        output.show({}, table, text)

    assert capsys.readouterr().out.count(text) == 2


def test_error_for_people_is_said_once_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, reporting(as_json=False):
        raise GONE

    printed = capsys.readouterr()
    assert ended.value.exit_code == FAILED
    assert printed.out == ""
    assert printed.err == f"SourceFileGone: {GONE}\n"


def test_error_for_machines_is_one_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), reporting(as_json=True):
        raise GONE

    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"error": GONE.to_json()}
    assert printed.err == ""


def test_error_that_may_pass_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), reporting(as_json=False):
        raise WindowOpen(pipeline="a", sequence=1, run="r", renewed="n", outlook="o")

    assert "WindowOpen (trying again may help):" in capsys.readouterr().err


def test_error_that_nobody_knows_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), reporting(as_json=True):
        _ = 1 / 0


def test_result_for_machines_has_no_hints(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(as_json=True) as output:
        output.show({"rows": 1}, "one row")
        output.next("tidegate publish")

    assert json.loads(capsys.readouterr().out) == {"rows": 1}


def test_hints_for_people_name_commands_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(as_json=False) as output:
        output.next("tidegate approve a dt=[1]", "tidegate reject a dt=[1]")

    assert capsys.readouterr().out == (
        "Next: tidegate approve a dt=[1]\n  or: tidegate reject a dt=[1]\n"
    )
