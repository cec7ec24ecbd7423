"""Tails of ORC files, against what pyarrow reads of them."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_iceberg import ROOT
from tidegate.physical.orc_tail import has_old_dates, stripes, tail_of

TEXTS = [f"text {number}" for number in range(2_000)]


def _written(rows: int, stripe_rows: int, compression: str) -> bytes:
    file = io.BytesIO()
    table = pa.table({"a": TEXTS[:rows], "b": pa.array(range(rows))})
    size = {"stripe_size": 1, "batch_size": stripe_rows, "row_index_stride": stripe_rows}
    orc.write_table(table, file, compression=compression, **size)
    return file.getvalue()


any_file = given(
    rows=st.integers(1, 2_000),
    stripe_rows=st.sampled_from([10, 50, 200]),
    compression=st.sampled_from(["uncompressed", "zlib", "zstd", "snappy", "lz4"]),
)


@any_file
def test_stripes_of_any_file_hold_its_rows(rows: int, stripe_rows: int, compression: str) -> None:
    file = orc.ORCFile(pa.BufferReader(_written(rows, stripe_rows, compression)))

    found = stripes(file.reader.serialized_file_tail())

    decoded = [file.read_stripe(number).num_rows for number in range(file.nstripes)]
    assert [stripe.rows for stripe in found] == decoded


@any_file
def test_any_stripe_with_a_tail_of_its_own_is_a_file(
    rows: int, stripe_rows: int, compression: str
) -> None:
    whole = _written(rows, stripe_rows, compression)
    tail = orc.ORCFile(pa.BufferReader(whole)).reader.serialized_file_tail()

    tables = []
    for number, stripe in enumerate(stripes(tail)):
        assert stripe.offset is not None
        end = stripe.offset + stripe.size_bytes
        file = orc.ORCFile(pa.BufferReader(whole[:end] + tail_of(tail, number)))
        assert file.nstripes == 1
        tables.append(file.read())

    assert pa.concat_tables(tables).to_pydict() == {"a": TEXTS[:rows], "b": list(range(rows))}


def test_stripes_are_where_the_writer_says() -> None:
    path = min((ROOT / "types_orc_v2" / "table" / "data").rglob("*.orc"))
    tail = orc.ORCFile(str(path)).reader.serialized_file_tail()

    # The first stripe of every ORC file stands behind its three letters.
    assert [stripe.offset for stripe in stripes(tail)] == [3]


@pytest.mark.parametrize(
    "tail", [b"\x12\x05\x1a", b"\x12\x03\x1a\x08\x01", b"\xff", b"\x0f", b"\x12\x02\x1a\x7f"]
)
def test_tail_that_is_none_gives_no_rows_or_is_refused(tail: bytes) -> None:
    try:
        found = stripes(tail)
    except pa.ArrowInvalid:
        return
    assert sum(stripe.rows for stripe in found) == 0


@pytest.mark.parametrize(
    ("footer", "expected"),
    [
        (b"", True),
        (b"\x48\x00", True),
        (b"\x48\x00\x58\x01", True),
        (b"\x48\x00\x58\x02", False),
        (b"\x58\x02", False),
        (b"\x48\x01", False),
        (b"\x48\x02\x58\x01", False),
    ],
    ids=["older", "Java", "both calendars", "one calendar", "one", "Arrow", "Presto"],
)
def test_dates_are_of_both_calendars_where_java_wrote_them_and_does_not_say_otherwise(
    footer: bytes, expected: bool
) -> None:
    footer = b"\x30\x05" + footer

    assert has_old_dates(b"\x12" + bytes([len(footer)]) + footer) is expected
