"""Delete blocks are decoded alike in columns and one by one, for every type of ordering value."""

from __future__ import annotations

import io
import struct
from datetime import date
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.avro_container import write_long
from tidegate.source.hudi.logs import deletes
from tidegate.source.hudi.logs.deletes import Deletes, native_deletes, read_deletes

VALUES: dict[str, list[Any]] = {
    "BooleanWrapper": [True, False],
    "IntWrapper": [5, -3],
    "LongWrapper": [0, 2**40],
    "FloatWrapper": [0.5, -2.0],
    "DoubleWrapper": [0.0, 1e300],
    "StringWrapper": ["", "ä"],
    "DateWrapper": [date(2026, 1, 1), date(1600, 2, 3)],
    "DecimalWrapper": [Decimal("1.500000000000000"), Decimal("-7.000000000000000")],
}


def listed(records: list[tuple[str | None, Any]]) -> bytes:
    """The Avro bytes of a list of keys with ordering values."""
    file = io.BytesIO()
    found = [
        {"recordKey": key, "partitionPath": "p", "orderingVal": value} for key, value in records
    ]
    fastavro.schemaless_writer(file, deletes._SCHEMA, {"deleteRecordList": found})
    return file.getvalue()


def content(encoded: bytes, version: int = 3) -> bytes:
    return struct.pack(">II", version, len(encoded)) + encoded


def said(found: Deletes) -> tuple[list[Any], list[list[Any]]]:
    return found.keys.to_pylist(), [values.to_pylist() for values in found.ordering]


def wrapped(name: str, value: Any) -> tuple[str, dict[str, Any]]:
    return name, {"value": value}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_one_type_are_decoded_in_columns(name: str) -> None:
    records = [(f"k{place}", wrapped(name, it)) for place, it in enumerate(VALUES[name])]
    encoded = listed(records)

    found = read_deletes(content(encoded))

    assert said(found) == (["k0", "k1"], [VALUES[name]])
    alike = deletes._all_alike(encoded)
    assert alike is not None
    assert said(alike) == said(deletes._one_by_one(encoded))


def test_keys_without_ordering_value_have_none() -> None:
    assert said(read_deletes(content(listed([("a", None), ("b", None)])))) == (["a", "b"], [])


def test_int_zero_is_no_ordering_value_and_long_zero_is_one() -> None:
    zero = listed([("a", wrapped("IntWrapper", 0)), ("b", wrapped("IntWrapper", 4))])

    assert said(read_deletes(content(zero))) == (["a", "b"], [[None, 4]])
    assert said(read_deletes(content(listed([("a", wrapped("IntWrapper", 0))])))) == (["a"], [])
    assert said(read_deletes(content(listed([("a", wrapped("LongWrapper", 0))])))) == (
        ["a"],
        [[0]],
    )


def test_values_of_several_types_are_decoded_one_by_one() -> None:
    records = [("a", wrapped("IntWrapper", 5)), ("b", wrapped("LongWrapper", 0))]

    assert said(read_deletes(content(listed(records)))) == (["a", "b"], [[5, 0]])
    assert said(read_deletes(content(listed(records[::-1])))) == (["b", "a"], [[0, 5]])


def test_some_keys_without_value_are_decoded_one_by_one() -> None:
    found = read_deletes(content(listed([("a", wrapped("LongWrapper", 7)), ("b", None)])))

    assert said(found) == (["a", "b"], [[7, None]])


def test_several_ordering_fields_are_several_columns() -> None:
    values = [("StringWrapper", {"value": "x"}), ("LongWrapper", {"value": 2})]
    found = read_deletes(content(listed([("a", ("ArrayWrapper", {"wrappedValues": values}))])))

    assert said(found) == (["a"], [["x"], [2]])


def test_empty_list_has_no_keys() -> None:
    assert said(read_deletes(content(listed([])))) == ([], [])


def test_list_in_several_parts_is_read_to_its_end() -> None:
    one, two = listed([("a", None)]), listed([("b", None), ("c", None)])

    # Each is a count, its records, and the 0 that ends the list.
    assert said(read_deletes(content(one[:-1] + two))) == (["a", "b", "c"], [])


@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_are_refused(version: int) -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match=f"version {version}"):
        read_deletes(content(listed([]), version))


@given(st.data())
def test_damaged_bytes_give_deletes_or_an_error_of_arrow(data: st.DataObject) -> None:
    whole = content(listed([(f"key {place}", wrapped("LongWrapper", place)) for place in range(9)]))
    place = data.draw(st.integers(0, len(whole) - 1))
    value = data.draw(st.integers(0, 255))
    damaged = whole[:place] + bytes([value]) + whole[place + 1 :]
    if data.draw(st.booleans()):
        damaged = whole[:place]

    try:
        found = read_deletes(damaged)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return
    assert all(len(values) == len(found.keys) for values in found.ordering)


@pytest.mark.parametrize("branch", [-1, -(2**40), 13, 2**40])
def test_ordering_value_of_no_known_type_is_an_error_of_arrow(branch: int) -> None:
    encoded = listed([("a", None)])
    # A list of one record: its number, the record with the branch at its end, and the end.
    changed = encoded[:-2] + write_long(branch) + encoded[-1:]

    with pytest.raises(pa.ArrowInvalid):
        read_deletes(content(changed))


def test_long_numbers_are_written_as_avro_does() -> None:
    assert [write_long(it) for it in (0, -1, 1, 64)] == [b"\x00", b"\x01", b"\x02", b"\x80\x01"]


def native(columns: dict[str, pa.Array], *ordering: str) -> Deletes:
    return native_deletes(pa.RecordBatch.from_pydict(columns), "key", ordering)


KEYS = pa.array(["a", "b"])


@pytest.mark.parametrize(
    ("columns", "ordering", "expected"),
    [
        pytest.param({}, (), [], id="no fields"),
        pytest.param({"ts": pa.array([7, None])}, ("ts",), [[7, None]], id="one field"),
        pytest.param({"ts": pa.array([0, 1])}, ("ts",), [[0, 1]], id="long zero"),
        pytest.param({"ts": pa.array([0, 1], pa.int32())}, ("ts",), [[None, 1]], id="int zero"),
        pytest.param({"ts": pa.array([0, 0], pa.int32())}, ("ts",), [], id="int zeros alone"),
        pytest.param({"ts": pa.nulls(2, pa.int64())}, ("ts",), [], id="NULL alone"),
        pytest.param({}, ("ts",), [], id="missing field"),
        pytest.param(
            {"y": pa.array(["p", None]), "x": pa.array([0, None], pa.int32())},
            ("x", "y"),
            [[0, None], ["p", None]],
            id="two fields in the order of the table",
        ),
    ],
)
def test_native_deletes_have_the_columns_of_ordering_fields(
    columns: dict[str, pa.Array], ordering: tuple[str, ...], expected: list[list[Any]]
) -> None:
    assert said(native({"key": KEYS, **columns}, *ordering)) == (["a", "b"], expected)


@pytest.mark.parametrize(
    "columns", [{"other": KEYS}, {"key": pa.array(["a", None])}], ids=["no column", "NULL"]
)
def test_native_deletes_without_keys_are_refused(columns: dict[str, pa.Array]) -> None:
    with pytest.raises(pa.ArrowInvalid, match="expected a column key without NULL"):
        native(columns)
