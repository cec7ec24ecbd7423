"""What a marker tells of files of text is read again as it was, through JSON."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidegate.model.part_format import CsvForm, PartFormat
from tidegate.target.told_columns import tell, told

COLUMNS = pa.schema(
    [
        *((f"whole{number}", kind) for number, kind in enumerate((pa.int8(), pa.uint64()))),
        ("text", pa.large_string()),
        ("price", pa.decimal128(38, 4)),
        ("at", pa.timestamp("us", "Europe/Berlin")),
        ("local", pa.timestamp("ns")),
        ("clock", pa.time64("us")),
        ("day", pa.date32()),
        ("lists", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.string()))))),
        ("record", pa.struct([("a, b: c>", pa.float32()), ("at", pa.timestamp("ms", "UTC"))])),
        ("nothing", pa.null()),
    ]
)


@pytest.mark.parametrize(
    "form",
    [
        PartFormat("json", "none"),
        PartFormat(
            "csv", "none", CsvForm(header=False, delimiter=";", null_value="NULL", quote="'")
        ),
    ],
    ids=["json", "csv"],
)
def test_told_after_json_is_what_was_told(form: PartFormat) -> None:
    written = json.loads(json.dumps(tell(form, COLUMNS)))

    found, columns = told(written)

    assert found == form
    assert columns == COLUMNS


def test_told_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="'huge_int'"):
        told({"format": "json", "columns": [{"name": "x", "type": "huge_int"}]})
