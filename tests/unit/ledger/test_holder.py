"""Who may take what another run holds, and what it is told if it may not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.ledger.holder import Holder, Life

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MOMENT = timedelta(microseconds=1)
LIVES = {"gone": Life.GONE, "waiting": Life.WAITING}


def life_of(owner: str) -> Life:
    return LIVES.get(owner, Life.RENEWING)


HOLDER = Holder("me", NOW, HOUR, life_of)


@pytest.mark.parametrize(
    ("owner", "expires", "may"),
    [
        pytest.param(None, None, True, id="held by nobody"),
        pytest.param("me", NOW + HOUR, True, id="held by itself"),
        pytest.param("other", NOW + HOUR, False, id="held by another"),
        pytest.param("other", NOW + MOMENT, False, id="still held"),
        pytest.param("other", NOW, True, id="run out just now"),
        pytest.param("other", NOW - HOUR, True, id="run out"),
        pytest.param("gone", NOW + HOUR, True, id="held by a process that is gone"),
        pytest.param("waiting", NOW - 1000 * HOUR, False, id="held by a run that may wait"),
        pytest.param("other", None, False, id="held without an end"),
    ],
)
def test_may_take_looks_at_owner_time_and_life(
    owner: str | None, expires: datetime | None, may: bool
) -> None:
    assert HOLDER.may_take(owner, expires, NOW) is may


def test_asked_once_it_asks_no_more_and_lets_time_decide_about_others() -> None:
    asked: list[str] = []

    def ask(owner: str) -> Life:
        asked.append(owner)
        return Life.WAITING

    holder = Holder("me", NOW, HOUR, ask).asked_about("other")

    assert not holder.may_take("other", NOW - HOUR, NOW)
    assert not holder.may_take("newer", NOW + HOUR, NOW)
    assert asked == ["other"]


@pytest.mark.parametrize(
    ("owner", "told"),
    [
        ("other", "`tidegate load orders` after 2026-03-01 13:00:00Z"),
        ("waiting", "`tidegate load orders --take-over` after 2026-03-01 13:00:00Z"),
    ],
)
def test_outlook_names_the_command_and_from_when_it_helps(owner: str, told: str) -> None:
    assert told in HOLDER.outlook(owner, NOW + HOUR, "load", "orders")
    assert HOLDER.renewed(NOW + HOUR) == "2026-03-01 12:00:00Z"
