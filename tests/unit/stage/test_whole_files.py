"""What is decided by the footer alone, where whole pipelines cannot be made to come so far."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from hooked_reader import piece_of
from tidegate.errors import ColumnMissing
from tidegate.model.partition import Partition, PartitionField, Transform
from tidegate.physical import ParquetRows
from tidegate.physical.whole_file import WholeFile
from tidegate.stage.part_writers import WriteLimits
from tidegate.stage.sub_split import StageSpec
from tidegate.stage.whole_files import WholeFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.model.plan import Piece

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
DAY = PartitionField("dt", "at", Transform.DAY)


def orders(rows: int, step: timedelta = timedelta(seconds=1)) -> pa.Table:
    return pa.table([list(range(rows)), [NOON + n * step for n in range(rows)]], SCHEMA)


class Reader:
    """Gives each piece the same file."""

    def __init__(self, constants: Mapping[str, pa.Scalar] | None = None, **options: Any) -> None:
        file = io.BytesIO()
        pq.write_table(options.pop("table", orders(2)), file, **{"compression": "zstd", **options})
        with ParquetRows(pa.BufferReader(file.getvalue())) as rows:
            self.footer, names = rows.footer, tuple(rows.schema.names)
        self.file = WholeFile("/raw/a.parquet", self.footer, names, constants or {})

    def whole_file(self, piece: Piece) -> WholeFile | None:
        return self.file if piece.path == "/raw/a.parquet" else None


def decided(reader: Reader, **spec: Any) -> Partition | None:
    """The partition that the file is copied into, if it is."""
    how = StageSpec(
        **{"fields": (DAY,), "event_time": "at", "counts_until": NOON + timedelta(9), **spec}
    )
    part = WholeFiles(reader, SCHEMA, how).part(piece_of("/raw/a.parquet", 2, 1000))
    return part.partition if part else None


def test_file_of_one_day_goes_where_its_rows_go() -> None:
    assert decided(Reader()) == Partition((("dt", "2026-03-01"),))


class NoService(pe.KmsClient):  # type: ignore[misc]  # pyarrow has no types
    """A key service that hands out what it gets."""

    def wrap_key(self, key: bytes, _name: str) -> bytes:
        return key.hex().encode()

    def unwrap_key(self, key: bytes, _name: str) -> bytes:
        return bytes.fromhex(key.decode())


def test_file_with_an_encrypted_column_is_read() -> None:
    factory = pe.CryptoFactory(lambda _: NoService())
    how = pe.EncryptionConfiguration(
        footer_key="f", plaintext_footer=True, column_keys={"c": ["id"]}
    )
    keys = factory.file_encryption_properties(pe.KmsConnectionConfig(), how)

    assert decided(Reader(encryption_properties=keys)) is None


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        pytest.param(WriteLimits(group_rows=6), {"row_group_size": 97}, id="rows of a group"),
        pytest.param(WriteLimits(group_bytes=200), {}, id="bytes of a group"),
        pytest.param(WriteLimits(file_bytes=500), {"row_group_size": 50}, id="bytes of the file"),
        pytest.param(WriteLimits(), {"row_group_size": 50}, id="many tiny groups"),
    ],
)
def test_file_of_other_sizes_is_read(limits: WriteLimits, options: dict[str, Any]) -> None:
    table = orders(100)

    assert decided(Reader(table=table, **options), limits=limits) is None
    assert decided(Reader(table=table)) is not None


def test_file_may_pass_the_configured_size_by_its_last_row_group() -> None:
    reader = Reader(table=orders(100))
    length, last = reader.footer.end.length, reader.footer.last_group_bytes

    assert decided(reader, limits=WriteLimits(file_bytes=length - last)) is not None
    assert decided(reader, limits=WriteLimits(file_bytes=length - last - 1)) is None


def test_file_of_a_partition_that_is_not_rebuilt_is_read() -> None:
    this, other = (Partition((("dt", f"2026-03-0{day}"),)) for day in (1, 2))

    assert decided(Reader(), only=frozenset({this})) == this
    assert decided(Reader(), only=frozenset({other})) is None


def test_times_up_to_the_tolerance_count_and_the_next_ones_do_not() -> None:
    reader = Reader(table=orders(2, timedelta(microseconds=1)))

    assert decided(reader, counts_until=NOON + timedelta(microseconds=1)) is not None
    assert decided(reader, counts_until=NOON) is None


def test_same_hour_of_another_day_is_another_hour() -> None:
    hour = PartitionField("h", "at", Transform.HOUR)
    reader = Reader(table=orders(2, timedelta(days=1)))

    assert decided(reader, fields=(DAY, hour)) is None
    assert decided(reader, fields=(hour,)) is None


def test_event_time_that_is_no_column_is_refused_as_by_reading() -> None:
    with pytest.raises(ColumnMissing, match="when"):
        decided(Reader(), event_time="when")
