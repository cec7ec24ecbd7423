"""Numbers and moments as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.cli import wording
from tidegate.model.watermark import Evaluation, Reason

NOON = datetime(2013, 2, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize("number", [0, 1, 10, 11, 2000])
def test_list_has_the_first_names_and_counts_the_others(number: int) -> None:
    names = [f"k={it}" for it in range(number)]

    text = wording.listed(names)

    shown = ", ".join(names[:10])
    more = {0: "none", 1: shown, 10: shown, 11: f"11: {shown} and 1 more"}
    assert text == more.get(number, f"2,000: {shown} and 1,990 more")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(0, "0 B", id="nothing"),
        pytest.param(1023, "1023 B", id="one-below-a-unit"),
        pytest.param(1024, "1.0 KiB", id="one-unit"),
        pytest.param(220 * 1024**2, "220.0 MiB", id="megabytes"),
        pytest.param(5000 * 1024**4, "5000.0 TiB", id="beyond-the-last-unit"),
    ],
)
def test_size_of_a_number_is_in_the_fitting_unit(number: int, text: str) -> None:
    assert wording.size(number) == text


@given(st.integers(0, 2**60))
def test_size_of_any_number_is_short(number: int) -> None:
    assert len(wording.size(number)) <= len("1048576.0 TiB")


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        pytest.param("UTC", "2013-02-09 12:00Z", id="utc"),
        pytest.param("America/New_York", "2013-02-09 07:00-0500", id="behind"),
        pytest.param("Asia/Kolkata", "2013-02-09 17:30+0530", id="half-an-hour"),
    ],
)
def test_moment_in_a_zone_is_wall_clock_with_offset(zone: str, text: str) -> None:
    assert wording.moment(NOON, zone) == text


def test_moment_with_seconds_shows_them() -> None:
    assert wording.moment(NOON.replace(second=5), "UTC") == "2013-02-09 12:00:05Z"


def test_moment_of_the_first_year_has_four_digits_of_it() -> None:
    first = NOON.replace(year=1, month=1, day=2)

    assert wording.moment(first, "UTC") == "0001-01-02 12:00Z"


def test_moment_that_is_unknown_is_a_dash() -> None:
    assert wording.moment(None, "UTC") == "–"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 rows"), (1, "1 row"), (1000, "1,000 rows")],
    ids=["no", "one", "many"],
)
def test_plural_of_a_number_agrees(number: int, text: str) -> None:
    assert wording.plural(number, "row") == text


def test_why_of_a_refused_partition_names_reason_and_values() -> None:
    evaluation = Evaluation(False, Reason.WATERMARK_BEHIND, "6 h missing", NOON)

    assert wording.why(evaluation) == "WATERMARK_BEHIND: 6 h missing"


def test_why_of_a_committable_partition_is_empty() -> None:
    assert wording.why(Evaluation(True, None, "passed", NOON)) == ""
