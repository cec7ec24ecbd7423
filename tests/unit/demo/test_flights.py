"""The flights as the package has them, against facts that can be looked up by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tidegate.demo import flights
from tidegate.demo.flights import NEW_YORK, Flight, airline_name, package_file, read_flights
from tidegate.errors import EnvironmentIncomplete


@pytest.fixture(scope="module")
def week() -> list[Flight]:
    return read_flights()


def find(week: list[Flight], day: int, carrier: str, number: int) -> Flight:
    return next(
        one
        for one in week
        if (one.planned_departure.day, one.carrier, one.flight) == (day, carrier, number)
    )


def at(day: int, hour: int, minute: int) -> datetime:
    return datetime(2013, 2, day, hour, minute, tzinfo=NEW_YORK)


def test_read_flights_delayed_past_midnight_keeps_its_planned_day(week: list[Flight]) -> None:
    # F9 835 LGA–DEN: planned 08:30 on the 10th, left 22:43, arrived 01:00 in Denver (MST).
    flight = find(week, 10, "F9", 835)

    assert flight.planned_departure == at(10, 8, 30)
    assert flight.departed_at == at(10, 22, 43)
    assert flight.landed_at == at(11, 3, 0)
    assert flight.known_at == flight.landed_at


def test_read_flights_cancelled_is_known_six_hours_after_its_plan(week: list[Flight]) -> None:
    cancelled = [one for one in week if one.departed_at is None]

    assert cancelled
    assert all(one.landed_at is None for one in cancelled)
    assert all(one.known_at - one.planned_departure == timedelta(hours=6) for one in cancelled)


def test_read_flights_diverted_for_good_is_known_six_hours_after_it_left(
    week: list[Flight],
) -> None:
    lost = [one for one in week if one.departed_at is not None and one.landed_at is None]

    assert lost
    for flight in lost:
        assert flight.departed_at is not None
        assert flight.known_at - flight.departed_at == timedelta(hours=6)


def test_read_flights_landing_agrees_with_the_time_in_the_air(week: list[Flight]) -> None:
    # Zones and midnights are right where what remains on the ground is a time to taxi.
    taxied = [
        one.landed_at - one.departed_at - timedelta(minutes=one.air_minutes)
        for one in week
        if one.landed_at and one.departed_at and one.air_minutes is not None
    ]

    assert len(taxied) > 5000
    assert timedelta(minutes=5) < min(taxied)
    assert max(taxied) < timedelta(hours=3)


def test_read_flights_of_one_day_are_of_that_day(week: list[Flight]) -> None:
    one_day = read_flights(date(2013, 2, 8), date(2013, 2, 8))

    assert {one.planned_departure.date() for one in one_day} == {date(2013, 2, 8)}
    assert len(one_day) == sum(one.planned_departure.day == 8 for one in week)


def test_read_flights_moments_are_aware(week: list[Flight]) -> None:
    moments = [
        moment
        for one in week
        for moment in (one.planned_departure, one.departed_at, one.landed_at)
        if moment is not None
    ]

    assert all(moment.tzinfo is not None for moment in moments)
    assert min(moments).astimezone(UTC) >= datetime(2013, 2, 5, 5, tzinfo=UTC)


def test_airline_name_of_a_carrier_is_the_packages() -> None:
    assert airline_name("US") == "US Airways Inc."


def test_package_file_package_missing_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flights, "PACKAGE", "no_such_package_of_flights")

    with pytest.raises(EnvironmentIncomplete, match="uv pip install no_such_package_of_flights"):
        package_file("flights.csv.zip")
