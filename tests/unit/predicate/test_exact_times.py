"""Times are compared to the nanosecond, whatever unit a column counts in; Python's integers tell.

Columns hold times around the literal and the ends of their types, and NULL.
"""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PredicateInvalid
from tidegate.predicate import Predicate

if TYPE_CHECKING:
    from collections.abc import Callable

Truth = bool | None
FIRST, LAST = -(1 << 63), (1 << 63) - 1
UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Arrow's seconds become polars' milliseconds, of which fewer fit.
FEWER = 1_000
SECOND, MICROSECOND = 1_000_000_000, 1_000
ZONES = {"wall clock": None, "moment": "UTC", "far": "Europe/Berlin"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND = int((datetime.min.replace(tzinfo=UTC) - EPOCH).total_seconds())
LAST_SECOND = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - EPOCH).total_seconds())
# Where years, nanoseconds and 1970 begin and end.
EDGES = [0, FIRST_SECOND, LAST_SECOND, FIRST // SECOND, LAST // SECOND]
OFFSETS = {"": 0, "Z": 0, "+00:00": 0, "+02:00": 120, "-0530": -330, "+14": 840}


def _text(nanoseconds: int, digits: int) -> str:
    seconds, rest = divmod(nanoseconds, SECOND)
    whole = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ")
    return whole + (f".{rest:09}"[: 1 + digits] if digits else "")


FORMS = {
    "typed": "timestamp '{}'",
    "datetime": "datetime '{}'",
    "text": "'{}'",
    "cast": "cast('{}' as timestamp)",
    "colons": "'{}'::timestamp",
    "typed and cast": "timestamp '{}'::timestamp",
    "digits": "timestamp(9) '{}'",
    "cast, digits": "cast('{}' as timestamp(9))",
}
CUT_FORMS = {
    "typed": "timestamp(6) '{}'",
    "cast": "cast('{}' as timestamp(6))",
    "colons": "'{}'::timestamp(6)",
}


@st.composite
def times(draw: st.DrawFn) -> tuple[int, int]:
    """The nanoseconds from 1970 to a time of the years 1 to 9999, and how many digits say them."""
    digits = draw(st.integers(0, 9))
    unit = 10 ** (9 - digits)
    second = draw(st.sampled_from(EDGES) | st.integers(FIRST_SECOND, LAST_SECOND))
    near = draw(st.integers(-3, 3)) + draw(st.sampled_from([0, 1000, -1000, 10**6, -(10**6)]))
    last = (LAST_SECOND + 1) * SECOND - unit
    return min(max((second * SECOND // unit + near) * unit, FIRST_SECOND * SECOND), last), digits


@st.composite
def literals(draw: st.DrawFn, *, with_offset: bool) -> tuple[str, int]:
    """A literal, and the nanoseconds from 1970 to it."""
    local, digits = draw(times())
    offset = draw(st.sampled_from(sorted(OFFSETS))) if with_offset else ""
    text, nanoseconds = _text(local, digits) + offset, local - OFFSETS[offset] * 60 * SECOND
    form = draw(st.sampled_from([*FORMS.values(), *CUT_FORMS.values()]))
    if form in CUT_FORMS.values():
        nanoseconds -= nanoseconds % MICROSECOND
    return form.format(text), nanoseconds


def _passing(text: str, unit: str, zone: str | None, counts: list[int | None]) -> list[bool]:
    kind = pa.timestamp(unit, zone)
    batch = pa.record_batch({"c": pa.array(counts, pa.int64()).cast(kind)})
    return Predicate.parse(text, batch.schema, "source.read.filter").mask(batch).to_pylist()


def _around(nanoseconds: int, unit: str) -> list[int | None]:
    count, ends = nanoseconds // UNITS[unit], FEWER if unit == "s" else 1
    first, last = FIRST // ends + 1, LAST // ends
    near = [count + step for step in range(-2, 3) if first <= count + step <= last]
    return [*near, first, last, None]


@given(
    data=st.data(),
    unit=st.sampled_from(sorted(UNITS)),
    zone=st.sampled_from(sorted(ZONES)),
    word=st.sampled_from(sorted(OPERATORS)),
    shape=st.sampled_from(["{c} {op} {v}", "{v} {mirrored} {c}", "not ({c} {negated} {v})"]),
)
def test_comparison_is_that_of_the_exact_times(
    data: st.DataObject, unit: str, zone: str, word: str, shape: str
) -> None:
    written, nanoseconds = data.draw(literals(with_offset=ZONES[zone] is not None))
    counts = _around(nanoseconds, unit)
    negated = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[word]
    text = shape.format(c="c", op=word, v=written, mirrored=MIRRORED[word], negated=negated)

    found = _passing(text, unit, ZONES[zone], counts)

    expected = [
        each is not None and OPERATORS[word](each * UNITS[unit], nanoseconds) for each in counts
    ]
    assert found == expected, text


@given(
    listed=st.lists(times(), min_size=1, max_size=3),
    unit=st.sampled_from(sorted(UNITS)),
    zone=st.sampled_from(sorted(ZONES)),
    word=st.sampled_from(["in", "not in"]),
    kind=st.sampled_from(["timestamp", "timestamp(9)"]),
)
def test_list_has_the_exact_times_only(
    listed: list[tuple[int, int]], unit: str, zone: str, word: str, kind: str
) -> None:
    counts = [count for nanoseconds, _ in listed for count in _around(nanoseconds, unit)]
    exact = {nanoseconds for nanoseconds, _ in listed}
    # A list of texts and times is none of SQL's.
    forms = [f"{kind} '{_text(nanoseconds, digits)}'" for nanoseconds, digits in listed]

    found = _passing(f"c {word} ({', '.join(forms)})", unit, ZONES[zone], counts)

    expected = [
        each is not None and (each * UNITS[unit] in exact) == (word == "in") for each in counts
    ]
    assert found == expected


@pytest.mark.parametrize("unit", UNITS)
def test_null_equals_no_time_between_two_values(unit: str) -> None:
    between = "timestamp(9) '1970-01-01 00:00:00.000000001'"
    counts = [0, 1, None]

    same = _passing(f"c is not distinct from {between}", unit, None, counts)
    other = _passing(f"c is distinct from {between}", unit, None, counts)

    assert same == [False, unit == "ns", False]
    assert other == [True, unit != "ns", True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c < timestamp '9999-12-31 00:00:00'", [True, True, True]),
        ("c >= timestamp '9999-12-31 00:00:00'", [False, False, False]),
        ("c <= timestamp '0001-01-01 00:00:00'", [False, False, False]),
        ("c > timestamp '0001-01-01 00:00:00'", [True, True, True]),
        ("c = timestamp '9999-12-31 00:00:00'", [False, False, False]),
        ("c <> timestamp '0001-01-01 00:00:00'", [True, True, True]),
        ("c in (timestamp '9999-12-31 00:00:00')", [False, False, False]),
        ("c > timestamp '1677-09-21 00:12:43.145224'", [True, True, True]),
        ("c <= timestamp '1677-09-21 00:12:43.145225'", [True, False, False]),
    ],
)
def test_time_that_no_nanosecond_reaches_is_below_or_above_all(
    text: str, expected: list[bool]
) -> None:
    assert _passing(text, "ns", "UTC", [FIRST + 1, 0, LAST]) == expected


@pytest.mark.parametrize("year", ["0001", "1600"])
def test_smallest_nanosecond_is_above_a_time_before_all(year: str) -> None:
    # The smallest of Arrow's integers is a time as any other.
    counts = [FIRST, FIRST + 1, None]

    for time in (f"timestamp '{year}-01-01 00:00:00'", f"'{year}-01-01 00:00:00.0000001'"):
        assert _passing(f"c > {time}", "ns", "UTC", counts) == [True, True, False]
        assert _passing(f"c <= {time}", "ns", "UTC", counts) == [False, False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c <= {last}", [True, True, True]),
        ("c < {last}", [True, True, True]),
        ("c > {last}", [False, False, False]),
        ("c >= {early}", [True, True, True]),
        ("c < {early}", [False, False, False]),
        ("c between {early} and {last}", [True, True, True]),
        ("c in ({early}, {last})", [False, False, False]),
        ("c not in ({early}, timestamp '1970-01-01 00:00:00')", [True, False, True]),
    ],
)
@pytest.mark.parametrize("form", [*FORMS.values(), "cast('{}' as timestamptz)"])
def test_seventh_decimal_of_a_far_year_loses_and_adds_no_row(
    form: str, text: str, expected: list[bool]
) -> None:
    written = text.format(
        last=form.format("9999-12-31 23:59:59.9999999"),
        early=form.format("1600-01-01 00:00:00.0000001"),
    )
    if form == "'{}'" and "1970" in written:
        # A list of texts and times is none of SQL's.
        written = written.replace("timestamp ", "")
    counts = [-11_676_096_000_000_000 + 1, 0, 253_402_300_799_999_999]

    assert _passing(written, "us", "UTC", counts) == expected


def test_slashes_between_year_and_month_cost_no_decimal() -> None:
    for year in (1600, 1970, 9999):
        count = (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
        later = f"cast('{year}/01/01 00:00:00.0000001' as timestamp)"

        assert _passing(f"c < {later}", "us", None, [count, count + 1]) == [True, False]


@pytest.mark.parametrize("form", ["timestamptz '{}'", "cast('{}+02:00' as timestamp)"])
def test_far_moment_is_not_compared_with_a_wall_clock(form: str) -> None:
    with pytest.raises(PredicateInvalid):
        _passing(f"c < {form.format('9999-12-31 23:59:59.9999999')}", "us", None, [0])


@pytest.mark.parametrize("text", ["c > {}", "c >= {}", "{} < c", "not (c < {})"])
def test_day_is_compared_with_a_time_of_it(text: str) -> None:
    days = pa.record_batch({"c": pa.array([0, 1, None], pa.int32()).cast(pa.date32())})
    noon = Predicate.parse(text.format("timestamp '1970-01-01 12:00:00'"), days.schema, "test")

    assert noon.mask(days).to_pylist() == [False, True, False]


@pytest.mark.parametrize(
    "form",
    [
        "timestamp '{}+02:00'",
        "timestamp(6) '{}+02:00'",
        "timestamptz '{}+02:00'",
        "timestamp with time zone '{}+02:00'",
        "cast('{}+02:00' as timestamp)",
        "cast('{}+02:00' as timestamp(6))",
        "'{}+02:00'::timestamptz",
        "cast('{}+02:00' as timestamp with time zone)",
        "'{}+02:00'",
    ],
)
@pytest.mark.parametrize("fraction", ["", ".123456"])
def test_offset_stays_beside_a_fraction(fraction: str, form: str) -> None:
    written = form.format(f"1970-01-01 02:00:00{fraction}")
    count = int(fraction[1:] or 0)

    found = _passing(f"c = {written}", "us", "UTC", [count - 1, count, count + 7_200_000_000])

    assert found == [False, True, False]


KINDS = {
    **{f"{unit}, {zone}": pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC")},
    **{f"{unit} long": pa.duration(unit) for unit in UNITS},
    "day": pa.date32(),
}
COMPARABLE = [
    (one, other)
    for one, first in KINDS.items()
    for other, second in KINDS.items()
    if pa.types.is_duration(first) == pa.types.is_duration(second)
    and getattr(first, "tz", None) == getattr(second, "tz", None)
]
DAY = 86_400 * SECOND


def _nanoseconds_of(kind: pa.DataType) -> int:
    return DAY if kind == pa.date32() else UNITS[kind.unit]


def _near(nanoseconds: int, kind: pa.DataType, beside: int) -> int:
    """Count a time in a unit, or one a little beside it, as far as the type reaches."""
    last = (1 << 31) - 1 if kind == pa.date32() else LAST // FEWER
    count = nanoseconds // _nanoseconds_of(kind) + beside
    return max(-last, min(last, count))


@pytest.mark.parametrize(("one", "other"), COMPARABLE)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(FIRST, LAST) | st.sampled_from([0, DAY, -DAY, FIRST, LAST]),
            *(st.integers(-1, 1) | st.none() for _ in range(2)),
        )
    ),
    sign=st.sampled_from(sorted(OPERATORS)),
    negated=st.booleans(),
)
def test_columns_of_two_units_compare_as_the_integers_that_they_are(
    one: str, other: str, rows: list[tuple[int, int | None, int | None]], sign: str, negated: bool
) -> None:
    kinds = KINDS[one], KINDS[other]
    counts: list[list[int | None]] = [[], []]
    for near, *besides in rows:
        for column, kind, beside in zip(counts, kinds, besides, strict=True):
            column.append(None if beside is None else _near(near, kind, beside))
    plain = (pa.int32() if kind == pa.date32() else pa.int64() for kind in kinds)
    columns = [
        pa.array(each, number).view(kind)
        for each, number, kind in zip(counts, plain, kinds, strict=True)
    ]
    batch = pa.record_batch(columns, names=["a", "b"])
    text = f"not (a {sign} b)" if negated else f"a {sign} b"

    mask = Predicate.parse(text, batch.schema, "filter").mask(batch).to_pylist()

    scales = [_nanoseconds_of(kind) for kind in kinds]
    assert mask == [
        None not in pair
        and OPERATORS[sign](*(value * scale for value, scale in zip(pair, scales, strict=True)))
        is not negated
        for pair in zip(*counts, strict=True)
    ]
