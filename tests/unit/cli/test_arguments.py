"""Times and names of pipelines on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from tidegate.cli.app import app
from tidegate.cli.arguments import complete_name, read_moment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2013-02-09", datetime(2013, 2, 9, 5, tzinfo=UTC), id="date-in-the-zone"),
        pytest.param("2013-02-09T06:00", datetime(2013, 2, 9, 11, tzinfo=UTC), id="wall-clock"),
        pytest.param("2013-02-09T06:00Z", datetime(2013, 2, 9, 6, tzinfo=UTC), id="utc"),
        pytest.param(
            "2013-02-09T06:00+01:00", datetime(2013, 2, 9, 5, tzinfo=UTC), id="own-offset"
        ),
    ],
)
def test_moment_as_iso_text_is_read(text: str, expected: datetime) -> None:
    assert read_moment(text, "--until", "America/New_York") == expected


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "09.02.2013", "0001-01-01"],
    ids=["empty", "word", "german", "before all times of UTC"],
)
def test_moment_in_other_words_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected an ISO date or time"):
        read_moment(text, "--until", "Europe/Berlin")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "pipelines"))
    return tmp_path / "pipelines"


def test_name_is_completed_from_valid_and_broken_files(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.yaml").write_text("name: orders\nsource: [")
    (folder / "orders_old.yml").write_text("")
    (folder / "flights.yaml").write_text("name: flights\n")

    assert complete_name("or") == ["orders", "orders_old"]


@pytest.mark.parametrize("is_file", [False, True], ids=["no folder", "a file in its place"])
def test_name_is_not_completed_where_no_file_can_be_listed(folder: Path, *, is_file: bool) -> None:
    if is_file:
        folder.write_text("")

    assert complete_name("") == []


@pytest.mark.parametrize("verb", ["load", "status", "check", "publish"])
def test_shell_is_offered_the_names_of_pipelines(folder: Path, verb: str) -> None:
    folder.mkdir()
    (folder / "orders.yaml").write_text("name: orders\n")
    asked = {
        "_TIDEGATE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"tidegate {verb} o",
        "COMP_CWORD": "2",
    }

    offered = CliRunner().invoke(app, [], prog_name="tidegate", env=asked)

    assert offered.stdout.split() == ["orders"]
