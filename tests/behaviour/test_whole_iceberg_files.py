"""Which data files of Iceberg tables are copied, and which deletes, columns and modes forbid it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from iceberg_writer import Spec
from tidegate.errors import SourceFileDamaged, SourceFileGone
from whole_copies import Meanwhile, Twice, WholeIceberg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ID, AT = NestedField(1, "id", LongType()), NestedField(2, "at", TimestamptzType())
NOTE = NestedField(3, "note", StringType())
SCHEMA = Schema(ID, AT, NOTE)
SNAPSHOT = {"read": {"mode": "snapshot"}}
EACH = {"split": {"open_cost": 1 << 40}}
"""Each file is a sub-split of its own, so that it does not matter that it is small."""


def orders(*hours: float, **columns: Any) -> list[dict[str, Any]]:
    """Rows at some hours from noon on."""
    return [
        {"id": number, "at": NOON + timedelta(hours=hour), "note": "x", **columns}
        for number, hour in enumerate(hours)
    ]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.db"


@pytest.fixture
def table(tmp_path: Path) -> WholeIceberg:
    return WholeIceberg(tmp_path / "raw", SCHEMA)


def place(table: WholeIceberg, ledger: str) -> Twice:
    """Give a place where the table is staged by day."""
    described = {
        "source": table.config(start="full", **EACH),
        "event_time": "at",
        "target": {"partition_by": {"dt": "day(at)"}},
    }
    return Twice(table.root.parent, described, ledger)


def staged_twice(table: WholeIceberg, ledger: str, **keys: Any) -> list[str]:
    """Stage both ways and compare; the names of the files that were copied."""
    return [name(path) for path in place(table, ledger).copied(**keys)]


def name(path: str) -> str:
    return path.rpartition("/")[2]


def test_data_file_is_copied(table: WholeIceberg, ledger: str) -> None:
    path = table.append(orders(0, 1))

    assert staged_twice(table, ledger) == [name(path)]


def test_file_written_by_a_library_with_its_own_types_in_memory_is_copied(
    table: WholeIceberg, ledger: str
) -> None:
    inside = StructType(NestedField(5, "x", DoubleType()))
    table.evolve(
        Schema(
            *SCHEMA.fields,
            NestedField(4, "s", inside),
            NestedField(6, "l", ListType(7, LongType(), element_required=False)),
        )
    )
    path = table.append(orders(0, 1, s={"x": 0.5}, l=[1, 2]))

    assert staged_twice(table, ledger) == [name(path)]


def test_delete_file_forbids_it_for_the_files_that_it_applies_to(
    table: WholeIceberg, ledger: str
) -> None:
    deleted = table.append(orders(0, 1, 2))
    table.delete_positions(deleted, 1)
    whole = table.append(orders(3, 4))

    assert staged_twice(table, ledger, source=SNAPSHOT) == [name(whole)]


def test_delete_by_key_forbids_it_for_older_files(table: WholeIceberg, ledger: str) -> None:
    table.append(orders(0, 1, 2))
    table.evolve(Schema(ID))
    table.delete([{"id": 1}], (1,))
    table.evolve(SCHEMA)
    whole = table.append(orders(3, 4))

    assert staged_twice(table, ledger, source=SNAPSHOT) == [name(whole)]


def renamed(table: WholeIceberg) -> None:
    table.append(orders(0, 1))
    table.evolve(Schema(ID, AT, NestedField(3, "remark", StringType())))


def renamed_inside(table: WholeIceberg) -> None:
    table.evolve(Schema(ID, AT, NestedField(3, "s", StructType(NestedField(4, "x", LongType())))))
    table.append([{"id": 1, "at": NOON, "s": {"x": 1}}])
    table.evolve(Schema(ID, AT, NestedField(3, "s", StructType(NestedField(4, "y", LongType())))))


def swapped_inside(table: WholeIceberg) -> None:
    one, other = NestedField(4, "x", LongType()), NestedField(5, "y", LongType())
    table.evolve(Schema(ID, AT, NestedField(3, "s", StructType(one, other))))
    table.append([{"id": 1, "at": NOON, "s": {"x": 1, "y": 2}}])
    one, other = NestedField(5, "x", LongType()), NestedField(4, "y", LongType())
    table.evolve(Schema(ID, AT, NestedField(3, "s", StructType(one, other))))


def swapped_names(table: WholeIceberg) -> None:
    both = [NestedField(4, "a", LongType()), NestedField(5, "b", LongType())]
    table.evolve(Schema(ID, AT, *both))
    table.append([{"id": 1, "at": NOON, "a": 1, "b": 2}])
    table.evolve(Schema(ID, AT, NestedField(4, "b", LongType()), NestedField(5, "a", LongType())))


def swapped_names_and_places(table: WholeIceberg) -> None:
    table.evolve(Schema(ID, AT, NestedField(4, "a", LongType()), NestedField(5, "b", LongType())))
    table.append([{"id": 1, "at": NOON, "a": 1, "b": 2}])
    table.evolve(Schema(ID, AT, NestedField(5, "a", LongType()), NestedField(4, "b", LongType())))


def added(table: WholeIceberg) -> None:
    table.append(orders(0, 1))
    table.evolve(Schema(*SCHEMA.fields, NestedField(4, "more", LongType())))


def dropped(table: WholeIceberg) -> None:
    table.append(orders(0, 1))
    table.evolve(Schema(ID, AT))


def dropped_and_added_again(table: WholeIceberg) -> None:
    table.append(orders(0, 1))
    table.evolve(Schema(ID, AT, NestedField(4, "note", StringType())))


def moved(table: WholeIceberg) -> None:
    table.append(orders(0, 1))
    table.evolve(Schema(AT, ID, NOTE))


def promoted(table: WholeIceberg) -> None:
    table.evolve(Schema(NestedField(1, "id", IntegerType()), AT, NOTE))
    table.append(orders(0, 1))
    table.evolve(SCHEMA)


def required(table: WholeIceberg) -> None:
    table.evolve(Schema(NestedField(1, "id", LongType(), required=True), AT, NOTE))
    table.append(orders(0, 1))


def without_ids(table: WholeIceberg) -> None:
    table.append_table(pa.Table.from_pylist(orders(0, 1)).select(["note", "id", "at"]))


def in_orc(table: WholeIceberg) -> None:
    table.append(orders(0, 1), "orc")


def in_avro(table: WholeIceberg) -> None:
    table.append(orders(0, 1), "avro")


def in_snappy(table: WholeIceberg) -> None:
    table.options["compression"] = "snappy"
    table.append(orders(0, 1))


def whole(table: WholeIceberg) -> None:
    table.append(orders(0, 1))


def by_note(table: WholeIceberg) -> None:
    table.spec = Spec(0, ((1000, "3", "identity", "string"),))
    table.append(orders(0, 1), partition=("x",))


FORBIDDEN: dict[str, tuple[Callable[[WholeIceberg], None], dict[str, Any]]] = {
    "a renamed column": (renamed, {}),
    "a renamed field inside": (renamed_inside, {}),
    "fields inside that swapped their names": (swapped_inside, {}),
    "columns that swapped their names": (swapped_names, {}),
    "columns that swapped names and places": (swapped_names_and_places, {}),
    "an added column": (added, {}),
    "a dropped column": (dropped, {}),
    "another column of the same name": (dropped_and_added_again, {}),
    "another order": (moved, {}),
    "a promoted type": (promoted, {}),
    "a required column": (required, {}),
    "columns by name": (without_ids, {"source": {"assume_names": True}}),
    "ORC": (in_orc, {}),
    "Avro": (in_avro, {}),
    "another codec": (in_snappy, {}),
    "a partition column inside": (by_note, {"target": {"partition_by": {"note": "note"}}}),
    "a metadata column": (
        whole,
        {"source": {"read": {"columns": ["id", "at", "note", "_file"]}}},
    ),
    "some columns": (whole, {"source": {"read": {"columns": ["id", "at"]}}}),
    "columns spelled otherwise": (
        whole,
        {
            "source": {"case_sensitive": False, "read": {"columns": ["ID", "at", "note"]}},
        },
    ),
    "changes": (
        whole,
        {"source": {"read": {"mode": "changelog", "columns": ["id", "at", "_change_type"]}}},
    ),
    "a difference": (
        whole,
        {"source": {"read": {"mode": "snapshot_diff", "columns": ["id", "at", "_change_type"]}}},
    ),
    "deleted rows": (
        whole,
        {"source": {"read": {"mode": "snapshot", "include_deleted": True}}},
    ),
}


@pytest.mark.parametrize("case", FORBIDDEN)
def test_data_file_is_read_because_of(case: str, table: WholeIceberg, ledger: str) -> None:
    make, keys = FORBIDDEN[case]
    make(table)

    assert staged_twice(table, ledger, **keys) == []


def test_columns_of_a_file_by_name_are_copied_where_they_stand_alike(
    table: WholeIceberg, ledger: str
) -> None:
    path = table.append_table(pa.Table.from_pylist(orders(0, 1)))

    assert staged_twice(table, ledger, source={"assume_names": True}) == [name(path)]


def test_key_that_only_the_partition_tells_is_known_of_every_row(
    table: WholeIceberg, ledger: str
) -> None:
    table.spec = Spec(0, ((1000, "3", "identity", "string"),))
    ids = [{"PARQUET:field_id": "1"}, {"PARQUET:field_id": "2"}]
    fields = [
        pa.field("id", pa.int64(), metadata=ids[0]),
        pa.field("at", pa.timestamp("us", "UTC"), metadata=ids[1]),
    ]
    rows = pa.Table.from_pylist(orders(0, 1), pa.schema(fields))
    path = table.append_table(rows, partition=("x",))

    assert staged_twice(
        table, ledger, target={"partition_by": {"dt": "day(at)", "note": "note"}}
    ) == [name(path)]


def test_data_file_that_is_gone_when_it_is_copied_is_named(
    table: WholeIceberg, ledger: str
) -> None:
    path = table.append(orders(0, 1))

    with pytest.raises(SourceFileGone, match=name(path)):
        place(table, ledger).staged(Meanwhile(happens=table.place(path).unlink))


def test_data_file_that_another_one_replaced_is_named(table: WholeIceberg, ledger: str) -> None:
    path = table.append(orders(0, 1))
    other = table.place(table.write(orders(2, 3), "parquet")[0])

    with pytest.raises(SourceFileDamaged, match="footer"):
        place(table, ledger).staged(Meanwhile(happens=lambda: other.rename(table.place(path))))
