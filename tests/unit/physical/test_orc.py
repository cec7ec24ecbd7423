"""ORC rows: what the attributes of Iceberg's writers mean, and what pyarrow's reader cannot do."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from golden_iceberg import ROOT
from tidegate.physical import UnreadableValue
from tidegate.physical.orc import OrcRows
from tidegate.physical.protocol import FIELD_ID


def _rows(columns: dict[str, Any], **options: Any) -> OrcRows:
    file = io.BytesIO()
    orc.write_table(pa.table(columns), file, **options)
    return OrcRows(pa.BufferReader(file.getvalue()))


def _golden(case: str) -> OrcRows:
    path = min((ROOT / case / "table" / "data").rglob("*.orc"))
    return OrcRows(pa.OSFile(str(path)))


@pytest.mark.parametrize("batch_rows", [10, 100_000], ids=["scanned", "whole"])
def test_only_the_stripes_of_the_range_are_read(batch_rows: int) -> None:
    texts = [f"text {number}" for number in range(1_000)]
    file = io.BytesIO()
    table = pa.table({"a": pa.array(texts), "b": pa.array(texts)})
    orc.write_table(table, file, stripe_size=1, batch_size=100, row_index_stride=100)
    whole = file.getvalue()
    groups = OrcRows(pa.BufferReader(whole)).row_groups
    start, end = groups[2].offset or 0, groups[4].offset or 0
    tail = (groups[-1].offset or 0) + groups[-1].size_bytes
    # What is not wanted is overwritten: who reads it, fails.
    lost = bytearray(whole)
    lost[3:start] = b"\xff" * (start - 3)
    lost[end:tail] = b"\xff" * (tail - end)
    first = sum(group.rows for group in groups[:2])
    last = sum(group.rows for group in groups[:3]) + 2
    expected = texts[first + 5 : last]

    with OrcRows(pa.BufferReader(bytes(lost))) as rows:
        found = [batch for _, batch in rows.batches(["b"], first + 5, last, batch_rows)]

    assert [text for batch in found for text in batch.column("b").to_pylist()] == expected


def test_reading_that_is_left_early_leaves_the_file_to_others() -> None:
    rows = _rows(
        {"a": pa.array([f"text {number}" for number in range(5_000)])},
        stripe_size=1,
        batch_size=500,
        row_index_stride=500,
    )

    for _ in range(50):
        position, batch = next(rows.batches(["a"], 1_700, 5_000, 64))

        assert position == 1_700
        assert batch.column("a")[0].as_py() == "text 1700"


@pytest.mark.parametrize("wanted", [["a.b"], ["a"], ["a", "a.b"], ["a.b", "a"], ["x", "a.b"]])
def test_column_whose_name_is_a_path_is_not_taken_for_a_nested_field(wanted: list[str]) -> None:
    columns = {
        "a.b": pa.array([1, 2]),
        "a": pa.array([{"b": "x", "c": 1}, None]),
        "x": pa.array([5, 6]),
    }

    with _rows(columns) as rows:
        ((_, batch),) = rows.batches(wanted, 0, 2)

    assert batch.schema.names == wanted
    assert batch.to_pydict() == {name: columns[name].to_pylist() for name in wanted}


def test_wanted_struct_comes_with_all_its_fields() -> None:
    columns = {"a": pa.array([{"b": "x", "c": {"d": [1]}}]), "b": pa.array(["other"])}

    with _rows(columns) as rows:
        ((_, batch),) = rows.batches(["a"], 0, 1)

    assert batch.to_pylist() == [{"a": {"b": "x", "c": {"d": [1]}}}]


def test_field_ids_stand_at_every_depth() -> None:
    with _golden("types_orc_v2") as rows:
        schema = rows.schema

    inner = schema.field("ll").type.value_field
    assert schema.field("ll").metadata == {FIELD_ID: b"17"}
    assert inner.metadata == {FIELD_ID: b"23"}
    assert inner.type.value_field.metadata == {FIELD_ID: b"24"}
    assert schema.field("mi").type.key_field.metadata == {FIELD_ID: b"27"}
    assert schema.field("mi").type.item_field.metadata == {FIELD_ID: b"28"}
    assert schema.field("st").type.field("c").type.field("d").metadata == {FIELD_ID: b"32"}


def test_types_inside_of_others_are_brought_into_their_meaning() -> None:
    # pyarrow writes no attributes: the schema says what the columns of this file stand for.
    kinds = pa.struct([pa.field("t", pa.int64()), pa.field("u", pa.list_(pa.binary()))])
    row = {"t": 3_600_000_000, "u": [b"u" * 16, None]}
    rows = _rows({"a": pa.array([row, None, row], kinds)})
    inner = pa.field("u", pa.list_(pa.field("element", pa.binary(16))))
    rows._schema = pa.schema([pa.field("a", pa.struct([pa.field("t", pa.time64("us")), inner]))])

    ((_, batch),) = rows.batches(["a"], 1, 3)

    batch.validate(full=True)
    assert batch.column("a").type == rows.schema.field("a").type
    first, second = batch.column("a").to_pylist()
    assert first is None
    assert (second["t"].hour, second["u"]) == (1, [b"u" * 16, None])


@pytest.mark.parametrize("wanted", [["id", "ts"], ["tz"], ["id", "ts", "tz"]])
def test_timestamp_out_of_the_range_of_nanoseconds_names_its_column(wanted: list[str]) -> None:
    with _golden("orc_far_timestamps_v2") as rows, pytest.raises(UnreadableValue) as refused:
        list(rows.batches(wanted, 0, rows.rows))

    assert refused.value.column == next(name for name in wanted if name != "id")
    assert "out of range for nanosecond" in refused.value.problem


def test_timestamp_out_of_range_does_not_matter_in_another_column() -> None:
    with _golden("orc_far_timestamps_v2") as rows:
        ((_, batch),) = rows.batches(["id"], 0, rows.rows)

    assert batch.column("id").to_pylist() == [1, 2, 3, 4]


def test_rows_with_many_bytes_come_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{number:04}" * 250 for number in range(400)]
    monkeypatch.setattr("tidegate.physical.orc.BATCH_BYTES", 200_000)

    with _rows({"a": pa.array(texts)}, compression="uncompressed") as rows:
        batches = [batch for _, batch in rows.batches(["a"], 0, 400)]

    assert max(batch.num_rows for batch in batches) < 60
    assert [text for batch in batches for text in batch.column("a").to_pylist()] == texts
