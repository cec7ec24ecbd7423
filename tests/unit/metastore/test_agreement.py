"""A listed table and the one that a pipeline publishes: what is the same, and what is changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.errors import ListedTableDiffers
from tidegate.metastore.agreement import agreed, same_place
from tidegate.model.metastore import ListedColumn, ListedTable, TableColumns


def columns(**types: str) -> tuple[ListedColumn, ...]:
    return tuple(ListedColumn(name, kind) for name, kind in types.items())


WANTED = ListedTable(
    TableColumns(columns(id="bigint", note="string"), columns(dt="date")),
    "file:/lake/orders",
    "parquet",
    "orders",
)


def listed(made_by: str | None = "orders", **types: str) -> ListedTable:
    found = replace(WANTED.columns, columns=columns(**types))
    return replace(WANTED, columns=found, pipeline=made_by)


@pytest.mark.parametrize("made_by", ["orders", None])
def test_table_with_more_columns_and_wider_types_stays(made_by: str | None) -> None:
    found = listed(made_by, ID="bigint", more="int", note="varchar(10)")

    assert agreed("shop.orders", found, WANTED) == found.columns.columns


def test_table_of_the_pipeline_gets_columns_and_wider_types() -> None:
    found = agreed("shop.orders", listed(more="int", id="int"), WANTED)

    assert found == columns(more="int", id="bigint", note="string")


def test_table_whose_types_stay_gets_columns_alone() -> None:
    found = agreed("shop.orders", listed(id="bigint"), WANTED, changes_types=False)

    assert found == columns(id="bigint", note="string")
    with pytest.raises(ListedTableDiffers, match="column 'id': expected bigint, found int"):
        agreed("shop.orders", listed(id="int"), WANTED, changes_types=False)


def test_table_may_be_in_the_directory_of_another_revision() -> None:
    one, other = (f"file:/lake/orders/_revisions/00000{it}" for it in ("1-ab", "2-cd"))
    found, wanted = replace(WANTED, location=one), replace(WANTED, location=other)

    assert agreed("shop.orders", found, wanted) == WANTED.columns.columns
    assert agreed("shop.orders", found, WANTED) == WANTED.columns.columns


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (listed(None, id="bigint"), "column 'note': expected string, found none"),
        (listed(None, id="int", note="string"), "column 'id': expected bigint, found int"),
        (listed(id="date", note="string"), "column 'id': expected bigint, found date"),
        (
            replace(WANTED, columns=replace(WANTED.columns, keys=columns(dt="int"))),
            "partition key 'dt': expected date, found int",
        ),
        (listed("other", id="bigint"), "pipeline: expected orders, found other"),
        (replace(WANTED, location="file:/lake/old"), "location: expected file:/lake/orders, found"),
        (replace(WANTED, format="orc"), "format: expected parquet, found orc"),
        (
            replace(WANTED, columns=replace(WANTED.columns, keys=())),
            "keys: expected dt, found none",
        ),
        (
            replace(WANTED, columns=replace(WANTED.columns, keys=columns(dt="date", hour="int"))),
            "keys: expected dt, found dt, hour",
        ),
    ],
)
def test_table_that_is_another_one_is_refused(found: ListedTable, said: str) -> None:
    with pytest.raises(ListedTableDiffers, match=said):
        agreed("shop.orders", found, WANTED)


def test_type_with_others_in_it_is_never_changed() -> None:
    found = listed(id="bigint", note="string", inner="struct<a:int>")
    more = replace(
        WANTED, columns=replace(WANTED.columns, columns=columns(inner="struct<a:int,b:int>"))
    )

    with pytest.raises(ListedTableDiffers, match="column 'inner'"):
        agreed("shop.orders", found, more)


@pytest.mark.parametrize("kind", ["date", "string", "varchar(10)"])
def test_key_may_be_text_whatever_its_values_are(kind: str) -> None:
    found = replace(WANTED, columns=replace(WANTED.columns, keys=columns(dt=kind)))

    assert agreed("shop.orders", found, WANTED) == WANTED.columns.columns


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("file:/lake/orders", "/lake/orders", True),
        ("file:///lake/orders/", "file:/lake/orders", True),
        ("file:/lake/orders", "file:/lake/orders2", False),
        ("hdfs://name/lake/orders", "/lake/orders", False),
        ("file:/lake/a%20b", "file:/lake/a b", False),
    ],
)
def test_places_are_compared_without_the_way_they_are_written(
    one: str, other: str, expected: bool
) -> None:
    assert same_place(one, other) is expected
