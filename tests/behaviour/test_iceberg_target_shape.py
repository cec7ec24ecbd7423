"""What an Iceberg table has to be that is published to, as `check` and `publish` say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import IntegerType, LongType, StringType

from lake_target import TABLE, LakeToLake
from small_lake import NOW, day, load, publish
from tidegate.cli.pipeline_checks import pipeline_lines
from tidegate.errors import (
    PipelineChanged,
    PlacesOverlap,
    TableCatalogUnknown,
    TableNamespaceMissing,
    TargetBranchMissing,
    TargetOwned,
    TargetTableDiffers,
    TargetTableOwned,
)
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.cli.checks import Line

FIRST = "2026-02-01"
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("amount", pa.int64()),
        ("dt", pa.string()),
    ]
)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeToLake:
    made = LakeToLake(tmp_path / "lake")
    made.found_by_name(monkeypatch)
    return made


def loaded(lake: LakeToLake, **keys: Any) -> list[int]:
    ids = lake.commit({1: 3, 2: 1})
    load(lake.pipeline(**keys))
    return ids


def make(lake: LakeToLake, columns: pa.Schema = COLUMNS, by: str | None = "dt") -> None:
    """Make the table as its owner would."""
    location = f"file://{lake.target}"
    with lake.catalog.create_table_transaction(TABLE, columns, location=location) as made:
        if by is not None:
            with made.update_spec() as spec:
                spec.add_identity(by)


def checked(lake: LakeToLake, **keys: Any) -> Line:
    return lines(lake, **keys)["orders: table"]


def lines(lake: LakeToLake, **keys: Any) -> dict[str, Line]:
    return {it.subject: it for it in pipeline_lines(lake.file(**keys), NOW)}


@pytest.mark.parametrize("names", ["table", "folder"])
def test_location_around_what_others_have_is_refused(
    lake: LakeToLake, tmp_path: Path, names: str
) -> None:
    """Whoever removes orphan files from the outer table would delete those of the inner one."""
    loaded(lake)
    around, work = str(lake.target.parent), str(tmp_path / "work")
    if names == "folder":
        around = str(lake.root / "raw")
    there = {"path": around, "work": work, "table": "shop.other"}
    second = lake.file("second", name="second", target=there)
    refused = TargetOwned if names == "table" else PlacesOverlap

    with pytest.raises(refused, match="orders" if names == "table" else "raw"):
        load(open_pipeline(second, ledger=f"sqlite:///{lake.root}/ledger.db"))

    # What the message says to do.
    beside = lake.file("second", name="second", target={**there, "path": f"{tmp_path}/other"})
    load(open_pipeline(beside, ledger=f"sqlite:///{lake.root}/ledger.db"))


def test_check_says_what_the_first_publish_does(lake: LakeToLake) -> None:
    loaded(lake)
    assert "not there yet: the first publish makes it" in str(checked(lake))
    assert "orders: commit" not in lines(lake)

    publish(lake.pipeline())

    assert "with all columns" in str(checked(lake))


@pytest.mark.on_disk
def test_table_that_is_there_already_is_published_to(lake: LakeToLake) -> None:
    ids = loaded(lake)
    make(lake)

    publish(lake.pipeline())

    assert lake.rows() == {FIRST: ids[:3]}
    assert lake.shop.properties["tidegate.pipeline"] == "orders"
    assert "schema.name-mapping.default" in lake.shop.properties


@pytest.mark.on_disk
def test_new_and_wider_columns_come_into_the_table(lake: LakeToLake) -> None:
    narrow = COLUMNS.set(2, pa.field("amount", pa.int32())).remove(1)
    make(lake, narrow)
    loaded(lake)
    assert "changes" in str(checked(lake))

    publish(lake.pipeline())

    kinds = {field.name: field.field_type for field in lake.shop.schema().fields}
    assert isinstance(kinds["amount"], LongType)
    assert [*kinds] == ["id", "amount", "dt", "at"]
    assert lake.rows()[FIRST] == [1, 2, 3]


def test_column_that_the_source_gets_is_there_with_the_next_revision(lake: LakeToLake) -> None:
    ids = loaded(lake)
    publish(lake.pipeline())
    with lake.table.update_schema() as update:
        update.add_column("note", StringType())
    lake.table.refresh()
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())

    publish(lake.pipeline())

    assert "note" in {field.name for field in lake.shop.schema().fields}
    assert lake.rows()[FIRST] == [*ids[:3], *late[:1]]


@pytest.mark.on_disk
@pytest.mark.follows("TargetTableDiffers")
@pytest.mark.parametrize(
    ("columns", "by", "evolve", "part"),
    [
        (COLUMNS, None, None, "partitioning: expected dt, found none"),
        (COLUMNS, "id", None, "partitioning: expected dt, found id"),
        (COLUMNS.set(2, pa.field("amount", pa.string())), "dt", None, "columns: expected"),
        (COLUMNS.set(2, pa.field("amount", pa.int32())), "dt", "add_columns", "add_columns"),
        (COLUMNS.remove(2), "dt", "none", "`target.evolve: none`"),
        (
            COLUMNS.append(pa.field("must", pa.int32(), nullable=False)),
            "dt",
            None,
            "column 'must': expected a column that may be NULL, found required",
        ),
    ],
)
def test_table_of_another_shape_is_refused_by_check_and_publish(
    lake: LakeToLake, columns: pa.Schema, by: str | None, evolve: str | None, part: str
) -> None:
    keys = {"target": {"evolve": evolve}} if evolve else {}
    ids = loaded(lake, **keys)
    make(lake, columns, by)

    line = checked(lake, **keys)
    with pytest.raises(TargetTableDiffers, match=part):
        lake.pipeline(**keys).publish(day(1), "cli", NOW)
    lake.catalog.drop_table(TABLE)
    publish(lake.pipeline(**keys))

    assert part in str(line)
    assert "orders.yaml:" in str(line)
    assert lake.rows() == {FIRST: ids[:3]}


def test_table_elsewhere_is_refused(lake: LakeToLake) -> None:
    loaded(lake)
    lake.catalog.create_table(TABLE, COLUMNS, location=f"file://{lake.root}/elsewhere")

    with pytest.raises(TargetTableDiffers, match=r"location: expected .*published/orders"):
        lake.pipeline().publish(day(1), "cli", NOW)


@pytest.mark.on_disk
@pytest.mark.follows("TargetTableOwned")
def test_table_of_another_pipeline_is_refused_until_that_gives_it_up(lake: LakeToLake) -> None:
    ids = loaded(lake)
    make(lake)
    with lake.shop.transaction() as changing:
        changing.set_properties({"tidegate.pipeline": "other"})

    line = checked(lake)
    with pytest.raises(TargetTableOwned):
        lake.pipeline().publish(day(1), "cli", NOW)
    with lake.shop.transaction() as changing:
        changing.remove_properties("tidegate.pipeline")
    publish(lake.pipeline())

    assert "belongs to the pipeline 'other'" in str(line)
    assert lake.rows() == {FIRST: ids[:3]}


@pytest.mark.on_disk
@pytest.mark.follows("TargetBranchMissing")
def test_branch_that_is_not_there_is_refused_until_it_is_made(lake: LakeToLake) -> None:
    keys = {"target": {"branch": "audit"}}
    ids = loaded(lake, **keys)
    make(lake)
    other = {"id": 1000, "at": NOW, "amount": 0, "dt": "2026-03-01"}
    lake.shop.append(pa.Table.from_pylist([other], COLUMNS))

    with pytest.raises(TargetBranchMissing, match="found main"):
        lake.pipeline(**keys).publish(day(1), "cli", NOW)
    table = lake.shop
    with table.manage_snapshots() as changing:
        changing.create_branch(table.metadata.refs["main"].snapshot_id, "audit")
    publish(lake.pipeline(**keys))

    assert lake.rows() == {"2026-03-01": [1000]}
    assert lake.rows("audit") == {FIRST: ids[:3], "2026-03-01": [1000]}


def test_first_publish_makes_the_branch_of_a_new_table(lake: LakeToLake) -> None:
    keys = {"target": {"branch": "audit"}}
    ids = loaded(lake, **keys)

    publish(lake.pipeline(**keys))

    assert lake.rows("audit") == {FIRST: ids[:3]}
    assert lake.rows() == {}


@pytest.mark.on_disk
@pytest.mark.follows("TableNamespaceMissing")
def test_namespace_that_is_not_there_is_named(lake: LakeToLake) -> None:
    keys = {"target": {"table": "new.orders"}}
    loaded(lake, **keys)

    told = checked(lake, **keys)
    with pytest.raises(TableNamespaceMissing, match="'new'"):
        lake.pipeline(**keys).publish(day(1), "cli", NOW)

    # Nothing was begun.
    assert not list(lake.target.rglob("part-*"))
    assert told.outcome == "problem"
    assert "expected the namespace 'new' in its catalog, found none" in told.found
    assert "`CREATE NAMESPACE new`" in told.remedy
    lake.catalog.create_namespace("new")
    assert checked(lake, **keys).outcome == "ok"
    publish(lake.pipeline(**keys))

    assert lake.catalog.load_table("new.orders").scan().to_arrow().num_rows == 3


@pytest.mark.follows("TableCatalogUnknown")
def test_catalog_that_is_none_is_named(lake: LakeToLake) -> None:
    keys = {"target": {"catalog": {"name": "lake", "type": "sqll"}}}
    ids = loaded(lake, **keys)

    with pytest.raises(TableCatalogUnknown, match="sqll"):
        lake.pipeline(**keys).publish(day(1), "cli", NOW)
    publish(lake.pipeline())

    assert lake.rows() == {FIRST: ids[:3]}


@pytest.mark.follows("TableColumnUnfit")
def test_column_that_iceberg_has_no_type_for_is_left_out(lake: LakeToLake, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    rows = {"id": [1, 2], "dt": ["a", "b"], "count": pa.array([1, 2], pa.uint32())}
    pq.write_table(pa.table(rows), landing / "a.parquet")
    lake.source = {"kind": "files", "path": str(landing)}
    keys: dict[str, Any] = {
        "event_time": None,
        "commit": {"trigger": "process-time"},
        "target": {"partition_by": {"dt": "dt"}, "catalog": lake.keys["target"]["catalog"]},
    }
    assert "count" in str(checked(lake, **keys))
    load(lake.pipeline(**keys))
    refused = [str(it.error) for it in lake.pipeline(**keys).publish_all("cli", NOW)]
    assert all("column 'count' fits no Iceberg table" in it for it in refused)

    keys["source"] = {"read": {"columns": ["id", "dt"]}}
    lake.pipeline(**keys).drop("cli", NOW)
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))

    assert lake.rows() == {"a": [1], "b": [2]}


def test_target_stays_of_its_kind(lake: LakeToLake) -> None:
    loaded(lake)

    with pytest.raises(PipelineChanged):
        load(lake.pipeline(target={"kind": None, "table": None, "catalog": None}))


def test_keys_of_other_types_are_typed_in_the_table(lake: LakeToLake, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    rows = {
        "id": [1, 2, 3],
        "store": pa.array([7, None, 8], pa.int32()),
        "place": ["x/y", "z", "%"],
    }
    pq.write_table(pa.table(rows), landing / "a.parquet")
    lake.source = {"kind": "files", "path": str(landing)}
    keys: dict[str, Any] = {
        "event_time": None,
        "commit": {"trigger": "process-time"},
        "target": {"partition_by": {"dt": None, "store": "store", "place": "place"}},
    }
    load(lake.pipeline(**keys))

    publish(lake.pipeline(**keys))

    read = lake.shop.scan().to_arrow().sort_by("id").select(["id", "store", "place"])
    assert read.to_pylist() == [
        {"id": 1, "store": 7, "place": "x/y"},
        {"id": 2, "store": None, "place": "z"},
        {"id": 3, "store": 8, "place": "%"},
    ]
    assert isinstance(lake.shop.schema().find_field("store").field_type, IntegerType)
    assert list(lake.pipeline(**keys).findings()) == []


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_column_that_another_writer_took_away_is_not_given_back(
    lake: LakeToLake, change: str
) -> None:
    """It would take the name from rows that stand, or show what was deleted with it."""
    ids = loaded(lake)
    publish(lake.pipeline())
    with lake.shop.update_schema() as update:
        if change == "rename":
            update.rename_column("amount", "total")
        else:
            update.delete_column("amount")
    before = lake.shop.scan().to_arrow()
    late = lake.commit({1: 1})
    load(lake.pipeline())

    assert checked(lake).outcome == "problem"
    with pytest.raises(TargetTableDiffers, match="none any more: it was renamed or dropped"):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.shop.scan().to_arrow() == before
    with lake.shop.update_schema(allow_incompatible_changes=True) as update:
        if change == "rename":
            update.rename_column("total", "amount")
    if change == "rename":
        publish(lake.pipeline())
        assert set(lake.shop.scan().to_arrow()["amount"].to_pylist()) == {1}
        assert lake.rows()[FIRST] == [*ids[:3], *late]


@pytest.mark.on_disk
def test_column_that_differs_by_case_is_not_added_beside_it(lake: LakeToLake) -> None:
    make(lake, COLUMNS.set(0, pa.field("ID", pa.int64())))
    loaded(lake)

    assert checked(lake).outcome == "problem"
    with pytest.raises(TargetTableDiffers, match="a column 'id', found one named 'ID'"):
        lake.pipeline().publish(day(1), "cli", NOW)


@pytest.mark.on_disk
def test_mapping_that_lacks_a_column_is_refused_before_nobody_can_read_it(
    lake: LakeToLake,
) -> None:
    make(lake)
    loaded(lake)
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["at"]}]'
    with lake.shop.transaction() as change:
        change.set_properties({"schema.name-mapping.default": mapping})

    assert checked(lake).outcome == "problem"
    with pytest.raises(TargetTableDiffers, match="found none of amount"):
        lake.pipeline().publish(day(1), "cli", NOW)

    with lake.shop.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    publish(lake.pipeline())
    assert lake.rows()[FIRST] == [1, 2, 3]


def test_key_that_was_renamed_is_told_by_every_command(lake: LakeToLake) -> None:
    loaded(lake)
    publish(lake.pipeline())
    with lake.shop.update_schema() as update:
        update.rename_column("dt", "day")

    assert checked(lake).outcome == "problem"
    (found,) = lake.pipeline().findings()
    assert "partition key 'dt': expected a column of that name" in str(found)
