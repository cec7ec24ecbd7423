"""Columns of a target as Hive names their types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.config import TargetConfig
from tidegate.errors import ColumnUnlistable
from tidegate.target.listed_columns import hive_type, listed_columns

METASTORE = {"uri": "thrift://metastore:9083", "table": "shop.orders"}


def target(**keys: str) -> TargetConfig:
    return TargetConfig.model_validate(
        {"path": "/lake/orders", "metastore": METASTORE, "partition_by": keys}
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.decimal128(12, 3), "decimal(12,3)"),
        (pa.decimal256(50, 3), None),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.time64("us"), None),
        (pa.large_string(), "string"),
        (pa.binary(16), "binary"),
        (pa.list_(pa.struct([("a", pa.int8()), ("b", pa.float32())])),
         "array<struct<a:tinyint,b:float>>"),
        (pa.map_(pa.string(), pa.list_(pa.date32())), "map<string,array<date>>"),
        (pa.struct([("a", pa.time32("s"))]), None),
        (pa.map_(pa.string(), pa.duration("s")), None),
    ],
)  # fmt: skip
def test_type_is_named_as_in_hive(kind: pa.DataType, expected: str | None) -> None:
    assert hive_type(kind) == expected


def test_keys_have_the_types_by_which_readers_find_directories() -> None:
    source = pa.schema([("at", pa.timestamp("us")), ("shop", pa.int32()), ("price", pa.float64())])
    made = target(dt="day(at)", hour="hour(at)", month="month(at)", shop="shop", price="price")

    found = listed_columns(made, pa.schema([("Id", pa.int64())]), source)

    assert {key.name: key.type for key in found.keys} == {
        "dt": "date",
        "hour": "string",
        "month": "string",
        "shop": "int",
        "price": "string",
    }
    assert [column.name for column in found.columns] == ["id"]


@pytest.mark.parametrize(
    ("names", "column"), [(["Id", "ID"], "ID"), (["DT"], "DT"), (["at", "dt"], "dt")]
)
def test_names_that_hive_takes_for_one_are_refused(names: list[str], column: str) -> None:
    files = pa.schema([(name, pa.int64()) for name in names])

    with pytest.raises(ColumnUnlistable, match=f"column '{column}'"):
        listed_columns(target(dt="day(at)"), files, pa.schema([("at", pa.date32())]))
