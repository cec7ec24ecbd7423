from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.demo.places import DagIds, DemoPlaces

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_two_homes_share_nothing(tmp_path: Path) -> None:
    one, other = (DemoPlaces(tmp_path / name).variables() for name in ("one", "other"))

    same = {name for name in one if one[name] == other[name]}
    assert same == {"TIDEGATE_PIPELINES", "TIDEGATE_POLL_SECONDS"}


def test_variables_are_set_for_a_while_and_then_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_LEDGER", "postgresql://mine")
    monkeypatch.delenv("TIDEGATE_POLL_SECONDS", raising=False)
    places = DemoPlaces(tmp_path)

    with places.set_here():
        inside = os.environ["TIDEGATE_LEDGER"]

    assert inside == f"sqlite:///{tmp_path}/ledger.db"
    assert os.environ["TIDEGATE_LEDGER"] == "postgresql://mine"
    assert "TIDEGATE_POLL_SECONDS" not in os.environ


def test_pipeline_file_is_there(tmp_path: Path) -> None:
    assert DemoPlaces(tmp_path).file.is_file()


def test_dags_are_named_for_their_pipeline() -> None:
    assert DagIds.of("flights").all == ("flights_load", "flights_publish", "flights_reconcile")
