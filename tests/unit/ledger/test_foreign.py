"""A database that is asked for counts answers by column, or is told as unreadable (PC-C03)."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import CountsUnreadable
from tidegate.ledger.foreign import ask

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def address(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "audit.db") as database:
        database.execute("create table audit (dt text, n integer)")
        database.executemany("insert into audit values (?, ?)", [("a", 1), ("a", 2), ("b", 3)])
    return f"sqlite:///{tmp_path}/audit.db"


def test_answer_is_column_by_column(address: str) -> None:
    found = ask(address, "select dt, sum(n) as n from audit where dt like '%' group by dt")

    assert {name: list(items) for name, items in found.items()} == {"dt": ["a", "b"], "n": [3, 3]}


def test_answer_without_rows_has_its_columns(address: str) -> None:
    assert ask(address, "select dt, n from audit where n > 9") == {"dt": (), "n": ()}


def test_query_that_changes_something_changes_nothing(address: str) -> None:
    ask(address, "insert into audit values ('c', 9) returning dt, n")

    assert list(ask(address, "select count(*) as n from audit")["n"]) == [3]


@pytest.mark.parametrize(
    ("where", "query", "said"),
    [
        (None, "select dt from elsewhere", "no such table: elsewhere"),
        (None, "nonsense", "syntax error"),
        ("hunter2", "select 1", "the address names no database"),
        ("nosuch://u:hunter2@db/x", "select 1", "the address names no database"),
        ("oracle://u:hunter2@db/x", "select 1", "its driver is not installed"),
        ("sqlite:////no/such/folder/a.db", "select 1", "unable to open database file"),
    ],
)
def test_silent_database_is_told_without_its_password(
    address: str, where: str | None, query: str, said: str
) -> None:
    with pytest.raises(CountsUnreadable, match=said) as refused:
        ask(where or address, query)

    assert "hunter2" not in str(refused.value)
