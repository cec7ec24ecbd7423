"""Columns of a target as an Iceberg table has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.config import TargetConfig
from tidegate.errors import TableColumnUnfit
from tidegate.target.iceberg_columns import table_columns


def target(**keys: str) -> TargetConfig:
    table = {"kind": "iceberg", "path": "/lake/orders", "catalog": "lake", "table": "shop.orders"}
    return TargetConfig.model_validate({**table, "partition_by": keys})


def test_keys_come_after_the_columns_of_the_files() -> None:
    files = pa.schema([("id", pa.int64()), ("name", pa.dictionary(pa.int8(), pa.string()))])
    source = pa.schema([("at", pa.timestamp("us")), ("store", pa.int32()), ("price", pa.float64())])

    found = table_columns(target(dt="day(at)", store="store", price="price"), files, source)

    assert found == pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("dt", pa.string()),
            ("store", pa.int32()),
            # The text of a floating-point number is not the number.
            ("price", pa.string()),
        ]
    )


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (pa.schema([("DT", pa.string())]), "column 'DT' .* another column or a partition key"),
        (pa.schema([("n", pa.uint8())]), "column 'n' .* uint8 has no sign"),
    ],
)
def test_column_that_does_not_fit_is_named(files: pa.Schema, problem: str) -> None:
    with pytest.raises(TableColumnUnfit, match=problem):
        table_columns(target(dt="day(at)"), files, pa.schema([("at", pa.timestamp("us"))]))
