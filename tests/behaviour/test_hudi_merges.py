"""Deletes, partial updates and Flink's kinds of rows in written logs are merged as by Hudi."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hudi_windows import between, opened, planned, rows, state
from hudi_writer import KEY, PLAIN, Columns, Deletes, HudiTable, Rows, gone
from tidegate.errors import HudiCommitTimesMissing, HudiSchemaUnsupported
from tidegate.model.plan import Piece
from tidegate.read.merge import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GROUP = "0000-1"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def values(found: list[tuple[Any, ...]]) -> dict[Any, Any]:
    assert len({it[0] for it in found}) == len(found)
    return {it[0]: it[2] for it in found}


# ── Deletes by event time ──

MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DAYS = {"type": "int", "logicalType": "date"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
FIXED = {**MONEY, "type": "fixed", "name": "money", "size": 5}


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


TYPED: dict[str, tuple[Any, pa.DataType, str, list[Any]]] = {
    "int": ("int", pa.int32(), "Int", [-1, 4, 9]),
    "long": ("long", pa.int64(), "Long", [-(2**40), 0, 2**40]),
    "float": ("float", pa.float32(), "Float", [-0.5, 0.0, 1.5]),
    "double": ("double", pa.float64(), "Double", [-1e300, 0.0, 1e300]),
    "string": ("string", pa.string(), "String", ["", "b", "ä"]),
    "bytes": ("bytes", pa.binary(), "Bytes", [b"", b"\x01", b"\xff"]),
    "boolean": ("boolean", pa.bool_(), "Boolean", [False, False, True]),
    "date": (DAYS, pa.date32(), "Date", [date(1600, 1, 1), date(2026, 1, 1), date(9999, 12, 31)]),
    "micros": (MICROS, pa.timestamp("us", "UTC"), "TimestampMicros", [at(1), at(2), at(3)]),
    "millis": (MILLIS, pa.timestamp("ms", "UTC"), "TimestampMicros", [at(1), at(2), at(3)]),
    "decimal": (
        MONEY,
        pa.decimal128(10, 2),
        "Decimal",
        [Decimal("-99999999.99"), Decimal("1.50"), Decimal("99999999.99")],
    ),
    "fixed decimal": (
        FIXED,
        pa.decimal128(10, 2),
        "Decimal",
        [Decimal("-1.00"), Decimal("0.00"), Decimal("1.00")],
    ),
}
"""Avro and Arrow type, wrapper, and three values in their order."""


def ordered(root: Path, kind: str, version: int = 9) -> tuple[HudiTable, str, list[Any]]:
    avro, arrow, wrapper, found = TYPED[kind]
    columns: Columns = {**PLAIN, "ts": (avro, arrow)}
    table = HudiTable(root / "table", version, columns=columns)
    table.insert(GROUP, [{"k": key, "ts": found[1], "v": key} for key in "abcd"])
    return table, wrapper, found


@VERSIONS
@pytest.mark.parametrize("kind", TYPED)
def test_delete_wins_by_its_ordering_value(tmp_path: Path, version: int, kind: str) -> None:
    table, wrapper, (low, same, high) = ordered(tmp_path, kind, version)
    deleted = [("a", (wrapper, low)), ("b", (wrapper, same)), ("c", (wrapper, high)), ("d", None)]
    table.upsert(GROUP, Deletes(deleted))
    start = table.upsert(GROUP, Rows([]))
    table.upsert(GROUP, Rows([{"k": key, "ts": same, "v": "again"} for key in "bcd"]))

    # `c` stays away: its delete has the greater value. Equal values let the later one win.
    expected = {"a": "a", "b": "again", "d": "again"} if low != same else {"b": "again"}
    if low == same:
        expected |= {"d": "again"}
    assert values(state(table)) == expected
    changed = values(rows(table, "complete", start))
    assert changed == {"b": "again", "d": "again"}


@VERSIONS
@pytest.mark.parametrize("kind", ["int", "long", "double"])
def test_zero_of_an_int_is_no_ordering_value_and_of_other_types_is_one(
    tmp_path: Path, version: int, kind: str
) -> None:
    table, _, (*_, high) = ordered(tmp_path, kind, version)
    # Above zero, so that a delete at zero loses.
    table.upsert(GROUP, Rows([{"k": key, "ts": high, "v": "new"} for key in "abc"]))
    deletes = [("a", ("Int", 0)), ("b", ("Long", 0)), ("c", ("Double", 0.0))]
    table.upsert(GROUP, Deletes(deletes))

    assert values(state(table)) == {"b": "new", "c": "new", "d": "d"}


def test_delete_after_a_promotion_is_compared_by_value(tmp_path: Path) -> None:
    """Its value was logged as an int before the column was a long."""
    table, _, _ = ordered(tmp_path, "long")
    table.upsert(GROUP, Rows([{"k": key, "ts": 5, "v": "new"} for key in "ab"]))
    table.upsert(GROUP, Deletes([("a", ("Int", 4)), ("b", ("Int", 6))]))

    assert values(state(table)) == {"a": "new", "c": "c", "d": "d"}


@pytest.mark.parametrize("text", ["5", "abc"])
def test_delete_whose_value_is_of_another_type_wins_over_what_is_older(
    tmp_path: Path, text: str
) -> None:
    table, _, _ = ordered(tmp_path, "long")
    table.upsert(GROUP, Deletes([("a", ("String", text)), ("b", ("String", text))]))
    table.upsert(GROUP, Rows([{"k": "b", "ts": -(2**50), "v": "new"}]))

    assert "a" not in values(state(table))


@pytest.mark.parametrize("scale", ["1.5", "1.500000000000000", "1.50"])
def test_decimals_of_another_scale_are_equal(tmp_path: Path, scale: str) -> None:
    table, _, _ = ordered(tmp_path, "decimal")
    table.upsert(GROUP, Deletes([("a", ("Decimal", Decimal(scale)))]))

    assert values(state(table)).keys() == {"b", "c", "d"}


def test_double_between_two_values_of_a_whole_number_is_of_another_type(tmp_path: Path) -> None:
    """Numbers of different types are not compared: the newer record wins."""
    table, _, _ = ordered(tmp_path, "long")
    table.upsert(GROUP, Rows([{"k": key, "ts": 5, "v": "new"} for key in "ab"]))
    table.upsert(GROUP, Deletes([("a", ("Double", 4.5)), ("b", ("Double", 5.5))]))

    assert "b" not in values(state(table))


def of_two(root: Path) -> HudiTable:
    columns: Columns = {**PLAIN, "n": ("int", pa.int32())}
    said = {"hoodie.table.ordering.fields": "ts,n"}
    table = HudiTable(root / "table", columns=columns, properties=said)
    table.insert(GROUP, [{"k": key, "ts": 5, "v": key, "n": 5} for key in "abcde"])
    return table


def test_several_ordering_values_are_compared_one_after_the_other(tmp_path: Path) -> None:
    table = of_two(tmp_path)

    def both(first: int, second: int) -> tuple[str, Any]:
        return "Array", [("Long", first), ("Int", second)]

    deletes = [
        ("a", both(5, 4)),
        ("b", both(5, 5)),
        ("c", both(4, 9)),
        ("d", both(6, 0)),
        ("e", None),
    ]
    table.upsert(GROUP, Deletes(deletes))

    assert values(state(table)).keys() == {"a", "c"}


def test_list_of_ordering_values_that_is_null_is_none(tmp_path: Path) -> None:
    table = of_two(tmp_path)
    table.upsert(GROUP, Deletes([("a", ("Array", None)), ("b", ("Array", [None, None]))]))

    assert values(state(table)).keys() == {"c", "d", "e"}


@VERSIONS
@pytest.mark.parametrize("kind", TYPED)
def test_null_ordering_value_is_the_int_zero_and_not_compared_with_other_types(
    tmp_path: Path, version: int, kind: str
) -> None:
    avro, arrow, _, (low, _, high) = TYPED[kind]
    columns: Columns = {**PLAIN, "ts": (avro, arrow)}
    table = HudiTable(tmp_path / "table", version, columns=columns)
    old = {"a": None, "b": high, "c": None, "d": high}
    new = {"a": low, "b": None, "c": low, "d": None}

    def sent(orders: Mapping[str, Any], keys: str, value: str) -> list[dict[str, Any]]:
        return [{"k": key, "ts": orders[key], "v": value} for key in keys]

    # `a` and `b` stand in a base file, `c` and `d` in a log.
    table.insert(GROUP, sent(old, "ab", "old"))
    start = table.upsert(GROUP, Rows(sent(old, "cd", "old")))
    table.upsert(GROUP, Rows(sent(new, "abcd", "new")))

    if kind in {"int", "date"}:
        # Hudi takes it for the int 0, and cannot compare that with other types.
        assert values(state(table)) == dict.fromkeys("abcd", "old")
        assert values(rows(table, "complete", start)) == {}
    else:
        assert values(state(table)) == dict.fromkeys("abcd", "new")
        assert values(rows(table, "complete", start)) == dict.fromkeys("abcd", "new")


@pytest.mark.parametrize("kind", ["float", "double"])
def test_nan_is_the_greatest_ordering_value_and_equal_to_itself(tmp_path: Path, kind: str) -> None:
    avro, arrow, _, (_, _, high) = TYPED[kind]
    columns: Columns = {**PLAIN, "ts": (avro, arrow)}
    table = HudiTable(tmp_path / "table", columns=columns)
    nan = float("nan")
    old = {"a": nan, "b": high, "c": nan, "d": nan, "e": high, "f": nan}
    new = {"a": high, "b": nan, "c": nan, "d": high, "e": nan, "f": nan}

    def sent(orders: Mapping[str, Any], keys: str, value: str) -> list[dict[str, Any]]:
        return [{"k": key, "ts": orders[key], "v": value} for key in keys]

    table.insert(GROUP, sent(old, "abc", "old"))
    table.upsert(GROUP, Rows(sent(old, "def", "old")))
    table.upsert(GROUP, Rows(sent(new, "abcdef", "new")))

    expected = {"a": "old", "b": "new", "c": "new", "d": "old", "e": "new", "f": "new"}
    assert values(state(table)) == expected


def test_row_that_says_it_is_deleted_at_a_long_of_zero_has_an_order(tmp_path: Path) -> None:
    """Of an int, 0 means that the delete has none; of a long it is a value like others."""
    for kind, left in (("long", {"a": "old"}), ("int", {})):
        avro, arrow, _, _ = TYPED[kind]
        columns: Columns = {
            **PLAIN,
            "ts": (avro, arrow),
            "_hoodie_is_deleted": ("boolean", pa.bool_()),
        }
        table = HudiTable(tmp_path / kind, columns=columns)
        table.insert(GROUP, [{"k": "a", "ts": 1, "v": "old"}])
        deleted = {"k": "a", "ts": 0, "v": "old", "_hoodie_is_deleted": True}
        table.upsert(GROUP, Rows([deleted]))

        assert values(state(table)) == left


# ── Partial updates ──

WIDE: Columns = {**PLAIN, "n": ("long", pa.int64())}


def some(*names: str) -> Columns:
    return {name: WIDE[name] for name in ("k", "ts", *names)}


def part(ts: int, **found: Any) -> Rows:
    """A partial update of the key `a`."""
    return Rows([{"k": "a", "ts": ts, **found}], some(*found), partial=True)


def wide(root: Path, ordering: str = "ts", **said: str) -> HudiTable:
    return HudiTable(root / "table", columns=WIDE, ordering=ordering, properties=said)


BASE = [{"k": "a", "ts": 1, "v": "base", "n": 1}, {"k": "b", "ts": 1, "v": "base", "n": 1}]


@pytest.mark.parametrize("ordering", ["", "ts"], ids=["commit time", "event time"])
def test_partial_updates_follow_each_other(tmp_path: Path, ordering: str) -> None:
    table = wide(tmp_path, ordering)
    first = table.insert(GROUP, BASE)
    second = table.upsert(GROUP, part(2, v="two"))
    third = table.upsert(GROUP, part(3, n=3))
    table.upsert(GROUP, part(4, v=None))

    assert state(table, second) == [("a", 2, "two", 1), ("b", 1, "base", 1)]
    assert rows(table, "complete", first, third) == [("a", 3, "two", 3)]
    assert rows(table, "complete", second, third) == [("a", 3, "two", 3)]
    assert rows(table, "complete", third) == [("a", 4, None, 3)]
    assert rows(table, "changelog", second, third) == [("a", 3, None, 3, "UPSERT", 0, True)]


def test_late_partial_update_supplies_what_the_newer_one_lacks(tmp_path: Path) -> None:
    table = wide(tmp_path)
    table.insert(GROUP, BASE)
    start = table.upsert(GROUP, part(5, v="new"))
    table.upsert(GROUP, part(3, v="late", n=3))

    assert state(table)[0] == ("a", 5, "new", 3)
    assert rows(table, "complete", start) == [("a", 5, "new", 3)]


@pytest.mark.parametrize("ordering", ["", "ts"], ids=["commit time", "event time"])
def test_partial_update_after_a_delete_has_nothing_of_the_row_before(
    tmp_path: Path, ordering: str
) -> None:
    table = wide(tmp_path, ordering)
    table.upsert(GROUP, Rows(BASE))
    start = table.upsert(GROUP, Deletes([("a", ("Long", 2))]))
    table.upsert(GROUP, part(3, n=3))

    assert state(table) == [("a", 3, None, 3), ("b", 1, "base", 1)]
    assert rows(table, "complete", start) == [("a", 3, None, 3)]


def test_partial_update_before_a_delete_of_greater_value_does_not_count(tmp_path: Path) -> None:
    table = wide(tmp_path)
    table.insert(GROUP, BASE)
    start = table.upsert(GROUP, Deletes([("a", ("Long", 5))]))
    table.upsert(GROUP, part(3, n=3))

    assert state(table) == [("b", 1, "base", 1)]
    assert rows(table, "complete", start) == []


def test_partial_updates_of_a_group_without_a_base_file_are_rows_with_null(tmp_path: Path) -> None:
    table = wide(tmp_path)
    table.upsert(GROUP, part(1, v="one"))
    table.upsert(GROUP, part(2, n=2))

    assert state(table) == [("a", 2, "one", 2)]


IGNORES = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
FILLS = {"hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"}
UNAVAILABLE = "__debezium_unavailable_value"


@pytest.mark.parametrize("in_base", [True, False], ids=["base file", "log"])
@pytest.mark.parametrize(
    ("said", "absent"), [(IGNORES, None), (FILLS, UNAVAILABLE)], ids=["defaults", "unavailable"]
)
def test_values_that_were_not_sent_are_filled_from_the_row_that_loses(
    tmp_path: Path, said: Mapping[str, str], absent: str | None, in_base: bool
) -> None:
    table = wide(tmp_path, **said)
    if in_base:
        table.insert(GROUP, BASE)
    else:
        table.upsert(GROUP, Rows(BASE))
    start = table.upsert(GROUP, Rows([{"k": "a", "ts": 3, "v": absent, "n": 3}]))

    assert state(table)[0] == ("a", 3, "base", 3)
    table.upsert(GROUP, Rows([{"k": "b", "ts": 0, "v": "late", "n": 0}]))
    assert state(table)[1] == ("b", 1, "base", 1)
    assert rows(table, "complete", start) == []


def with_default(table: HudiTable, name: str, default: Any) -> None:
    """Give a column a default, in all schemas that are written from now on."""
    schema_of = table.avro

    def avro(columns: Columns | None = None) -> dict[str, Any]:
        made = schema_of(columns)
        for it in made["fields"]:
            if it["name"] == name:
                it["type"], it["default"] = it["type"][::-1], default
        return made

    table.avro = avro  # type: ignore[method-assign]


PARTIAL_PAYLOAD = {
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
    "hoodie.compaction.payload.class": (
        "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
    ),
}


@pytest.mark.parametrize("said", [IGNORES, PARTIAL_PAYLOAD], ids=["mode", "payload"])
@pytest.mark.parametrize(("name", "default"), [("n", 0), ("v", ""), ("v", "?")])
def test_default_that_is_a_value_is_refused_where_defaults_are_ignored(
    tmp_path: Path, said: Mapping[str, str], name: str, default: Any
) -> None:
    table = wide(tmp_path, **said)
    with_default(table, name, default)
    table.insert(GROUP, BASE)
    table.upsert(GROUP, Rows([{"k": "a", "ts": 2, "v": "new", "n": 0}]))

    with pytest.raises(HudiSchemaUnsupported, match=f"'{name}' has the default"):
        opened(table, "snapshot")


@pytest.mark.parametrize(
    ("name", "default", "said"),
    [
        ("ts", 0, IGNORES),
        ("k", "", IGNORES),
        ("n", 0, FILLS),
        ("n", 0, {}),
        ("_hoodie_is_deleted", False, IGNORES),
    ],
)
def test_default_that_is_a_value_is_read_where_it_means_nothing(
    tmp_path: Path, name: str, default: Any, said: Mapping[str, str]
) -> None:
    columns: Columns = {**WIDE, "_hoodie_is_deleted": ("boolean", pa.bool_())}
    table = HudiTable(tmp_path / "table", columns=columns, properties=said)
    with_default(table, name, default)
    table.insert(GROUP, [{**row, "_hoodie_is_deleted": False} for row in BASE])
    new = {"k": "a", "ts": 2, "v": "new", "n": 0, "_hoodie_is_deleted": False}
    table.upsert(GROUP, Rows([new]))

    assert values(state(table)) == {"a": "new", "b": "base"}


def test_value_that_was_not_sent_before_is_filled_by_a_late_record(tmp_path: Path) -> None:
    table = wide(tmp_path, **IGNORES)
    start = table.upsert(GROUP, Rows([{"k": "a", "ts": 3, "v": None, "n": 3}]))
    table.upsert(GROUP, Rows([{"k": "a", "ts": 2, "v": "late", "n": 2}]))

    assert state(table) == [("a", 3, "late", 3)]
    assert rows(table, "complete", start) == [("a", 3, "late", 3)]


# ── Flink's kinds of rows ──

KINDS: Columns = {**PLAIN, "_hoodie_operation": ("string", pa.string())}


def told(key: str, operation: str, value: str) -> dict[str, Any]:
    return {"k": key, "ts": 1, "v": value, "_hoodie_operation": operation}


@VERSIONS
@pytest.mark.parametrize("with_base", [True, False], ids=["base file", "log only"])
def test_kinds_of_flink_are_merged_and_told(tmp_path: Path, version: int, with_base: bool) -> None:
    table = HudiTable(tmp_path / "table", version, columns=KINDS, ordering="")
    bucket = "00000003-8f1c-4f4e-8d3b-6a1f0c9b1a11-0"
    before = [told("a", "I", "old"), told("b", "I", "old"), told("c", "I", "old")]
    first = table.insert(bucket, before) if with_base else table.upsert(bucket, Rows(before))
    table.upsert(
        bucket,
        Rows(
            [
                told("a", "-U", "old"),
                told("a", "U", "new"),
                told("b", "D", "old"),
                told("d", "I", "fresh"),
                # The row after it was written elsewhere: the key is gone from this group.
                told("c", "-U", "old"),
                told("e", "-D", "gone"),
            ]
        ),
    )
    names = ("k", "v")

    assert rows(table, columns=names) == [("a", "new"), ("d", "fresh")]
    assert rows(table, "complete", first, columns=names) == [("a", "new"), ("d", "fresh")]
    assert rows(table, "with_deletes", first, columns=names) == [
        ("a", "new", "UPSERT"),
        ("b", None, "DELETE"),
        ("c", None, "DELETE"),
        ("d", "fresh", "UPSERT"),
        ("e", None, "DELETE"),
    ]
    assert [it[:3] for it in rows(table, "changelog", first, columns=names)] == [
        ("a", "new", "UPDATE_AFTER"),
        ("a", "old", "UPDATE_BEFORE"),
        ("b", None, "DELETE"),
        ("c", "old", "UPDATE_BEFORE"),
        ("d", "fresh", "INSERT"),
        ("e", None, "DELETE"),
    ]


# ── Keys ──


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_first_of_several_rows_of_a_key_meets_its_record(
    tmp_path: Path, size: int, parts: int
) -> None:
    table = HudiTable(tmp_path / "table", ordering="")
    repeated = [{"k": key, "ts": at, "v": "old"} for at, key in enumerate("abaab")]
    table.insert(GROUP, repeated, row_group_size=size)
    table.upsert(GROUP, Rows([{"k": "a", "ts": 9, "v": "new"}]), gone("b"))
    found = opened(table, "snapshot")
    pin, (piece,) = planned(found, between(found, None, None))
    width = -(-5 // parts)
    cut = [
        Piece(piece.slice, min(width, 5 - start), piece.size_bytes, start)
        for start in range(0, 5, width)
    ]
    reader = found.source.reading.reader(pin)

    batches = reader.batches(reversed(cut), ReadOptions(batch_rows=2))

    read = Counter((row["k"], row["ts"], row["v"]) for it in batches for row in it.to_pylist())
    assert read == Counter([("a", 9, "new"), ("a", 2, "old"), ("a", 3, "old"), ("b", 4, "old")])


@VERSIONS
@pytest.mark.parametrize("keys", ["k", "k,n"])
def test_table_without_meta_columns_is_merged_by_its_key_columns(
    tmp_path: Path, version: int, keys: str
) -> None:
    table = HudiTable(tmp_path / "table", version, columns=WIDE, meta=False, keyed_by=keys)
    first = table.insert(GROUP, BASE)
    table.upsert(
        GROUP,
        Rows([{"k": "a", "ts": 2, "v": "new", "n": 1}, {"k": "c,n:1", "ts": 2, "v": "c", "n": 1}]),
        gone("b" if keys == "k" else "k:b,n:1"),
    )

    assert state(table) == [("a", 2, "new", 1), ("c,n:1", 2, "c", 1)]
    with pytest.raises(HudiCommitTimesMissing, match=r"populate\.meta\.fields"):
        rows(table, "complete", first)


@VERSIONS
def test_key_that_is_not_stored_is_spelled_as_the_writer_spells_null_and_empty_texts(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable(tmp_path / "table", version, columns=WIDE, meta=False, keyed_by="k,v")
    table.insert(GROUP, [{"k": key, "ts": 1, "v": v, "n": 1} for key in "ab" for v in (None, "")])
    updated = Rows([{"k": "a", "ts": 2, "v": None, "n": 2}, {"k": "a", "ts": 2, "v": "", "n": 2}])
    table.upsert(GROUP, updated, gone("k:b,v:__null__", "k:b,v:__empty__"))

    assert state(table) == [("a", 2, "", 2), ("a", 2, None, 2)]


def test_key_of_several_columns_is_read_of_its_text_in_deletes(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "table", columns=WIDE, keyed_by="k,n")
    odd = ["x,n:2", "a:b", "ä/é"]
    first = table.insert(GROUP, [{"k": key, "ts": 1, "v": "v", "n": 7} for key in odd])
    table.upsert(GROUP, gone(*(f"k:{key},n:7" for key in odd)))

    found = rows(table, "with_deletes", first, columns=("k", "n", KEY))

    assert [(it[0], it[1]) for it in found] == sorted((key, 7) for key in odd)


def test_times_of_day_are_compared(tmp_path: Path) -> None:
    kind = {"type": "long", "logicalType": "time-micros"}
    columns: Columns = {**PLAIN, "ts": (kind, pa.time64("us"))}
    table = HudiTable(tmp_path / "table", columns=columns)
    table.insert(GROUP, [{"k": key, "ts": time(12), "v": key} for key in "ab"])
    table.upsert(GROUP, Deletes([("a", ("TimeMicros", time(11))), ("b", ("TimeMicros", time(13)))]))

    assert values(state(table)).keys() == {"a"}
