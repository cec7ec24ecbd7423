"""A remedy is code: each way out that an error prints is followed by a test, to a good end.

A test that does what a message says, from the state in which it is printed, carries the mark
`follows` with the error's name; here the marks are collected and compared with the messages.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from tidegate.cli.app import app
from tidegate.errors.base import TidegateError

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).resolve().parent.parent

ASKING = {
    *(
        "backfill",
        "change",
        "check",
        "choose",
        "clear",
        "correct",
        "delete",
        "exchange",
        "find",
        "finish",
        "free",
    ),
    *(
        "give",
        "grant",
        "keep",
        "leave",
        "let",
        "list",
        "look",
        "make",
        "mount",
        "move",
        "name",
        "partition",
        "plan",
        "point",
    ),
    *("put", "quarantine"),
    *(
        "read",
        "rebuild",
        "remove",
        "renew",
        "restore",
        "rewrite",
        "run",
        "say",
        "see",
        "set",
        "spell",
        "start",
    ),
    *("stop", "take", "trigger", "use", "wait"),
}
"""Words with which a message begins to ask for something."""

TELLING = {
    *("a", "afterwards", "expected", "if", "it", "its", "no", "nothing", "one", "otherwise"),
    *("published", "rows", "the", "these", "this", "to", "what"),
}
"""Words with which a message goes on telling what is."""

BEYOND = {
    "AirflowBusy": "Airflow has to come to rest; the command that is run again is the same",
    "AmbiguousPath": "the writer of the table has to rewrite its delete file",
    "ChangelogInconsistent": "no table is known that leads there; it is to be reported",
    "DemoStuck": "Airflow was too slow; the demo goes on with what it did",
    "EnvironmentIncomplete": "something has to be installed, or a connection defined in Airflow",
    "FileContentWrong": "who wrote over a published file can only be found by people",
    "HudiInstantUnreadable": "the table belongs to another job, which has to write it otherwise",
    "HudiLogUnsupported": "the table belongs to another job, which has to write it otherwise",
    "HudiPropertyUnsupported": "the table belongs to another job, which has to write it otherwise",
    "HudiSchemaUnsupported": "the table belongs to another job, which has to write it otherwise",
    "InvalidNameMapping": "the property belongs to the table, which has an owner of its own",
    "FormatUnknown": "another version of Tidegate has to be used",
    "LedgerNewer": "another version of Tidegate has to be used",
    "LedgerUnreachable": "the database has to come back",
    "MissingFieldIds": "the property belongs to the table, which has an owner of its own",
    "RowsLost": "no file is known that leads there; it is to be reported",
    "SnapshotClassMismatch": "the writer of the table contradicts itself; there is no other side",
    "StorageDenied": "the right has to be given by who looks after the file system",
    "StorageSilent": "the file system has to answer again",
}
"""Errors whose way out no test can go, because it lies with others; with the reason."""


def sentences(template: str) -> list[str]:
    """Give the sentences of a message but the first, which says what was found."""
    return re.split(r"(?<=[.:]) (?=[A-Z])", template)[1:]


def asks(template: str) -> bool:
    """Say whether a message asks its reader to do something."""
    words = "|".join(ASKING)
    begins = rf"(^|[.:;,] )({words}|{words.title()})\b"
    return re.search(rf"`tidegate |\{{(remedy|outlook)\}}|{begins}", template) is not None


ERRORS = {name: cls.template for name, cls in sorted(TidegateError._known.items()) if cls.template}
PRINTED = [name for name, template in ERRORS.items() if asks(template)]


def marks(path: Path) -> Iterator[tuple[str, str]]:
    """Give the errors that tests of a file follow, each with the line of its mark."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.follows":
            for name in node.args:
                assert isinstance(name, ast.Constant)
                yield str(name.value), f"{path.relative_to(TESTS)}:{node.lineno}"


@pytest.fixture(scope="session")
def followed() -> dict[str, list[str]]:
    """Say which error has which tests."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, place in marks(path):
            found.setdefault(name, []).append(place)
    return found


@pytest.mark.parametrize("name", PRINTED)
def test_way_out_that_is_printed_is_followed_by_a_test_or_lies_with_others(
    followed: dict[str, list[str]], name: str
) -> None:
    assert (name in followed) != (name in BEYOND), (ERRORS[name], followed.get(name))


def test_marks_and_reasons_name_errors_that_print_a_way_out(
    followed: dict[str, list[str]],
) -> None:
    assert {*followed, *BEYOND} - set(PRINTED) == set()


@pytest.mark.parametrize("name", ERRORS)
def test_sentence_of_a_message_begins_with_a_word_that_is_known_to_ask_or_to_tell(
    name: str,
) -> None:
    first = {re.split(r"\W", text)[0].lower() for text in sentences(ERRORS[name])}

    assert first - ASKING - TELLING == set()


COMMANDS = [
    pytest.param(command, id=f"{name}: {command}")
    for name, template in ERRORS.items()
    for command in re.findall(r"`tidegate ([^`]*)`", template)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_that_is_printed_is_one_that_the_command_line_takes(command: str) -> None:
    numbered = re.sub(r"\{(window|number)\}|WINDOW", "1", command)
    filled = re.sub(r"\{\w+\}", "value", numbered)
    verb, *arguments = shlex.split(filled)

    typer.main.get_command(app).commands[verb].make_context(verb, arguments)
