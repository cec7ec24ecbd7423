"""Avro rows, against what fastavro was given to write."""

from __future__ import annotations

import datetime as dt
import io
import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.avro import AvroRows
from tidegate.physical.avro_container import write_bytes, write_container, write_long
from tidegate.physical.protocol import BATCH_ROWS, FIELD_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Kind:
    """An Avro type, its values, and what they are as Arrow gives them."""

    schema: Any
    values: st.SearchStrategy[Any]
    expected: Callable[[Any], Any] = lambda value: value


def _int(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimal(precision: int, scale: int, carrier: Mapping[str, Any]) -> Kind:
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    values = digits.map(lambda unscaled: Decimal(f"{unscaled}e-{scale}"))
    return Kind({**carrier, **logical}, values)


_moments = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))  # noqa: DTZ001
_utc = _moments.map(lambda moment: moment.replace(tzinfo=dt.UTC))
_floats = st.floats(width=32, allow_nan=False)
_names = (f"n{number}" for number in itertools.count())
LEAVES = [
    Kind("boolean", st.booleans()),
    Kind("int", _int(32)),
    Kind("long", _int(64)),
    Kind("float", _floats),
    Kind("double", st.floats(allow_nan=False)),
    Kind("string", st.text(max_size=5)),
    Kind("bytes", st.binary(max_size=5)),
    Kind({"type": "string"}, st.text(max_size=5)),
    Kind({"type": "fixed", "name": "f3", "size": 3}, st.binary(min_size=3, max_size=3)),
    Kind(
        {"type": "enum", "name": "e2", "symbols": ["UP", "DOWN"]}, st.sampled_from(["UP", "DOWN"])
    ),
    _decimal(9, 2, {"type": "bytes"}),
    _decimal(38, 10, {"type": "bytes"}),
    _decimal(9, 2, {"type": "fixed", "name": "d4", "size": 4}),
    _decimal(38, 0, {"type": "fixed", "name": "d16", "size": 16}),
    Kind({"type": "int", "logicalType": "date"}, st.dates()),
    Kind({"type": "long", "logicalType": "time-micros"}, st.times()),
    Kind({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, _utc),
    Kind(
        {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        _utc,
        lambda moment: moment.replace(tzinfo=None),
    ),
    Kind({"type": "long", "logicalType": "local-timestamp-micros"}, _moments),
]


def _named_anew(schema: Any) -> Any:
    """Give every named type its own name, as Avro wants."""
    if isinstance(schema, list):
        return [_named_anew(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    anew = {key: _named_anew(value) if key != "symbols" else value for key, value in schema.items()}
    if schema["type"] in ("record", "fixed", "enum"):
        anew["name"] = next(_names)
    return anew


def _or_null(kind: Kind) -> st.SearchStrategy[Kind]:
    def build(null_first: bool) -> Kind:
        members = ["null", kind.schema] if null_first else [kind.schema, "null"]
        return Kind(
            members,
            st.none() | kind.values,
            lambda value: None if value is None else kind.expected(value),
        )

    return st.booleans().map(build) if not isinstance(kind.schema, list) else st.just(kind)


def _array(item: Kind) -> Kind:
    return Kind(
        {"type": "array", "items": item.schema},
        st.lists(item.values, max_size=3),
        lambda values: [item.expected(value) for value in values],
    )


def _map(value: Kind) -> Kind:
    return Kind(
        {"type": "map", "values": value.schema},
        st.dictionaries(st.text(max_size=2), value.values, max_size=3),
        lambda pairs: [(key, value.expected(item)) for key, item in pairs.items()],
    )


def _pairs(item: tuple[Kind, Kind]) -> Kind:
    """A map as Iceberg writes one whose keys are no text."""
    record = _record(item, ("key", "value"))
    return Kind(
        {"type": "array", "logicalType": "map", "items": record.schema},
        st.lists(record.values, max_size=3),
        lambda pairs: [tuple(record.expected(pair).values()) for pair in pairs],
    )


def _record(kinds: Sequence[Kind], names: Sequence[str] = "abcdef") -> Kind:
    by_name = dict(zip(names, kinds, strict=False))
    fields = [{"name": name, "type": kind.schema} for name, kind in by_name.items()]
    return Kind(
        {"type": "record", "name": "r", "fields": fields},
        st.fixed_dictionaries({name: kind.values for name, kind in by_name.items()}),
        lambda row: {name: kind.expected(row[name]) for name, kind in by_name.items()},
    )


_leaves = st.sampled_from(LEAVES)
KINDS = st.recursive(
    _leaves | _leaves.flatmap(_or_null),
    lambda inner: (
        inner.flatmap(_or_null)
        | inner.map(_array)
        | inner.map(_map)
        | st.tuples(_leaves, inner).map(_pairs)
        | st.lists(inner, max_size=3).map(_record)
    ),
    max_leaves=5,
)


def _written(schema: Any, rows: Sequence[Any], **options: Any) -> AvroRows:
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, **options)
    return AvroRows(pa.BufferReader(file.getvalue()))


@given(kinds=st.lists(KINDS, min_size=1, max_size=5), data=st.data())
def test_rows_of_any_schema_are_those_that_were_written(
    kinds: list[Kind], data: st.DataObject
) -> None:
    table = _record(kinds)
    rows = data.draw(st.lists(table.values, max_size=8), "rows")
    wanted = data.draw(
        st.lists(st.sampled_from("abcdef"[: len(kinds)]), unique=True, min_size=1), "wanted"
    )

    with _written(_named_anew(table.schema), rows, sync_interval=20) as file:
        batches = [batch for _, batch in file.batches(wanted, 0, file.rows)]

    for batch in batches:
        batch.validate(full=True)
    found = [row for batch in batches for row in batch.to_pylist()]
    expected = [table.expected(row) for row in rows]
    assert found == [{name: row[name] for name in wanted} for row in expected]


def _schema(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "table", "fields": fields}


def test_blocks_before_the_range_are_not_decoded() -> None:
    file = io.BytesIO()
    fastavro.writer(file, _schema(a="string"), [{"a": "x" * 50}] * 100, sync_interval=500)
    whole = file.getvalue()
    first = whole.index(b"x" * 50)
    broken = whole[:first] + b"\xff" * 50 + whole[first + 50 :]

    with AvroRows(pa.BufferReader(broken)) as rows:
        assert sum(batch.num_rows for _, batch in rows.batches(["a"], 50, 100)) == 50
        with pytest.raises(pa.ArrowInvalid, match="Avro block at byte"):
            list(rows.batches(["a"], 0, 100))


def test_block_with_fewer_rows_than_it_says_is_refused() -> None:
    whole = write_container(_schema(a="long"), 5, b"\x02\x04")

    with (
        pytest.raises(pa.ArrowInvalid, match="Avro block"),
        AvroRows(pa.BufferReader(whole)) as file,
    ):
        list(file.batches(["a"], 0, 5))


def test_blocks_are_decoded_together_up_to_a_batch() -> None:
    file = _written(_schema(a="long"), [{"a": n} for n in range(3_000)], sync_interval=100)

    sizes = [batch.num_rows for _, batch in file.batches(["a"], 0, 3_000, 1_000)]

    assert len(file.row_groups) > 20
    assert len(sizes) <= 4
    assert max(sizes) <= 1_000
    assert len(list(file.batches(["a"], 0, 3_000, BATCH_ROWS))) == 1


def test_field_ids_stand_at_every_depth() -> None:
    pair = {
        "type": "record",
        "name": "k5_v6",
        "fields": [
            {"name": "key", "type": "int", "field-id": 5},
            {"name": "value", "type": ["null", "long"], "field-id": 6},
        ],
    }
    place = {
        "type": "record",
        "name": "r9",
        "fields": [{"name": "x", "type": "int", "field-id": 10}],
    }
    schema = {
        "type": "record",
        "name": "table",
        "fields": [
            {"name": "id", "type": "long", "field-id": 1},
            {
                "name": "words",
                "type": ["null", {"type": "array", "items": "string", "element-id": 3}],
                "field-id": 2,
            },
            {
                "name": "by_number",
                "type": {"type": "array", "logicalType": "map", "items": pair},
                "field-id": 4,
            },
            {
                "name": "by_name",
                "type": {"type": "map", "values": place, "key-id": 8, "value-id": 9},
                "field-id": 7,
            },
        ],
    }

    found = _written(schema, []).schema

    def identities(field: pa.Field) -> list[bytes | None]:
        kind = field.type
        inner = [kind.key_field, kind.item_field] if pa.types.is_map(kind) else []
        if not inner:
            inner = [kind.field(index) for index in range(kind.num_fields)]
        own = (field.metadata or {}).get(FIELD_ID)
        return [own, *(identity for child in inner for identity in identities(child))]

    assert [identity for field in found for identity in identities(field)] == [
        str(number).encode() for number in range(1, 11)
    ]
    assert found.field("by_number").type == pa.map_(pa.int32(), pa.int64())
    assert found.field("words").type.value_field.name == "element"


def test_nanoseconds_are_kept() -> None:
    kind = {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}
    file = AvroRows(
        pa.BufferReader(write_container(_schema(at=kind), 1, write_long(1_700_000_000_123_456_789)))
    )

    ((_, batch),) = file.batches(["at"], 0, 1)

    assert batch.schema.field("at").type == pa.timestamp("ns", "UTC")
    assert batch.column("at").cast(pa.int64()).to_pylist() == [1_700_000_000_123_456_789]


def test_uuid_comes_as_its_bytes() -> None:
    kind = {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}
    file = AvroRows(
        pa.BufferReader(write_container(_schema(u=["null", kind]), 1, b"\x02" + b"u" * 16))
    )

    ((_, batch),) = file.batches(["u"], 0, 1)

    assert batch.schema.field("u").type == pa.binary(16)
    assert batch.column("u").to_pylist() == [b"u" * 16]


def test_column_that_is_always_null_is_read() -> None:
    schema = _schema(a="long", nothing="null", b="long", inner=_schema(c="null", d="int"))
    rows = [{"a": 1, "nothing": None, "b": 2, "inner": {"c": None, "d": 3}}]
    schema["fields"][3]["type"]["name"] = "inner"

    ((_, batch),) = _written(schema, rows).batches(["nothing", "inner", "b"], 0, 1)

    assert batch.to_pylist() == [{"nothing": None, "inner": {"c": None, "d": 3}, "b": 2}]


def test_named_type_used_again_is_read() -> None:
    place = {"type": "record", "name": "lake.place", "fields": [{"name": "x", "type": "int"}]}
    rows = [{"a": {"x": 1}, "b": None, "c": {"x": 3}}]

    file = _written(_schema(a=place, b=["null", "lake.place"], c="lake.place"), rows)

    ((_, batch),) = file.batches(["a", "b", "c"], 0, 1)
    assert batch.to_pylist() == rows


@pytest.mark.parametrize(
    ("encoded", "problem"),
    [(write_bytes(bytes(17)), "17 bytes"), (write_bytes(b"\x7f\xff\xff\xff"), "precision")],
    ids=["too-long", "too-many-digits"],
)
def test_decimal_that_does_not_fit_is_refused(encoded: bytes, problem: str) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    file = AvroRows(pa.BufferReader(write_container(_schema(a=kind), 1, encoded)))

    with pytest.raises(pa.ArrowInvalid, match=problem):
        list(file.batches(["a"], 0, 1))


def test_decimal_without_bytes_is_zero() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    file = AvroRows(pa.BufferReader(write_container(_schema(a=["null", kind]), 2, b"\x02\x00\x00")))

    ((_, batch),) = file.batches(["a"], 0, 2)

    assert batch.column("a").to_pylist() == [Decimal("0.0"), None]
