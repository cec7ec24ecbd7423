"""Whatever rows a format takes, it gives back; what it cannot hold is refused by name."""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.errors import ColumnUnfit, ValueUnfit
from tidegate.model.part_format import KINDS, CsvForm, PartFormat
from tidegate.physical.parts import PartFiles, begin_part, check_fit, open_part

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
EPOCH, LATE = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(EPOCH.replace(tzinfo=None), LATE.replace(tzinfo=None))
SECONDS = MOMENTS.map(lambda found: found.replace(microsecond=0))
GREGORIAN = st.dates(date(1582, 10, 15), date(9999, 12, 31))
EARLY = datetime(1901, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "flag": (pa.bool_(), st.booleans()),
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "real": (pa.float64(), FINITE),
    "short": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "text": (pa.string(), TEXTS),
    "long_text": (pa.large_string(), TEXTS),
    "word": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["eu", "us", ""])),
    "price": (pa.decimal128(38, 2), st.decimals(-(10**35), 10**35, places=2)),
    "small_price": (pa.decimal128(3, 1), st.decimals(-99, 99, places=1)),
    "day": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "moment": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda found: found.replace(tzinfo=UTC))),
    "berlin": (
        pa.timestamp("ms", "Europe/Berlin"),
        SECONDS.map(lambda found: found.replace(tzinfo=UTC)),
    ),
    "wall_clock": (pa.timestamp("us"), MOMENTS),
    "second": (pa.timestamp("s"), SECONDS),
}
NESTED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "items": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "lines": (
        pa.list_(pa.list_(pa.string())),
        st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=2), max_size=2),
    ),
    "record": (
        pa.struct([("at", pa.timestamp("us", "UTC")), ("prices", pa.list_(pa.decimal128(9, 3)))]),
        st.fixed_dictionaries(
            {
                "at": st.none() | MOMENTS.map(lambda found: found.replace(tzinfo=UTC)),
                "prices": st.none() | st.lists(st.decimals(-999, 999, places=3), max_size=2),
            }
        ),
    ),
}
MAPS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "pairs": (
        pa.map_(pa.string(), pa.int32()),
        st.dictionaries(TEXTS, st.none() | st.integers(-9, 9), max_size=2).map(
            lambda found: list(found.items())
        ),
    ),
}
BYTES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bytes": (pa.binary(), st.binary(max_size=4)),
    "three": (pa.binary(3), st.binary(min_size=3, max_size=3)),
}
UNSIGNED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "byte": (pa.uint8(), st.integers(0, 255)),
    "word32": (pa.uint32(), st.integers(0, 2**32 - 1)),
}
TIMES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "clock": (pa.time64("us"), st.times()),
    "coarse": (pa.time32("ms"), st.times().map(lambda found: found.replace(microsecond=7000))),
}
HELD = {
    "parquet": {**COLUMNS, **NESTED, **MAPS, **BYTES, **UNSIGNED, **TIMES},
    "orc": {**COLUMNS, **NESTED, **MAPS, **BYTES, "day": (pa.date32(), GREGORIAN)},
    "csv": {**COLUMNS, **UNSIGNED, **TIMES},
    "json": {**COLUMNS, **NESTED, **UNSIGNED},
    "avro": {**COLUMNS, **NESTED, **MAPS, **BYTES, **UNSIGNED, **TIMES},
}
FORMS = [
    PartFormat(name, compression, CsvForm() if name == "csv" else None)
    for name, kind in KINDS.items()
    for compression in kind.extensions
]
USUAL = [form for form in FORMS if form.compression == form.kind.default_compression]
ODD_CSV = PartFormat(
    "csv", "none", CsvForm(header=False, delimiter="|", null_value="NULL", quote="'")
)


def name_of(form: PartFormat) -> str:
    return f"{form.name}-{form.compression}"


@st.composite
def row_groups(draw: st.DrawFn, name: str) -> list[pa.RecordBatch]:
    held = HELD[name]
    names = draw(st.lists(st.sampled_from(sorted(held)), min_size=2, max_size=5, unique=True))
    groups = []
    for rows in draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)):
        columns = {
            column: pa.array(
                draw(st.lists(st.none() | held[column][1], min_size=rows + 1, max_size=rows + 1)),
                held[column][0],
            )
            for column in names
        }
        # A slice, because writers are given parts of larger batches.
        groups.append(pa.RecordBatch.from_pydict(columns).slice(1))
    return groups


def written(groups: list[pa.RecordBatch], form: PartFormat) -> bytes:
    file = io.BytesIO()
    writer = begin_part(file, groups[0], form)
    for rows in groups:
        writer.write(rows)
    writer.close()
    return file.getvalue()


def stored_at(folder: Path, content: bytes, form: PartFormat) -> str:
    path = folder / f"part-1-2-0{form.extension}"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("form", [*USUAL, ODD_CSV], ids=name_of)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_rows_come_back_and_the_same_rows_give_the_same_bytes(
    form: PartFormat, tmp_path: Path, data: st.DataObject
) -> None:
    groups = data.draw(row_groups(form.name))
    schema = groups[0].schema
    content = written(groups, form)
    path = stored_at(tmp_path, content, form)
    chosen = data.draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True))

    with open_part(path, form, schema) as file:
        batches = list(file.batches(chosen, batch_rows=3))
        counted, rows = [batch.num_rows for batch in file.batches([])], file.rows

    expected = pa.Table.from_batches(groups)
    assert written(groups, form) == content
    assert [name for batch in batches for name in batch.schema.names] == chosen * len(batches)
    assert max(batch.num_rows for batch in batches) <= 3
    assert rows == sum(counted) == expected.num_rows
    for name in chosen:
        found = [value for batch in batches for value in batch.column(name).to_pylist()]
        assert found == expected.column(name).to_pylist()
    assert PartFiles(form, {path: schema})(path).schema.names == schema.names


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "json"], ids=name_of)
def test_numbers_that_are_not_finite_come_back(form: PartFormat, tmp_path: Path) -> None:
    odd = [math.nan, math.inf, -math.inf, -0.0, None]
    rows = pa.RecordBatch.from_pydict({"x": odd, "y": [1] * 5})
    path = stored_at(tmp_path, written([rows], form), form)

    with open_part(path, form, rows.schema) as file:
        found = next(iter(file.batches(["x"]))).column("x").to_pylist()

    assert [str(value) for value in found] == [str(value) for value in odd]


@pytest.mark.parametrize(
    ("format_", "values", "kind", "rule"),
    [
        ("json", [1.0, math.nan], pa.float64(), "x is null or x between -1.7e308 and 1.7e308"),
        ("json", [[1.0], [math.inf]], pa.list_(pa.float32()), "between"),
        ("json", [{"a": math.nan}], pa.struct([("a", pa.float64())]), "between"),
        ("orc", [EPOCH - timedelta(microseconds=1)], pa.timestamp("us"), "x >= '1970-01-01'"),
        ("orc", [[EARLY.replace(microsecond=1)]], pa.list_(pa.timestamp("us", "UTC")), "1970"),
        ("orc", [datetime(2262, 4, 11, tzinfo=UTC)], pa.timestamp("us", "UTC"), "x < '2262-04-11'"),
        (
            "orc",
            [datetime(1677, 9, 21, 23, tzinfo=UTC)],
            pa.timestamp("ms", "UTC"),
            "x >= '1677-09-22'",
        ),
        ("orc", [date(1582, 10, 14)], pa.date32(), "x >= '1582-10-15'"),
        ("orc", [datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"), "x >= '1582-10-15'"),
    ],
    ids=[
        "NaN",
        "nested infinity",
        "NaN in a struct",
        "before the epoch",
        "nested time",
        "beyond nanoseconds",
        "before nanoseconds",
        "day of another calendar",
        "time of another calendar",
    ],
)
def test_value_that_a_format_cannot_spell_is_refused_by_its_column(
    format_: str, values: list[Any], kind: pa.DataType, rule: str
) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["x"])
    form = PartFormat(format_, KINDS[format_].default_compression, is_read_back=True)

    with pytest.raises(ValueUnfit, match=r"column 'x'") as refused:
        written([rows], form)

    assert rule in str(refused.value)


def test_whole_seconds_before_the_epoch_are_written_as_orc(tmp_path: Path) -> None:
    form = PartFormat("orc")
    rows = pa.RecordBatch.from_pydict({"x": [EARLY, None]})
    path = stored_at(tmp_path, written([rows], form), form)

    with open_part(path, form, rows.schema) as file:
        assert next(iter(file.batches(["x"]))).column("x").to_pylist() == [EARLY, None]


def test_times_at_the_ends_of_nanoseconds_are_read_back_from_orc(tmp_path: Path) -> None:
    form = PartFormat("orc", is_read_back=True)
    ends = [datetime(1677, 9, 22, tzinfo=UTC), datetime(2262, 4, 10, 23, 59, 59, 999999, UTC)]
    rows = pa.RecordBatch.from_pydict({"x": ends})
    path = stored_at(tmp_path, written([rows], form), form)

    with open_part(path, form, rows.schema) as file:
        assert next(iter(file.batches(["x"]))).column("x").to_pylist() == ends


def test_years_that_nothing_here_reads_are_written_as_orc() -> None:
    rows = pa.RecordBatch.from_pydict({"x": [datetime(9999, 12, 31, tzinfo=UTC)]})

    assert written([rows], PartFormat("orc"))


UNFIT = {
    "orc": [pa.uint8(), pa.time32("ms"), pa.null(), pa.duration("us"), pa.list_(pa.uint64())],
    "csv": [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.binary(), pa.binary(2)],
    "json": [pa.map_(pa.string(), pa.int8()), pa.binary(), pa.time64("us"), pa.float16()],
    "avro": [
        pa.uint64(),
        pa.map_(pa.int8(), pa.int8()),
        pa.decimal256(50, 2),
        pa.struct([("with space", pa.int8())]),
        pa.time64("ns"),
    ],
}


@pytest.mark.parametrize(
    ("format_", "kind"),
    [pytest.param(name, kind, id=f"{name}-{kind}") for name in UNFIT for kind in UNFIT[name]],
)
def test_type_that_a_format_does_not_have_is_refused_by_column_and_type(
    format_: str, kind: pa.DataType
) -> None:
    form = PartFormat(format_, KINDS[format_].default_compression)
    inner = kind.value_type if pa.types.is_list(kind) and format_ == "orc" else kind

    with pytest.raises(ColumnUnfit) as refused:
        check_fit(pa.schema([("id", pa.int64()), ("odd", kind)]), form)

    assert (refused.value.column, refused.value.type) == ("odd", str(inner))
    check_fit(pa.schema([("odd", kind)]), PartFormat())


@pytest.mark.parametrize(
    ("schema", "form", "why"),
    [
        (pa.schema([("a b", pa.int8())]), PartFormat("avro", "deflate"), "letters, digits"),
        (
            pa.schema([("a", pa.int8())]),
            PartFormat("csv", "none", CsvForm()),
            "target.csv.null_value",
        ),
        (pa.schema([]), PartFormat("json", "none"), "every column is a partition key"),
        (pa.schema([]), PartFormat("csv", "none", CsvForm()), "every column is a partition key"),
    ],
    ids=["name", "lonely NULL", "json without columns", "csv without columns"],
)
def test_columns_that_a_format_does_not_have_are_refused(
    schema: pa.Schema, form: PartFormat, why: str
) -> None:
    with pytest.raises(ColumnUnfit, match=why):
        check_fit(schema, form)


def test_columns_of_any_format_fit_it() -> None:
    for form in FORMS:
        held = HELD[form.name]
        check_fit(pa.schema([(name, kind) for name, (kind, _) in held.items()]), form)


def test_only_column_of_csv_has_null_once_null_is_spelled(tmp_path: Path) -> None:
    form = PartFormat("csv", "none", CsvForm(null_value="-"))
    rows = pa.RecordBatch.from_pydict({"x": ["a", None, "", "-"]})
    check_fit(rows.schema, form)
    path = stored_at(tmp_path, written([rows], form), form)

    with open_part(path, form, rows.schema) as file:
        assert next(iter(file.batches(["x"]))).column("x").to_pylist() == ["a", None, "", "-"]


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.has_columns])
def test_file_that_says_its_columns_needs_to_be_told_none(name: str, tmp_path: Path) -> None:
    form = PartFormat(name, KINDS[name].default_compression)
    rows = pa.RecordBatch.from_pydict({"x": [1, 2], "t": ["a", None]})
    path = stored_at(tmp_path, written([rows], form), form)

    with open_part(path, form) as file:
        assert (file.schema.names, file.rows) == (["x", "t"], 2)
        assert set(file.column_bytes) == {"x", "t"}


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if not kind.has_columns])
def test_file_that_does_not_say_its_columns_has_to_be_told(name: str, tmp_path: Path) -> None:
    form = PartFormat(name, "none", CsvForm() if name == "csv" else None)

    with pytest.raises(pa.ArrowInvalid, match="nothing tells the columns"):
        open_part(str(tmp_path / "x"), form)
