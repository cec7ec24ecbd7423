"""Types as Spark describes them in JSON, as Hive writes them."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.execute.catalog_types import type_text

TEXT = {"name": "string", "collation": "UTF8_BINARY"}
PRICE = {"name": "decimal", "precision": 5, "scale": 2}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"name": "bigint"}, "bigint"),
        (TEXT, "string"),
        (PRICE, "decimal(5,2)"),
        ({"name": "varchar", "length": 10}, "varchar(10)"),
        ({"name": "array", "element_type": TEXT, "element_nullable": True}, "array<string>"),
        ({"name": "map", "key_type": TEXT, "value_type": PRICE}, "map<string,decimal(5,2)>"),
        (
            {
                "name": "struct",
                "fields": [
                    {"name": "a", "type": {"name": "int"}, "nullable": True},
                    {"name": "B", "type": {"name": "array", "element_type": PRICE}},
                ],
            },
            "struct<a:int,B:array<decimal(5,2)>>",
        ),
    ],
)
def test_type_is_written_as_in_hive(said: dict[str, Any], text: str) -> None:
    assert type_text(said) == text
