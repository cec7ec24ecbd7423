"""A ledger has a place if it is a file or folder of this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from small_lake import NOW
from tidegate.errors import LedgerUnreachable
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.places import PLACE, has_ledger, is_same_file, place_of

if TYPE_CHECKING:
    from pathlib import Path


def registered(folder: Path) -> str:
    """Make a ledger with one pipeline; its id."""
    ledger = Ledger(open_engine(f"sqlite:///{folder}/ledger.db"), "orders")
    return ledger.pipeline.register({}, "/target", NOW)


def test_file_of_sqlite_is_the_place_links_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    place = place_of(open_engine(f"sqlite:///{tmp_path}/link/ledger.db"))

    assert place == f"{tmp_path.resolve()}/real/ledger.db"


def test_folder_of_a_homes_own_postgres_is_the_place(tmp_path: Path) -> None:
    url = "postgresql+psycopg://postgres@/tidegate"
    own = sa.create_engine(url, execution_options={PLACE: str(tmp_path)})

    assert place_of(own) == str(tmp_path.resolve())
    assert place_of(sa.create_engine(url)) is None
    assert place_of(sa.create_engine("sqlite://")) is None


def test_ledger_is_where_its_pipeline_has_the_id(tmp_path: Path) -> None:
    ledger_id = registered(tmp_path)
    place = str(tmp_path / "ledger.db")

    assert has_ledger(place, "orders", ledger_id)
    assert not has_ledger(place, "orders", "another")
    assert not has_ledger(place, "others", ledger_id)


@pytest.mark.parametrize("content", [None, b"", b"no database at all"])
def test_no_ledger_is_where_no_database_is(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "a file.db"
    if content is not None:
        file.write_bytes(content)

    assert not has_ledger(str(file), "orders", "L1")
    assert file.exists() == (content is not None)


def test_postgres_of_a_home_is_a_ledger_if_its_note_says_so(tmp_path: Path) -> None:
    place = tmp_path / "postgres"
    (place / "data").mkdir(parents=True)
    assert not has_ledger(str(place), "orders", "L1")
    (place / "has-ledger").touch()
    assert has_ledger(str(place), "orders", "L1")


def test_place_that_may_not_be_entered_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: object) -> bool:
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.is_dir", denied)

    with pytest.raises(LedgerUnreachable, match=r"ledger\.db"):
        has_ledger(str(tmp_path / "ledger.db"), "orders", "L1")


def test_file_that_cannot_be_read_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(tmp_path)
    monkeypatch.setattr("tidegate.ledger.places.quote", lambda _: "/nowhere/ledger.db")

    with pytest.raises(LedgerUnreachable, match=r"ledger\.db"):
        has_ledger(str(tmp_path / "ledger.db"), "orders", "L1")


def test_file_with_two_names_is_one(tmp_path: Path) -> None:
    one, two, gone = (tmp_path / name for name in ("one", "two", "gone"))
    one.write_bytes(b"")
    os.link(one, two)

    assert is_same_file(str(one), str(two))
    assert is_same_file(str(gone), str(gone))
    assert not is_same_file(str(one), str(gone))
