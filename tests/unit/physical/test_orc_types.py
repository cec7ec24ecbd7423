"""What Iceberg's attributes say of the columns of ORC files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.physical.arrays import has_type
from tidegate.physical.orc_types import meant
from tidegate.physical.protocol import FIELD_ID


def _attributes(**attributes: str) -> dict[str, str]:
    return {f"iceberg.{name.replace('_', '-')}": value for name, value in attributes.items()}


def test_types_are_those_that_the_attributes_say() -> None:
    fields = [
        pa.field("t", pa.int64(), metadata=_attributes(id="1", long_type="TIME")),
        pa.field("n", pa.int64(), metadata=_attributes(id="2", long_type="LONG")),
        pa.field("u", pa.binary(), metadata=_attributes(id="3", binary_type="UUID")),
        pa.field("f", pa.binary(), metadata=_attributes(id="4", binary_type="FIXED", length="7")),
        pa.field("b", pa.binary(), metadata=_attributes(id="5", binary_type="BINARY")),
        pa.field("us", pa.timestamp("ns"), metadata=_attributes(id="6", timestamp_unit="MICROS")),
        pa.field(
            "ns", pa.timestamp("ns", "UTC"), metadata=_attributes(id="7", timestamp_unit="NANOS")
        ),
        pa.field("plain", pa.timestamp("ns")),
    ]

    found = [meant(field) for field in fields]

    assert [field.type for field in found] == [
        pa.time64("us"),
        pa.int64(),
        pa.binary(16),
        pa.binary(7),
        pa.binary(),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.timestamp("ns"),
    ]
    assert [(field.metadata or {}).get(FIELD_ID) for field in found] == [
        b"1", b"2", b"3", b"4", b"5", b"6", b"7", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.timestamp("ns"), True),
        (pa.struct([("a", pa.list_(pa.timestamp("ns", "UTC")))]), True),
        (pa.map_(pa.string(), pa.timestamp("ns")), True),
        (pa.map_(pa.string(), pa.date32()), False),
        (pa.int64(), False),
    ],
)
def test_timestamps_are_found_at_every_depth(kind: pa.DataType, *, expected: bool) -> None:
    assert has_type(kind, pa.types.is_timestamp) is expected


@pytest.mark.parametrize(
    "attributes",
    [
        {"id": "1a"},
        {"id": ""},
        {"id": "1", "binary_type": "FIXED", "length": "x"},
        {"id": "1", "binary_type": "FIXED", "length": "-7"},
        {"id": "1", "binary_type": "FIXED", "length": str(1 << 31)},
        {"id": "1", "binary_type": "FIXED"},
    ],
)
def test_attribute_without_sense_is_refused(attributes: dict[str, str]) -> None:
    field = pa.field("nested", pa.binary(), metadata=_attributes(**attributes))

    with pytest.raises(pa.ArrowInvalid, match=r"a column of fixed length|column nested is no"):
        meant(pa.field("s", pa.struct([field])))
