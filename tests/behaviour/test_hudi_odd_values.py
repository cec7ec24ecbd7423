"""Odd names, values and types of written Hudi tables are read as they are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hudi_windows import between, opened, rows, state
from hudi_writer import PLAIN, Columns, HudiTable, Rows, gone
from tidegate.errors import HudiPartitionUnreadable, HudiSchemaUnsupported

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "0000-1"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
FORMATS = pytest.mark.parametrize("parquet", [False, True], ids=["avro", "parquet"])

# ── Partitions ──

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
FOLDERS: dict[str, Any] = {
    "2026-01-01": "2026-01-01",
    NULL_FOLDER: None,
    "ä ö/ü": "ä ö/ü",
    "日本": "日本",
    "a=b": "a=b",
    "a%20b": "a%20b",
    "50% + 1 & more?": "50% + 1 & more?",
    ".hidden": ".hidden",
    "trailing ": "trailing ",
    "p=x": "p=x",
}


def partitioned(root: Path, *, hive: bool, encoded: bool, version: int = 9) -> HudiTable:
    said = {
        "hoodie.table.partition.fields": "p",
        "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(encoded).lower(),
    }
    columns: Columns = {**PLAIN, "p": ("string", pa.string())}
    table = HudiTable(root / "table", version, columns=columns, ordering="", properties=said)
    write = table.begin()
    for number, value in enumerate(FOLDERS.values()):
        write.base(f"0000-{number}", both(number, value), partition=folder(value, hive, encoded))
    write.done("INSERT")
    return table


def both(number: int, value: Any) -> list[dict[str, Any]]:
    """A row that stays, and one that will be changed."""
    return [{"k": f"{kind}{number}", "ts": 1, "v": "old", "p": value} for kind in ("keep", "edit")]


def folder(value: str | None, hive: bool, encoded: bool) -> str:
    name = NULL_FOLDER if value is None else quote(value, safe="") if encoded else value
    return f"p={name}" if hive else name


STYLES = pytest.mark.parametrize(
    ("hive", "encoded"),
    [(False, False), (True, False), (False, True), (True, True)],
    ids=["plain", "hive", "encoded", "hive encoded"],
)


@STYLES
@pytest.mark.parametrize("version", [6, 9])
def test_partitions_of_any_name_are_found_read_and_replaced(
    tmp_path: Path, version: int, hive: bool, encoded: bool
) -> None:
    table = partitioned(tmp_path, hive=hive, encoded=encoded, version=version)
    first = opened(table, "complete").writes[0].id.partition("_")[0]
    write = table.begin()
    expected = []
    for number, value in enumerate(FOLDERS.values()):
        place = folder(value, hive, encoded)
        edited = {**both(number, value)[1], "v": "new"}
        write.log(f"0000-{number}", Rows([edited]), gone(f"keep{number}"), partition=place)
        expected.append((f"edit{number}", 1, "new", value))
    write.done()

    assert len(state(table, first)) == 2 * len(FOLDERS)
    assert state(table) == sorted(expected, key=repr)
    assert rows(table, "complete", first) == sorted(expected, key=repr)
    changes = rows(table, "with_deletes", first, columns=("k", "p"))
    deleted = {it[0]: it[1] for it in changes if it[2] == "DELETE"}
    assert deleted == {f"keep{number}": value for number, value in enumerate(FOLDERS.values())}
    found = opened(table, "rebuild_partitions")
    units = found.source.slicing.units(found.pin, between(found, first, None))
    replaced = {it["p"].as_py() for it in units.replaced}
    assert replaced == set(FOLDERS.values())


@STYLES
def test_several_partition_columns_are_told_apart(
    tmp_path: Path, hive: bool, encoded: bool
) -> None:
    said = {
        "hoodie.table.partition.fields": "p,n,d",
        "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(encoded).lower(),
    }
    columns: Columns = {
        **PLAIN,
        "p": ("string", pa.string()),
        "n": ("int", pa.int32()),
        "d": ({"type": "int", "logicalType": "date"}, pa.date32()),
    }
    table = HudiTable(tmp_path / "table", columns=columns, ordering="", properties=said)
    found = [("x", 1, date(2026, 1, 1)), (None, -5, date(1600, 2, 3)), ("ä", None, None)]
    for number, (p, n, d) in enumerate(found):
        parts = {"p": p, "n": n, "d": d}
        place = "/".join(
            f"{name}={NULL_FOLDER if value is None else value}"
            if hive
            else NULL_FOLDER
            if value is None
            else str(value)
            for name, value in parts.items()
        )
        place = quote(place, safe="/=") if encoded else place
        made = {"k": str(number), "ts": 1, "v": "v", **parts}
        table.insert(f"0000-{number}", [made], partition=place)
    first = opened(table, "complete").writes[0].id.partition("_")[0]
    replaced = opened(table, "rebuild_partitions")
    units = replaced.source.slicing.units(replaced.pin, between(replaced, first, None))

    assert [it[3:] for it in state(table)] == found
    told = {tuple(it[name].as_py() for name in ("p", "n", "d")) for it in units.replaced}
    assert told == set(found[1:])


def test_folder_that_does_not_name_its_value_is_refused_where_it_is_needed(tmp_path: Path) -> None:
    table = partitioned(tmp_path, hive=True, encoded=False)
    first = opened(table, "complete").writes[0].id.partition("_")[0]
    table.insert("0000-99", both(99, "odd"), partition="odd")

    assert len(rows(table, "complete", first)) == 2
    replaced = opened(table, "rebuild_partitions")
    with pytest.raises(HudiPartitionUnreadable, match="odd"):
        replaced.source.slicing.units(replaced.pin, between(replaced, first, None))


# ── Names of columns ──


@FORMATS
@VERSIONS
def test_columns_that_differ_by_case_alone_are_told_apart(
    tmp_path: Path, version: int, parquet: bool
) -> None:
    columns: Columns = {**PLAIN, "V": ("string", pa.string()), "K": ("string", pa.string())}
    table = HudiTable(tmp_path / "table", version, columns=columns, ordering="")
    first = table.insert(GROUP, [{"k": "a", "ts": 1, "v": "low", "V": "UP", "K": "x"}])
    table.upsert(
        GROUP, Rows([{"k": "a", "ts": 2, "v": "low2", "V": "UP2", "K": "y"}], parquet=parquet)
    )

    assert state(table) == [("a", 2, "low2", "UP2", "y")]
    assert rows(table, "complete", first, columns=("V", "k")) == [("UP2", "a")]


@pytest.mark.parametrize("name", ["a.b", "a b", "ä", "a`b", 'a"b', "_hoodie", "length of the row"])
def test_columns_of_any_name_are_read_of_base_files_and_logs(tmp_path: Path, name: str) -> None:
    """Avro's names have letters, digits and underscores; other writers are not that strict."""
    columns: Columns = {**PLAIN, name: ("long", pa.int64())}
    table = HudiTable(tmp_path / "table", columns=columns, ordering="")
    first = table.insert(GROUP, [{"k": key, "ts": 1, "v": "v", name: 7} for key in "ab"])
    table.upsert(GROUP, Rows([{"k": "a", "ts": 1, "v": "v", name: 8}], parquet=True))

    assert state(table) == [("a", 1, "v", 8), ("b", 1, "v", 7)]
    assert rows(table, "complete", first, columns=(name,)) == [(8,)]


# ── Values and types ──

INNER = {
    "type": "record",
    "name": "inner",
    "fields": [
        {"name": "x", "type": ["null", "int"], "default": None},
        {"name": "list", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    ],
}
INNER_ARROW = pa.struct([("x", pa.int32()), ("list", pa.list_(pa.string()))])


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": meaning, **more}


FAR = [datetime(1600, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)]
KINDS: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "boolean": ("boolean", pa.bool_(), [True, False]),
    "int": ("int", pa.int32(), [-(2**31), 2**31 - 1]),
    "long": ("long", pa.int64(), [-(2**63), 2**63 - 1]),
    "float": ("float", pa.float32(), [0.5, float("inf")]),
    "double": ("double", pa.float64(), [1e-300, float("-inf")]),
    "string": ("string", pa.string(), ["", "\0 ä 日本 #HUDI#"]),
    "bytes": ("bytes", pa.binary(), [b"", bytes(range(256))]),
    "fixed": ({"type": "fixed", "name": "f", "size": 3}, pa.binary(3), [b"abc", b"\0\0\xff"]),
    "enum": ({"type": "enum", "name": "e", "symbols": ["ONE", "TWO"]}, pa.string(), ["ONE", "TWO"]),
    "date": (logical("int", "date"), pa.date32(), [date(1600, 1, 1), date(9999, 12, 31)]),
    "millis": (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC"), FAR),
    "micros": (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC"), FAR),
    "local micros": (
        logical("long", "local-timestamp-micros"),
        pa.timestamp("us"),
        [it.replace(tzinfo=None) for it in FAR],
    ),
    "decimal bytes": (
        logical("bytes", "decimal", precision=38, scale=10),
        pa.decimal128(38, 10),
        [Decimal("-9999999999999999999999999999.0000000001"), Decimal("0E-10")],
    ),
    "decimal fixed": (
        logical("fixed", "decimal", name="d", size=9, precision=20, scale=2),
        pa.decimal128(20, 2),
        [Decimal("-999999999999999999.99"), Decimal("0.01")],
    ),
    "record": (INNER, INNER_ARROW, [{"x": 1, "list": ["a", None]}, {"x": None, "list": None}]),
    "array": (
        {"type": "array", "items": ["null", INNER]},
        pa.list_(INNER_ARROW),
        [[], [None, {"x": 1, "list": []}]],
    ),
    "map": (
        {"type": "map", "values": ["null", {"type": "array", "items": "long"}]},
        pa.map_(pa.string(), pa.list_(pa.int64())),
        [[], [("a", [1, 2]), ("b", None)]],
    ),
}


def in_avro(kind: str, value: Any) -> Any:
    return dict(value) if kind == "map" and value is not None else value


@FORMATS
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_each_type_are_read_of_logs_as_of_base_files(
    tmp_path: Path, kind: str, parquet: bool
) -> None:
    avro, arrow, values = KINDS[kind]
    table = HudiTable(tmp_path / "table", columns={**PLAIN, "x": (avro, arrow)}, ordering="")
    found = [*values, None]
    base = [{"k": f"base{at}", "ts": 1, "v": "v", "x": it} for at, it in enumerate(found)]
    first = table.insert(GROUP, base)
    logged = [
        {"k": f"log{at}", "ts": 1, "v": "v", "x": it if parquet else in_avro(kind, it)}
        for at, it in enumerate(found)
    ]
    table.upsert(GROUP, Rows(logged, parquet=parquet))

    read = {it[0]: it[1] for it in rows(table, columns=("k", "x"))}

    for at, value in enumerate(found):
        assert read[f"base{at}"] == value
        assert read[f"log{at}"] == value
    changed = {it[0]: it[1] for it in rows(table, "complete", first, columns=("k", "x"))}
    assert changed == {f"log{at}": value for at, value in enumerate(found)}


def test_union_of_several_types_is_refused_by_name(tmp_path: Path) -> None:
    kind = ["null", "int", "string"]
    table = HudiTable(tmp_path / "table", columns={**PLAIN, "u": (kind, pa.string())}, ordering="")
    table.insert(GROUP, [{"k": "a", "ts": 1, "v": "v", "u": "text"}])

    with pytest.raises(HudiSchemaUnsupported, match="union"):
        opened(table, "snapshot")


# ── Evolution ──

OLD: Columns = {
    "k": ("string", pa.string()),
    "i": ("int", pa.int32()),
    "f": ("float", pa.float32()),
    "t": ("int", pa.int32()),
}
NEW: Columns = {
    "k": ("string", pa.string()),
    "added": ("string", pa.string()),
    "f": ("double", pa.float64()),
    "i": ("long", pa.int64()),
    "t": ("string", pa.string()),
}


@FORMATS
@VERSIONS
def test_rows_of_before_an_evolution_have_the_newest_columns(
    tmp_path: Path, version: int, parquet: bool
) -> None:
    table = HudiTable(tmp_path / "table", version, columns=dict(OLD), ordering="")
    first = table.insert(GROUP, [{"k": key, "i": 1, "f": 0.5, "t": 7} for key in "abc"])
    second = table.upsert(GROUP, Rows([{"k": "b", "i": 2, "f": 1.5, "t": 8}], parquet=parquet))
    table.columns = dict(NEW)
    third = table.upsert(
        GROUP, Rows([{"k": "c", "added": "x", "i": 2**40, "f": 0.1, "t": "t"}], parquet=parquet)
    )

    assert rows(table, columns=tuple(OLD), end=second) == [
        ("a", 1, 0.5, 7),
        ("b", 2, 1.5, 8),
        ("c", 1, 0.5, 7),
    ]
    assert state(table) == [
        ("a", None, 0.5, 1, "7"),
        ("b", None, 1.5, 2, "8"),
        ("c", "x", 0.1, 2**40, "t"),
    ]
    assert rows(table, "complete", first) == state(table)[1:]
    assert rows(table, "complete", first, second) == [("b", None, 1.5, 2, "8")]
    assert rows(table, "latest_state", second, third) == [("c", "x", 0.1, 2**40, "t")]


@VERSIONS
def test_log_of_deletes_alone_is_read_without_a_schema(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "table", version, columns=dict(OLD), ordering="")
    first = table.insert(GROUP, [{"k": key, "i": 1, "f": 0.5, "t": 7} for key in "ab"])
    table.columns = dict(NEW)
    table.upsert(GROUP, gone("a"))

    assert state(table) == [("b", None, 0.5, 1, "7")]
    changes = rows(table, "with_deletes", first, columns=("k", "added"))
    assert changes == [("a", None, "DELETE")]


# ── Filters ──

FILTERS = (
    "ts > 2",
    "ts >= 2 and v != 'new'",
    "v = 'old' or ts is null",
    "v in ('new', 'old')",
    "not (ts < 3)",
    "v is not null",
    "ts is null",
)


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("mode", ["snapshot", "complete", "latest_state", "changelog"])
def test_filter_applies_to_merged_rows(tmp_path: Path, text: str, mode: str) -> None:
    table = HudiTable(tmp_path / "table", ordering="")
    found = [("a", 1, "old"), ("b", 2, "old"), ("c", 3, "old"), ("d", None, "old"), ("e", 5, None)]
    first = table.insert(GROUP, [dict(zip(PLAIN, it, strict=True)) for it in found])
    changed = [("a", 9, "new"), ("b", 1, "new"), ("c", None, "new"), ("f", 4, None)]
    table.upsert(GROUP, Rows([dict(zip(PLAIN, it, strict=True)) for it in changed]))
    start = None if mode == "snapshot" else first
    every = rows(table, mode, start)
    names = [*PLAIN, *(("kind", "ordinal", "partial") if mode == "changelog" else ())]

    passing = rows(table, mode, start, passing=text)

    assert passing == [it for it in every if holds(text, dict(zip(names, it, strict=True)))]


def holds(text: str, row: dict[str, Any]) -> bool:
    """What the filter says of a row, by SQL's logic of three values."""
    ts, v = row["ts"], row["v"]
    return {
        "ts > 2": ts is not None and ts > 2,
        "ts >= 2 and v != 'new'": None not in (ts, v) and ts >= 2 and v != "new",
        "v = 'old' or ts is null": v == "old" or ts is None,
        "v in ('new', 'old')": v in ("new", "old"),
        "not (ts < 3)": ts is not None and ts >= 3,
        "v is not null": v is not None,
        "ts is null": ts is None,
    }[text]


# ── ORC ──


@VERSIONS
def test_timestamps_of_orc_base_files_are_in_utc(tmp_path: Path, version: int) -> None:
    kind = {"type": "long", "logicalType": "timestamp-micros"}
    columns: Columns = {**PLAIN, "at": (kind, pa.timestamp("us", "UTC"))}
    said = {"hoodie.table.base.file.format": "ORC"}
    table = HudiTable(tmp_path / "table", version, columns=columns, ordering="", properties=said)
    times = [datetime(1960, 2, 3, 4, 5, 6, 7, UTC), None, datetime(2026, 7, 1, tzinfo=UTC)]
    write = table.begin()
    path = write.base(GROUP, [{"k": f"{at}", "ts": 1, "at": at} for at in times])
    found = pq.read_table(path)
    path.unlink()
    place = found.schema.get_field_index("at")
    zoneless = found.column("at").cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
    orc.write_table(found.set_column(place, "at", zoneless), path.with_suffix(".orc"))
    write.stats[""][0] |= {"path": path.with_suffix(".orc").name, "fileSizeInBytes": 0}
    first = write.done("INSERT")
    newer = datetime(2026, 7, 2, tzinfo=UTC)
    table.upsert(GROUP, Rows([{"k": "None", "ts": 1, "at": newer}]))

    assert [it[0] for it in rows(table, columns=["at"], end=first)] == sorted(times, key=repr)
    assert {it[0] for it in rows(table, columns=["at"])} == {times[0], newer, times[2]}
    late = rows(table, columns=["at"], end=first, passing="at > TIMESTAMP '2000-01-01 00:00:00'")
    assert late == [(times[2],)]
