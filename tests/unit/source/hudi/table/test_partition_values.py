"""Folders tell the values of partition columns, or the table is refused (HUDI-F1)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidegate.errors import HudiPartitionUnreadable
from tidegate.source.hudi.table.partition_values import partition_values
from tidegate.source.hudi.table.properties import TableProperties

SCHEMA = pa.schema(
    [
        ("p", pa.string()),
        ("n", pa.int32()),
        ("d", pa.date32()),
        ("b", pa.bool_()),
        ("m", pa.decimal128(10, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("f", pa.float64()),
    ]
)
HIVE = "hoodie.datasource.write.hive_style_partitioning=true"
ENCODED = "hoodie.datasource.write.partitionpath.urlencode=true"


def table(fields: str, *lines: str) -> TableProperties:
    said = [
        "hoodie.table.version=9",
        "hoodie.table.type=COPY_ON_WRITE",
        f"hoodie.table.partition.fields={fields}",
        *lines,
    ]
    return TableProperties.parse("trips", "\n".join(said))


def values(properties: TableProperties, folder: str) -> dict[str, Any]:
    (found,) = partition_values(properties, SCHEMA, [folder])
    return {name: item.as_py() for name, item in found.items()}


@pytest.mark.parametrize(
    ("fields", "lines", "folder", "expected"),
    [
        ("p", [], "eu", {"p": "eu"}),
        ("p", [], "a/b", {"p": "a/b"}),
        ("p", [], "x=y", {"p": "x=y"}),
        ("p", [], "50%25", {"p": "50%25"}),
        ("p", [HIVE], "p=x=y", {"p": "x=y"}),
        ("p", [ENCODED], "slash%2Fes", {"p": "slash/es"}),
        ("p", [HIVE, ENCODED], "p=100%2525", {"p": "100%25"}),
        ("p", [HIVE], "p=__HIVE_DEFAULT_PARTITION__", {"p": None}),
        ("n", [HIVE], "n=-3", {"n": -3}),
        ("d", [], "1969-12-31", {"d": date(1969, 12, 31)}),
        ("b", [HIVE], "b=false", {"b": False}),
        ("m", [], "1.50", {"m": Decimal("1.50")}),
        ("p:SIMPLE,n:SIMPLE", [], "eu/7", {"p": "eu", "n": 7}),
        ("p,d", [HIVE], "p=eu/d=2026-01-02", {"p": "eu", "d": date(2026, 1, 2)}),
        ("", [], "", {}),
    ],
)
def test_folder_tells_a_value_of_each_column(
    fields: str, lines: list[str], folder: str, expected: dict[str, Any]
) -> None:
    assert values(table(fields, *lines), folder) == expected


@pytest.mark.parametrize(
    ("fields", "lines", "folder", "said"),
    [
        ("p", [HIVE], "eu", "`p=`"),
        ("n", [], "seven", "int32"),
        ("n", [], "99999999999", "int32"),
        ("d", [], "19723", "date32"),
        ("t", [], "2026-01-01 00:00:00", "timestamp"),
        ("f", [], "1.5", "double"),
        ("p,n", [], "eu", "2 folders, for p, n"),
        ("p,n", [], "eu/a/7", "2 folders, for p, n"),
        ("p", ["hoodie.table.keygenerator.type=TIMESTAMP"], "2026/01/01", "TIMESTAMP"),
        (
            "p",
            ["hoodie.table.keygenerator.class=org.apache.hudi.keygen.TimestampBasedKeyGenerator"],
            "2026/01/01",
            "TimestampBased",
        ),
        ("d:TIMESTAMP", [], "2026/01/01", "partition.fields"),
        (
            "d",
            ["hoodie.datasource.write.slash.separated.date.partitioning=true"],
            "2026/01/01",
            "slash.separated",
        ),
    ],
)
def test_folder_that_does_not_tell_is_refused(
    fields: str, lines: list[str], folder: str, said: str
) -> None:
    with pytest.raises(HudiPartitionUnreadable) as refused:
        values(table(fields, *lines), folder)

    assert said in str(refused.value)
    assert f"'{folder}'" in str(refused.value)
