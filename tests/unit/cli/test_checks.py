"""What `tidegate check` finds of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.cli import checks

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(folder: Path, answer: str) -> str:
    """Write a `java` that answers `-version`; give its home."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param('openjdk version "17.0.15" 2025-04-15', "ok", id="oldest"),
        pytest.param('openjdk version "25" 2025-09-16', "ok", id="new"),
        pytest.param('java version "1.8.0_292"', "problem", id="eight"),
        pytest.param('openjdk version "11.0.2" 2019-01-15', "problem", id="eleven"),
        pytest.param("Error: could not find libjava.so", "problem", id="broken"),
    ],
)
def test_java_of_a_version_is_judged(
    answer: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, answer))

    assert checks.java_line().outcome == outcome


def test_java_that_is_absent_is_a_note_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")

    line = checks.java_line()

    assert line.outcome == "note"
    assert "JAVA_HOME" in line.remedy


def test_ledger_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    line = checks.ledger_line(f"sqlite:///{tmp_path}/file/ledger.db")

    assert line.outcome == "problem"
    assert line.remedy


def test_ledger_whose_files_are_gone_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    monkeypatch.delenv("TIDEGATE_LEDGER", raising=False)
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "has-ledger").touch()

    line = checks.ledger_line()

    assert line.outcome == "problem"
    assert f"{tmp_path}/postgres/data" in line.found
    assert line.remedy.startswith("Put them back from a copy; or move ")


def test_address_of_no_ledger_is_a_problem_with_one_remedy() -> None:
    line = checks.ledger_line("postgres://tide@localhost/x")

    assert (line.outcome, line.remedy) == ("problem", "Set TIDEGATE_LEDGER to one of them.")
    assert "'postgres://…'" in line.found
    assert "TIDEGATE_LEDGER" not in line.found


def test_ledger_that_answers_is_migrated(tmp_path: Path) -> None:
    line = checks.ledger_line(f"sqlite:///{tmp_path}/ledger.db")

    assert line.outcome == "ok"
    assert (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize(
    ("version", "outcome"), [((3, 10), "problem"), ((3, 11), "ok"), ((3, 14), "problem")], ids=str
)
def test_python_of_a_version_is_judged(
    version: tuple[int, int], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.sys, "version_info", (*version, 0))

    assert checks.python_line().outcome == outcome


def test_connection_that_is_not_set_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(checks.SPARK_CONNECTION, raising=False)

    line = checks.connection_line()

    assert line.outcome == "note"
    assert checks.SPARK_CONNECTION in line.found
