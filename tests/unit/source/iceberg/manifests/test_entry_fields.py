"""Fields of a manifest entry are what was written, however the writer divides maps and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
)

from tidegate.source.iceberg.manifests.entry_fields import record_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME, COUNTS, BOUNDS, OFFSETS, ROWS = 1, 2, 3, 4, 5
SCHEMA = Schema(
    NestedField(NAME, "name", StringType(), required=False),
    NestedField(COUNTS, "counts", MapType(11, IntegerType(), 12, LongType()), required=False),
    NestedField(BOUNDS, "bounds", MapType(13, IntegerType(), 14, BinaryType()), required=False),
    NestedField(OFFSETS, "offsets", ListType(15, LongType()), required=False),
    NestedField(ROWS, "rows", LongType(), required=True),
)

# Counts, offsets and field ids are not negative; pyiceberg reads many at a time as unsigned.
_counts = st.integers(0, 2**63 - 1)
_ids = st.integers(0, 6) | st.just(2**31 - 1)
_records = st.fixed_dictionaries(
    {
        "name": st.none() | st.text(max_size=5),
        "counts": st.none() | st.dictionaries(_ids, _counts, max_size=5),
        "bounds": st.none() | st.dictionaries(_ids, st.binary(max_size=5), max_size=5),
        "offsets": st.none() | st.lists(_counts, max_size=5),
        "rows": st.integers(-(2**63), 2**63 - 1),
    }
)


@given(
    records=st.lists(_records, max_size=6),
    metric_ids=st.lists(_ids, unique=True, max_size=4),
    width=st.integers(1, 6),
    sized=st.booleans(),
    wanted=st.permutations([NAME, COUNTS, BOUNDS, OFFSETS, ROWS, 99]),
)
def test_fields_of_records_in_a_row_are_what_was_written(
    records: list[dict[str, Any]],
    metric_ids: list[int],
    width: int,
    sized: bool,
    wanted: list[int],
) -> None:
    encoder = _Encoder(width, sized)
    decoder = new_decoder(b"".join(map(encoder.record, records)))
    read = record_reader(SCHEMA, wanted, metric_ids)

    found = [dict(zip(wanted, read(decoder), strict=True)) for _ in records]

    assert found == [_expected(record, metric_ids) | {99: None} for record in records]


@given(records=st.lists(_records, min_size=1, max_size=3), sized=st.booleans())
def test_fields_that_are_not_wanted_are_passed_over(
    records: list[dict[str, Any]], sized: bool
) -> None:
    encoder = _Encoder(2, sized)
    decoder = new_decoder(b"".join(map(encoder.record, records)))
    read = record_reader(SCHEMA, [ROWS, NAME], [1, 2])

    assert [read(decoder) for _ in records] == [(it["rows"], it["name"]) for it in records]


def _expected(record: dict[str, Any], metric_ids: Sequence[int]) -> dict[int, Any]:
    counts, bounds, offsets = record["counts"], record["bounds"], record["offsets"]
    # No numbers at all are as good as no map.
    return {
        NAME: record["name"],
        COUNTS: [counts.get(each) for each in metric_ids] if counts and metric_ids else None,
        BOUNDS: None if bounds is None else [bounds.get(each) for each in metric_ids],
        OFFSETS: None if offsets is None else tuple(offsets),
        ROWS: record["rows"],
    }


class _Encoder:
    """Writes Avro as the specification says; blocks have `width` items, and their size if asked."""

    def __init__(self, width: int, sized: bool) -> None:
        self._width = width
        self._sized = sized

    def record(self, record: dict[str, Any]) -> bytes:
        pairs = {
            name: None if record[name] is None else list(record[name].items())
            for name in ("counts", "bounds")
        }
        return b"".join(
            (
                self._optional(record["name"], lambda text: _bytes(text.encode())),
                self._optional(
                    pairs["counts"],
                    lambda items: self._blocks([_long(key) + _long(it) for key, it in items]),
                ),
                self._optional(
                    pairs["bounds"],
                    lambda items: self._blocks([_long(key) + _bytes(it) for key, it in items]),
                ),
                self._optional(
                    record["offsets"], lambda items: self._blocks([_long(it) for it in items])
                ),
                _long(record["rows"]),
            )
        )

    @staticmethod
    def _optional(value: Any, encode: Any) -> bytes:
        return _long(0) if value is None else _long(1) + encode(value)

    def _blocks(self, items: list[bytes]) -> bytes:
        found = b""
        for first in range(0, len(items), self._width):
            block = items[first : first + self._width]
            content = b"".join(block)
            head = _long(-len(block)) + _long(len(content)) if self._sized else _long(len(block))
            found += head + content
        return found + _long(0)


def _long(value: int) -> bytes:
    rest = ((value << 1) ^ (value >> 63)) & (2**64 - 1)
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value
