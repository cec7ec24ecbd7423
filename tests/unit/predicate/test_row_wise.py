"""Every SQL function of this polars is computed row by row, or refused."""

from __future__ import annotations

from datetime import date, datetime

import polars as pl
import pytest

from tidegate.predicate.row_wise import is_row_wise
from tidegate.predicate.tree import tree_of

ROWS = pl.DataFrame(
    {
        "x": [3, 1, None, 7, 1],
        "y": [2, 2, 1, None, 5],
        "f": [0.5, None, -0.25, 1.0, 0.0],
        "s": ["b,a", "ä", None, "", "a"],
        "b": [True, None, False, True, False],
        "d": [date(2026, 2, 1), None, date(1969, 12, 31), date(2000, 1, 1), date(2026, 2, 1)],
        "t": [datetime(2026, 2, 1, 12, 30, 5, 7), None] + [datetime(1969, 12, 31, 23)] * 3,  # noqa: DTZ001
        "l": [[1, 2], [], None, [2, 2], [1]],
        "st": [{"a": 1}, {"a": None}, None, {"a": 3}, {"a": 1}],
    },
    schema_overrides={"d": pl.Date},
)
NUMBERS = """
abs cbrt ceil ceiling exp floor ln log10 log1p log2 round trunc truncate sign sqrt cos cot sin tan
cosd cotd sind tand acos asin atan acosd asind atand degrees radians
"""
PARTS = """
century day decade dow doy epoch hour isodow isoyear microsecond millennium millisecond minute month
nanosecond quarter second timezone week year
"""
TEXTS = """
bit_length char_length character_length length initcap lower upper ltrim rtrim trim octet_length
reverse normalize
"""
ROW_WISE = [
    *(f"{name}(f)" for name in NUMBERS.split()),
    *(f"extract({part} from t)" for part in PARTS.split() if part != "timezone"),
    *(f"{name}(s)" for name in TEXTS.split()),
    *(f"{name}(d)" for name in ("year", "month", "day", "quarter", "week")),
    *(f"{name}(d)" for name in ("dayofmonth", "dayofweek", "dayofyear")),
    *("hour(t)", "minute(t)", "second(t)", "date_part('year', d)", "strftime(d, '%Y')"),
    *("d + interval '1 month'", "t - interval '1 hour'", "d - d", "cast(t as date)"),
    *("left(s, 1)", "right(s, 1)", "substr(s, 1, 2)", "substring(s, 2)", "substring(s from 1)"),
    *("left(s, y)", "right(s, y)", "lpad(s, 3, '0')", "lpad(s, 3)", "rpad(s, 3, '0')"),
    *("concat(s, 'a')", "concat_ws('-', s, 'b')", "s || 'a'", "starts_with(s, 'a')"),
    *("ends_with(s, 'a')", "regexp_like(s, 'a')", "regexp_replace(s, 'a', 'b')"),
    *("replace(s, 'a', 'b')", "split_part(s, ',', 2)", "string_to_array(s, ',')"),
    *("strpos(s, 'a')", "position('a' in s)", "trim(both 'a' from s)", "ltrim(s, 'a')"),
    *("strptime('2026', '%Y') > t", "try_cast(s as int)", "cast(x as varchar)", "x::double"),
    *("s like 'a%'", "s not like 'a%'", "s ilike 'A%'", "s ~ 'a'", "s !~* 'A'", "s ^@ 'a'"),
    *("x in (1, 2)", "x not in (1, null)", "x in (y, 1)", "x between 1 and y", "x is null"),
    *("x is distinct from y", "x <=> y", "b is true", "not b", "b and x > 1", "b or x > 1"),
    *("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "-x", "x & y", "x | y", "x xor y"),
    *("div(x, y)", "mod(x, y)", "pow(x, 2)", "power(f, y)", "log(x, 2)", "atan2(f, x)"),
    *("bit_and(x, y)", "bit_or(x, y)", "bit_xor(x, y)", "bit_not(x)", "bit_count(x)"),
    *("coalesce(x, y)", "ifnull(x, y)", "nullif(x, y)", "greatest(x, y)", "least(x, y, 2)"),
    *("if(b, x, y)", "case when b then x else y end", "case x when 1 then 2 end", "atan2d(f, x)"),
    *("array_contains(l, 1)", "array_get(l, 1)", "array_length(l)", "array_lower(l)", "l[1]"),
    *("array_upper(l)", "array_mean(l)", "array_sum(l)", "array_reverse(l)", "array_unique(l)"),
    *("array_to_string(string_to_array(s, ','), '-')", "x = any(l)", "st.a", "pi() > x"),
]
REFUSED = [
    *(f"{name}(x)" for name in ("avg", "count", "first", "last", "max", "median", "min", "sum")),
    *(f"{name}(x)" for name in ("stddev", "stdev", "total", "var", "variance", "first_value")),
    *(f"{name}(x, y)" for name in ("corr", "covar", "covar_pop", "covar_samp")),
    *("quantile_cont(x, 0.5)", "quantile_disc(x, 0.5)", "approx_quantile(x, 0.5)"),
    *("array_agg(x)", "string_agg(s)", "listagg(s)", "group_concat(s)", "count(*)", "unnest(l)"),
    *(f"{name}() over (order by x)" for name in ("row_number", "rank", "dense_rank", "cume_dist")),
    *("percent_rank() over (order by x)", "ntile(2) over (order by x)", "sum(x) over ()"),
    *(f"{name}(x) over (order by y)" for name in ("lag", "lead", "last_value", "first_value")),
    *("nth_value(x, 1) over (order by y)", "sum(x) filter (where b)", "exists (select 1)"),
    *("x in (select 1)", "x > all (select 1)", "columns('x')", "grouping(x)"),
    *("generate_series(1, x)", "max(x) + 1 > x", "case when x > avg(x) then 1 end"),
]


@pytest.mark.parametrize("call", ROW_WISE)
def test_function_that_is_let_through_gives_each_row_what_it_gets_alone(call: str) -> None:
    expression = pl.sql_expr(call)

    assert is_row_wise(tree_of(expression))
    together = ROWS.select(expression).to_series().to_list()
    alone = [row.select(expression).to_series().to_list() for row in ROWS.iter_slices(1)]
    backwards = ROWS.reverse().select(expression).to_series().to_list()
    assert repr(together) == repr([value for (value,) in alone])
    assert repr(together) == repr(backwards[::-1])


@pytest.mark.parametrize("call", REFUSED)
def test_function_that_looks_at_other_rows_is_refused(call: str) -> None:
    assert not is_row_wise(tree_of(pl.sql_expr(call)))


def test_function_that_nobody_listed_is_refused() -> None:
    assert not is_row_wise(tree_of(pl.col("x").hash() > 1))
    assert not is_row_wise(tree_of(pl.col("x").shift() > 1))
    assert not is_row_wise(tree_of(pl.col("x").is_duplicated()))
    assert not is_row_wise(tree_of(pl.col("s").str.join()))
