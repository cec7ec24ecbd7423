"""INT96 columns are marked at any depth, and no other column is."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.physical.int96 import is_zoneless, with_marks

MOMENT = datetime(1600, 1, 1)  # noqa: DTZ001 (a wall clock, before nanoseconds in 64 bits)
TIME = pa.timestamp("us")
COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "plain": (TIME, MOMENT),
    "struct": (pa.struct([("n", pa.int64()), ("t", TIME)]), {"n": 1, "t": MOMENT}),
    "list": (pa.list_(TIME), [MOMENT]),
    "map": (pa.map_(pa.string(), TIME), [("k", MOMENT)]),
    "deep": (pa.list_(pa.struct([("t", TIME), ("s", pa.string())])), [{"t": MOMENT, "s": "x"}]),
}


def _schemas(names: list[str], *, int96: bool) -> tuple[pa.Schema, pq.ParquetSchema]:
    columns = {"first": pa.array([1])}
    columns |= {name: pa.array([COLUMNS[name][1]], COLUMNS[name][0]) for name in names}
    sink = io.BytesIO()
    pq.write_table(
        pa.table({**columns, "last": ["x"]}), sink, use_deprecated_int96_timestamps=int96
    )
    file = pq.ParquetFile(io.BytesIO(sink.getvalue()), coerce_int96_timestamp_unit="us")
    return file.schema_arrow, file.schema


def _marked(fields: Any, above: str = "") -> set[str]:
    found: set[str] = set()
    for field in fields:
        place = f"{above}{field.name}"
        found |= {place} if is_zoneless(field) else set()
        kind = field.type
        if pa.types.is_struct(kind):
            found |= _marked(kind, f"{place}.")
        elif pa.types.is_list(kind):
            found |= _marked([kind.value_field], f"{place}.")
        elif pa.types.is_map(kind):
            found |= _marked([kind.key_field, kind.item_field], f"{place}.")
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_times_of_a_column_are_marked_wherever_they_stand(name: str) -> None:
    schema, leaves = _schemas([name], int96=True)

    found = with_marks(schema, leaves)

    inner = {"struct": ".t", "list": ".element", "map": ".value", "deep": ".element.t"}
    assert _marked(found) == {f"{name}{inner.get(name, '')}"}
    assert found.equals(schema)


def test_marks_of_one_column_do_not_slip_to_the_next() -> None:
    schema, leaves = _schemas(list(COLUMNS), int96=True)

    assert _marked(with_marks(schema, leaves)) == {
        *("plain", "struct.t", "list.element", "map.value", "deep.element.t")
    }


def test_file_without_int96_keeps_its_schema() -> None:
    schema, leaves = _schemas(list(COLUMNS), int96=False)

    assert with_marks(schema, leaves) is schema


def test_metadata_of_fields_and_schema_stay() -> None:
    schema, leaves = _schemas(["plain"], int96=True)
    named = schema.set(1, schema.field(1).with_metadata({"k": "v"})).with_metadata({"a": "b"})

    found = with_marks(named, leaves)

    assert found.metadata == {b"a": b"b"}
    assert found.field("plain").metadata[b"k"] == b"v"
