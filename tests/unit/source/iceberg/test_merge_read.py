"""Golden tables with deletes are read the same however little memory there is, by any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden_iceberg import Golden, answers, expected_lines, golden, golden_copy, lines, read
from tidegate.errors import MissingFieldIds, TidegateError
from tidegate.model.instant import InstantRange
from tidegate.source.iceberg.deletes import loading as module
from tidegate.source.iceberg.deletes.cache import DeleteCache

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.plan import Piece, Pin
    from tidegate.source.iceberg import IcebergSource

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MERGED = [
    "eq_multi_ids_v2",
    "eq_partition_v2",
    "eq_pos_mix_v2",
    "eq_schema_evolution_v2",
    "eq_v3",
    "flink_upsert_v2",
    "mor_avro_v2",
    "mor_orc_v3",
    "mor_partition_scope_v2",
]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELETES", DeleteCache())


def _snapshot(table: Golden, **keys: Any) -> tuple[IcebergSource, Pin, list[Piece]]:
    source = table.source(**{"read": {"mode": "snapshot"}, **keys})
    pin = source.timeline.pin(NOW)
    assert pin.head
    return source, pin, list(source.slicing.units(pin, InstantRange(None, pin.head)))


@pytest.mark.parametrize("case", MERGED)
@pytest.mark.parametrize("memory", ["1B", "2KiB", "256MiB"])
def test_head_is_the_engines_with_any_memory(case: str, memory: str) -> None:
    source, pin, pieces = _snapshot(golden(case), split={"max_delete_memory": memory})

    assert lines(read(source, pin, pieces)) == expected_lines(answers(case)["head"])


def test_head_read_by_many_threads_is_the_engines_in_each() -> None:
    case = "flink_upsert_v2"
    source, pin, pieces = _snapshot(golden(case))

    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: read(source, pin, pieces), range(8)))

    assert all(lines(table) == expected_lines(answers(case)["head"]) for table in tables)


def test_keys_are_hidden_where_their_columns_do_not_come_out() -> None:
    read_only = {"mode": "snapshot", "columns": ["p"]}
    source, pin, pieces = _snapshot(golden("eq_v2"), read=read_only)
    assert any(piece.slice.deltas for piece in pieces)

    table = read(source, pin, pieces)

    head = answers("eq_v2")["head"]
    index = next(number for number, (name, _) in enumerate(head["columns"]) if name == "p")
    assert table.column_names == ["p"]
    assert sorted(map(repr, table["p"].to_pylist())) == sorted(
        repr(row[index]) for row in head["rows"]
    )


@pytest.mark.parametrize("case", ["mor_v2", "mor_v3", "eq_v2", "mor_orc_v2", "mor_avro_v2"])
@pytest.mark.parametrize("part", range(6))
def test_delete_file_damaged_in_any_part_is_an_error_or_changes_nothing(
    case: str, part: int, tmp_path: Path
) -> None:
    table = golden_copy(case, tmp_path)
    source, pin, pieces = _snapshot(table)
    paths = {delta.path for piece in pieces for delta in piece.slice.deltas}
    for path in paths:
        (file,) = table.folder.rglob(path.rpartition("/")[2])
        raw = file.read_bytes()
        low, high = len(raw) * part // 6, len(raw) * (part + 1) // 6
        file.write_bytes(raw[:low] + b"\xff" * (high - low) + raw[high:])

    found, error = _outcome(source, pin, pieces)

    if found is not None:
        assert lines(found) == expected_lines(answers(case)["head"])
    else:
        assert any(path in str(error) for path in paths)


def _outcome(
    source: IcebergSource, pin: Pin, pieces: list[Piece]
) -> tuple[pa.Table | None, TidegateError | None]:
    try:
        return read(source, pin, pieces), None
    except TidegateError as refused:
        return None, refused


def test_files_without_ids_are_read_by_name_where_that_is_allowed(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    for path in table.folder.rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        plain = [pa.field(field.name, field.type) for field in rows.schema]
        pq.write_table(rows.cast(pa.schema(plain)), path)

    source, pin, pieces = _snapshot(table, assume_names=True)

    assert lines(read(source, pin, pieces)) == expected_lines(answers("append_v2")["head"])
    strict, pin, pieces = _snapshot(table)
    with pytest.raises(MissingFieldIds):
        read(strict, pin, pieces)
