"""Rows of upstream counts find their partition, whatever type the values have (PC-C03)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tidegate.commit.count_keys import counts_by_partition
from tidegate.config import PipelineConfig
from tidegate.errors import CountsUnreadable

DAY = "2026-02-01"
KEYS = {"dt": "day(at)", "hr": "hour(at)", "region": "region"}


def pipeline(partition_by: dict[str, str], zone: str = "UTC") -> PipelineConfig:
    return PipelineConfig.from_resolved(
        {
            "name": "orders",
            "timezone": zone,
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": partition_by},
        }
    )


@pytest.mark.parametrize(
    ("dt", "hr"),
    [
        ("2026-02-01", "05"),
        (date(2026, 2, 1), 5),
        (datetime(2026, 2, 1, 4, tzinfo=UTC), datetime(2026, 2, 1, 4, tzinfo=UTC)),
        (datetime(2026, 2, 1, 5), "5"),  # noqa: DTZ001 (as a database without zones returns it)
    ],
    ids=["texts", "date and number", "aware times", "naive time"],
)
def test_values_of_any_type_are_the_partition_values(dt: Any, hr: Any) -> None:
    found = {"dt": [dt], "hr": [hr], "region": ["eu"], "rows": [7]}

    counts = counts_by_partition(pipeline(KEYS, "Europe/Berlin"), found, "here")

    assert counts == {("2026-02-01", "05", "eu"): 7}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (True, "true"), (Decimal("1.50"), "1.50"), (date(2026, 2, 1), "2026-02-01"),
        ("", None), (None, None), ("__DEFAULT_PARTITION__", None), ("a b", "a b"),
    ],
)  # fmt: skip
def test_value_of_a_plain_key_has_one_spelling(value: Any, text: str | None) -> None:
    found = {"k": [value], "n": ["3"]}

    assert counts_by_partition(pipeline({"k": "k2"}), found, "here") == {(text,): 3}


def test_values_of_several_types_have_each_their_own_spelling() -> None:
    found = {"k": [1, True, 1.0, "1", None], "n": [1, 2, 4, 8, 16]}

    counts = counts_by_partition(pipeline({"k": "k2"}), found, "here")

    assert counts == {("1",): 9, ("true",): 2, ("1.0",): 4, (None,): 16}


@pytest.mark.parametrize(
    ("partition_by", "value", "example"),
    [
        *(
            ({"k": "day(at)"}, value, "2026-02-01")
            for value in (
                *("01.11.2026", "2026/11/01", "2026-11-1", "20261101", "2026-W44-7", "five"),
                *("2026-11-31", "2026-11-01T00", "2026-11-01 00:00:00", " 2026-11-01", 20261101),
            )
        ),
        *(({"k": "month(at)"}, value, "2026-02") for value in ("2026-11-01", "2026-13", "11")),
        *(
            ({"k": "hour(at)"}, value, "2026-02-01T05")
            for value in ("05", 5, "2026-11-01 05", "2026-11-01T05:00", "2026-11-01T05+01:00")
        ),
        *(({"d": "day(at)", "k": "hour(at)"}, value, "05") for value in ("²", "24", -1, "5h", 5.0)),
    ],
)
def test_value_that_is_not_what_a_partition_is_called_is_refused(
    partition_by: dict[str, str], value: Any, example: str
) -> None:
    found = {"d": ["2026-02-01"] * 2, "k": [example, value], "n": [1, 1]}
    found = {name: values for name, values in found.items() if name != "d" or "d" in partition_by}

    with pytest.raises(CountsUnreadable) as refused:
        counts_by_partition(pipeline(partition_by), found, "counts.csv")

    assert refused.value.problem == (
        f"expected values of a partition in 'k', such as '{example}'; found {value!r} in row 2"
    )


def test_rows_of_one_partition_are_added_and_an_unknown_part_makes_the_sum_unknown() -> None:
    found = {"DT": ["2026-02-01", "2026-02-01", "2026-02-02", "2026-02-02"], "N": [1, 2, 3, None]}

    assert counts_by_partition(pipeline({"dt": "day(at)"}), found, "x") == {("2026-02-01",): 3}


def test_target_without_keys_has_one_count() -> None:
    assert counts_by_partition(pipeline({}), {"n": [4, 5]}, "x") == {(): 9}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"n": [1]}, "expected a column 'dt' for the partition key; found n"),
        ({"dt": ["x"]}, "expected the columns dt, and one with the rows; found dt"),
        ({"dt": ["x"], "n": [1], "m": [2]}, "found dt, n, m"),
        ({"dt": [DAY], "n": ["many"]}, "expected whole numbers of rows in 'n'; found 'many'"),
        ({"dt": [DAY], "n": [-1]}, "found -1"),
        ({"dt": [DAY], "n": [1.5]}, "found 1.5"),
        ({"dt": [DAY], "n": [float("nan")]}, "found nan"),
        ({"dt": [DAY], "n": [float("inf")]}, "found inf"),
        ({"dt": [DAY], "n": [True]}, "found True"),
        ({"dt": [DAY], "n": [[3]]}, "found [3]"),
        ({"dt": [DAY], "n": [{"rows": 3}]}, "found {'rows': 3}"),
        ({"dt": [DAY], "n": [2**63]}, "found 9223372036854775808"),
        ({"dt": [DAY], "n": ["1e999999999"]}, "found '1e999999999'"),
        (
            {"dt": [["2026-02-01"]], "n": [4]},
            "expected single values of a partition in 'dt', such as '2026-02-01'; found "
            "['2026-02-01'] in row 1",
        ),
        ({"dt": [{"day": 1}], "n": [4]}, "found {'day': 1} in row 1"),
        (
            {"dt": [datetime.max.replace(tzinfo=UTC)], "n": [4]},
            "partition in 'dt', such as '2026-02-01'; found datetime",
        ),
    ],
)
def test_counts_of_another_form_are_refused(found: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(CountsUnreadable) as refused:
        counts_by_partition(pipeline({"dt": "day(at)"}, "Asia/Tokyo"), found, "counts.csv")

    assert message in str(refused.value)
    assert str(refused.value).startswith("counts.csv: ")
