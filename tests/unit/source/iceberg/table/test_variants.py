"""Variant columns hinder only those who want them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import golden_copy
from tidegate.errors import TidegateError, UnsupportedFeature

if TYPE_CHECKING:
    from pathlib import Path

    from golden_iceberg import Golden

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WITHIN = {
    "plain": "variant",
    "in-list": {"type": "list", "element-id": 90, "element": "variant", "element-required": False},
    "in-map": {
        "type": "map",
        "key-id": 90,
        "key": "string",
        "value-id": 91,
        "value": "variant",
        "value-required": False,
    },
    "in-struct": {
        "type": "struct",
        "fields": [{"id": 90, "name": "deep", "type": "variant", "required": False}],
    },
}


def with_column(place: Path, kind: Any) -> Golden:
    """A table with a further column of a type."""
    table = golden_copy("append_v3", place)

    def add(raw: dict[str, Any]) -> None:
        field = {"id": 80, "name": "strange", "type": kind, "required": False}
        for schema in raw["schemas"]:
            schema["fields"].append(field)

    table.edit_metadata(add)
    return table


@pytest.mark.parametrize("kind", WITHIN.values(), ids=WITHIN)
def test_column_with_a_variant_is_refused_by_its_name(kind: Any, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature, match=r"of type variant \('strange'\)"):
        with_column(tmp_path, kind).source().timeline.pin(NOW)


@pytest.mark.parametrize("kind", WITHIN.values(), ids=WITHIN)
def test_other_columns_beside_a_variant_are_read(kind: Any, tmp_path: Path) -> None:
    table = with_column(tmp_path, kind).changes("snapshot", columns=["id"])

    assert table.num_rows == 35


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw.pop("last-column-id"),
        lambda raw: raw["schemas"][0].pop("fields"),
        lambda raw: raw["schemas"][0]["fields"][0].update(type=7),
        lambda raw: raw["schemas"][0]["fields"][0].update(type=["no"]),
    ],
    ids=["no-column-id", "no-fields", "number", "list"],
)
def test_metadata_that_is_damaged_besides_ends_with_an_error_of_ours(
    damage: Any, tmp_path: Path
) -> None:
    table = with_column(tmp_path, "variant")
    table.edit_metadata(damage)

    with pytest.raises(TidegateError):
        table.source(read={"columns": ["id"]}).timeline.pin(NOW)
