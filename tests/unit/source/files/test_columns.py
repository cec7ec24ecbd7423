"""A folder has the columns of all its files, in whatever order they come and go."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.source.files.columns import joined
from tidegate.source.named_columns import decode_schema, encode_schema
from tidegate.source.promotion import cast_to

NOTHING = pa.schema([])
KINDS = [
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.decimal128(5, 2),
    pa.decimal128(9, 2),
    pa.date32(),
    pa.timestamp("ms"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.null(),
    pa.dictionary(pa.int8(), pa.string()),
]
SCHEMAS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(KINDS)).map(
    lambda columns: pa.schema(columns.items())
)


@given(st.lists(SCHEMAS, max_size=5), st.integers(0, 5))
def test_columns_are_kept_and_only_widened_however_files_are_divided(
    files: list[pa.Schema], at: int
) -> None:
    whole = joined(NOTHING, files)
    first = joined(NOTHING, files[:at])

    assert joined(first, files[at:]) == whole
    assert set(whole.names) == {name for schema in files for name in schema.names}
    assert whole.names[: len(first)] == first.names
    for column in first:
        wider = whole.field(column.name).type
        assert wider == column.type or cast_to(column.type, wider) is not None
    assert decode_schema(encode_schema(whole)) == whole


@pytest.mark.parametrize(
    ("known", "found", "both"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int32(), pa.string(), pa.int32()),
        (pa.null(), pa.string(), pa.string()),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
        (
            pa.struct([("a", pa.int32())]),
            pa.struct([("b", pa.string()), ("a", pa.int64())]),
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
        (
            pa.list_(pa.int32()),
            pa.large_list(pa.int64()),
            pa.list_(pa.field("element", pa.int64())),
        ),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), pa.int64()),
        ),
        (pa.struct([("a", pa.int32())]), pa.int32(), pa.struct([("a", pa.int32())])),
        (pa.struct([("a", pa.int32())]), pa.null(), pa.struct([("a", pa.int32())])),
        (pa.null(), pa.list_(pa.null()), pa.list_(pa.field("element", pa.null()))),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("ns"), pa.timestamp("us"), pa.timestamp("ns")),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "Z"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.date32(), pa.timestamp("us")),
        (pa.time32("ms"), pa.time64("us"), pa.time64("us")),
        (pa.time64("ns"), pa.time32("s"), pa.time64("ns")),
    ],
)
def test_type_is_the_one_as_which_both_can_be_read(
    known: pa.DataType, found: pa.DataType, both: pa.DataType
) -> None:
    first = joined(NOTHING, [pa.schema([("c", known)])])

    assert joined(first, [pa.schema([("c", found)])]).field("c").type == both
