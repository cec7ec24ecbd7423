"""Columns whose names differ only in case are refused at every depth."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.errors import ColumnsAlike
from tidegate.stage.column_names import check_unlike

ALIKE = pa.struct([("street", pa.string()), ("Street", pa.string())])


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ([("k", pa.int64()), ("v", pa.int64()), ("K", pa.int64())], ("k", "K")),
        ([("straße", pa.int64()), ("STRASSE", pa.int64())], ("straße", "STRASSE")),
        ([("home", ALIKE)], ("home.street", "home.Street")),
        ([("homes", pa.list_(ALIKE))], ("homes.street", "homes.Street")),
        ([("homes", pa.map_(pa.string(), ALIKE))], ("homes.value.street", "homes.value.Street")),
    ],
    ids=["columns", "sharp s", "struct", "list", "map"],
)
def test_names_that_differ_only_in_case_are_refused(
    columns: list[tuple[str, pa.DataType]], found: tuple[str, str]
) -> None:
    with pytest.raises(ColumnsAlike) as refused:
        check_unlike(pa.schema(columns))

    assert (refused.value.column, refused.value.other) == found


def test_one_name_in_two_structs_is_no_repetition() -> None:
    home = pa.struct([("street", pa.string())])

    check_unlike(pa.schema([("Street", pa.string()), ("home", home), ("work", home)]))
