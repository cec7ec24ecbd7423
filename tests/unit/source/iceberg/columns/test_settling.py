"""What settling compares and pairs follows from table and pipeline file (ICE-3.15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import golden

if TYPE_CHECKING:
    from tidegate.model.settling import SettleRules


NOW = datetime(2026, 12, 1, tzinfo=UTC)


def rules(case: str, **read: Any) -> SettleRules | None:
    source = golden(case).source(read=read)
    return source.reading.settling(source.timeline.pin(NOW))


def test_rules_of_a_table_with_identifier_fields_pair_by_them_and_hide_what_is_not_read() -> None:
    found = rules("identifier_fields_v2", mode="changelog", columns=["v"])

    assert found
    assert set(found.identifiers) == {"k1", "k2"}
    assert set(found.hidden) == {"k1", "k2"}
    assert set(found.compared) == {"v", "k1", "k2"}


def test_rules_with_an_empty_list_of_identifiers_pair_nothing() -> None:
    found = rules("identifier_fields_v2", mode="changelog", identifier_columns=[])

    assert found
    assert found.identifiers == ()


@pytest.mark.parametrize(
    "read", [{"mode": "snapshot_diff"}, {"mode": "changelog", "net_changes": True}]
)
def test_rules_of_net_changes_pair_nothing(read: dict[str, Any]) -> None:
    found = rules("identifier_fields_v2", **read)

    assert found
    assert found.identifiers == ()
    assert found.carry_over


def test_rules_of_v3_use_row_ids_and_hide_them_unless_they_are_asked_for() -> None:
    hidden = rules("cow_v3", mode="changelog")
    shown = rules("cow_v3", mode="changelog", columns=["id", "_row_id"])

    assert hidden
    assert hidden.row_ids
    assert hidden.hidden == ("_row_id",)
    assert shown
    assert shown.row_ids
    assert shown.hidden == ()


@pytest.mark.parametrize("mode", ["append", "snapshot", "lineage_upserts"])
def test_rules_of_other_modes_are_none(mode: str) -> None:
    assert rules("cow_v3", mode=mode) is None
