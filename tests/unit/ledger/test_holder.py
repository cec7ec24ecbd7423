"""Who may take what another run holds, and what it is told if it may not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.ledger.holder import Holder, Life, Way

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MOMENT = timedelta(microseconds=1)
LIVES = {"gone": Life.GONE, "waiting": Life.WAITING, "said gone": Life.SAID_GONE}


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
        pytest.param("said gone", NOW + MOMENT, False, id="still held, as a person did not expect"),
        pytest.param("said gone", NOW, True, id="run out, and a person said that it is gone"),
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


LOAD = Way(("load", "orders"), "finishes it", ("release", "orders", 1))
RETIRE = Way(("retire", "orders"), "goes on", ("release", "orders", 1), takes_over=False)
RELEASE = Way(("release", "orders", 1), "takes it", ("release", "orders", 1), takes_over=False)
AFTER = "after 2026-03-01 13:00:00Z"


@pytest.mark.parametrize(
    ("owner", "expires", "way", "told"),
    [
        ("other", NOW + HOUR, LOAD, f"`tidegate load orders` {AFTER} finishes it."),
        ("other", NOW + HOUR, RETIRE, f"`tidegate retire orders` {AFTER} goes on."),
        ("said gone", NOW + HOUR, LOAD, f"`tidegate load orders --take-over` {AFTER} finishes it."),
        ("said gone", NOW + HOUR, RELEASE, f"`tidegate release orders 1` {AFTER} takes it."),
        (
            "waiting",
            NOW + HOUR,
            LOAD,
            f"`tidegate load orders --take-over` {AFTER} finishes it, or "
            "`tidegate release orders 1` leaves it to the next run.",
        ),
        ("waiting", NOW, LOAD, "`tidegate load orders --take-over` now finishes it, or"),
        ("waiting", None, LOAD, "`tidegate load orders --take-over` now finishes it, or"),
        (
            "waiting",
            NOW,
            RETIRE,
            "`tidegate release orders 1` now takes it from that run, and `tidegate retire orders` "
            "then goes on.",
        ),
        ("waiting", NOW, RELEASE, "`tidegate release orders 1` now takes it from that run."),
        (
            "waiting",
            NOW,
            Way(("publish", "orders"), "finishes it"),
            "`tidegate publish orders --take-over` now finishes it.",
        ),
    ],
)
def test_outlook_names_the_command_and_from_when_it_helps(
    owner: str, expires: datetime | None, way: Way, told: str
) -> None:
    assert told in HOLDER.outlook(owner, expires, NOW, way)


def test_renewed_is_told_from_the_end() -> None:
    assert HOLDER.renewed(NOW + HOUR) == "2026-03-01 12:00:00Z"
