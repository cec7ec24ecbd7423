"""Which columns come out of a read, in which order, under which name."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField, StringType

from tidegate.config import read_source
from tidegate.errors import AmbiguousColumn, ColumnMissing
from tidegate.source.iceberg.columns.selection import pinned_selection, select

TABLE = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "Name", StringType()),
    NestedField(3, "name", StringType()),
    schema_id=4,
)
KINDS = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


def _select(
    columns: list[str] | None, *, extra: tuple[str, ...] = (), schema: Schema = TABLE, **keys: Any
) -> tuple[list[tuple[int, str]], tuple[str, ...]]:
    read = {"columns": columns, **keys.pop("read", {})}
    config = read_source({"kind": "iceberg", "metadata": "/t", "read": read, **keys})
    own, names = select(schema, config, extra, "t")
    return [(field.field_id, field.name) for field in own.fields], names


def test_select_without_columns_gives_the_whole_table_even_if_names_differ_in_case_only() -> None:
    own, names = _select(None)

    assert own == [(1, "id"), (2, "Name"), (3, "name")]
    assert names == ("id", "Name", "name")


def test_select_finds_columns_in_any_case_and_names_them_as_asked() -> None:
    assert _select(["ID"]) == ([(1, "ID")], ("ID",))


@pytest.mark.parametrize("name", ["name", "NAME"])
def test_select_of_a_name_that_fits_two_columns_is_ambiguous(name: str) -> None:
    with pytest.raises(AmbiguousColumn, match="'Name' and 'name'"):
        _select([name])


@pytest.mark.follows("AmbiguousColumn")
def test_select_with_case_takes_the_column_of_that_spelling() -> None:
    assert _select(["name"], case_sensitive=True)[0] == [(3, "name")]
    with pytest.raises(ColumnMissing, match="no column 'ID'; found: id, Name, name"):
        _select(["ID"], case_sensitive=True)


def _pin(text: str, columns: list[str] | None, **keys: Any) -> Any:
    metadata = new_table_metadata(
        TABLE, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "file:///t", {}
    )
    read = {"filter": text, "columns": columns}
    config = read_source({"kind": "iceberg", "metadata": "/t", "read": read, **keys})
    return pinned_selection(metadata, metadata.schema(), config, (), "t")


@pytest.mark.parametrize("columns", [None, ["ID"]], ids=["whole", "some"])
def test_filter_whose_name_fits_two_columns_is_ambiguous(columns: list[str] | None) -> None:
    with pytest.raises(AmbiguousColumn, match="'Name' and 'name'"):
        _pin("id > 3 and NAME = 'x'", columns)


def test_filter_with_case_means_the_column_of_that_spelling() -> None:
    assert _pin("name = 'x'", None, case_sensitive=True)["columns"] == ["id", "Name", "name"]


def test_select_puts_metadata_columns_where_they_are_listed() -> None:
    own, names = _select(["_pos", "id", "_file"])

    assert own == [(1, "id")]
    assert names == ("_pos", "id", "_file")


@pytest.mark.parametrize(
    ("read", "always"),
    [
        ({"mode": "changelog"}, KINDS),
        ({"mode": "snapshot_diff"}, KINDS),
        ({"on_non_append": "changelog"}, KINDS),
        (
            {"mode": "lineage_upserts"},
            ("_change_type", "_row_id", "_last_updated_sequence_number"),
        ),
        ({"mode": "append"}, ()),
    ],
    ids=["changelog", "snapshot_diff", "append as changelog", "lineage_upserts", "append"],
)
def test_select_appends_what_the_mode_always_has(
    read: dict[str, str], always: tuple[str, ...]
) -> None:
    assert _select(["id"], read=read)[1] == ("id", *always)


def test_select_does_not_repeat_what_is_listed() -> None:
    _, names = _select(["_change_type", "id"], read={"mode": "changelog"}, extra=("id",))

    assert names == ("_change_type", "id", "_change_ordinal", "_commit_snapshot_id")


def test_select_of_a_metadata_column_that_is_one_of_the_tables_is_ambiguous() -> None:
    table = Schema(NestedField(1, "_file", StringType()), schema_id=0)

    assert _select(None, schema=table)[1] == ("_file",)
    with pytest.raises(AmbiguousColumn, match="a metadata column and a column of the table"):
        _select(["_file"], schema=table)
