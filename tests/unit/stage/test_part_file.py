"""A part file says what was written, and its columns get a dictionary where that pays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate.stage.part_file import dictionary_columns


def test_dictionary_columns_repeated_values_get_one_and_unique_ones_none() -> None:
    size = 5_000
    order = np.arange(size)
    rows = pa.RecordBatch.from_pydict(
        {
            "unique": pa.array([f"order-{number}" for number in order]),
            "region": pa.array(["eu", "us"] * (size // 2)),
            "id": pa.array(order),
            "quantity": pa.array(order % 7),
            "sorted": pa.array(order // 1_000),
            "tags": pa.array([["a"]] * size),
            "label": pa.array(["x"] * size).dictionary_encode(),
        }
    )

    assert dictionary_columns(rows) == ["region", "quantity", "sorted", "label"]


def test_dictionary_columns_many_values_of_many_more_rows_get_one_while_it_fits_a_page() -> None:
    size, random = 1 << 18, np.random.default_rng(7)
    prices, customers = random.integers(15_000, size=size), random.integers(60_000, size=size)
    rows = pa.RecordBatch.from_pydict(
        {
            "price": pa.array(prices / 100),
            "customer": pa.array(customers),
            "long": pa.array([f"{price:0100}" for price in prices]),
        }
    )

    assert dictionary_columns(rows) == ["price"]
    assert dictionary_columns(rows.slice(0, 50_000)) == []


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal256(60, 2),
        pa.float16(),
        pa.time64("us"),
        pa.binary(3),
        pa.null(),
        pa.duration("us"),
    ],
    ids=str,
)
def test_dictionary_columns_rare_types_do_not_fail(kind: pa.DataType) -> None:
    dictionary_columns(pa.RecordBatch.from_arrays([pa.nulls(10, kind)], ["x"]))
