"""Who may take what another run holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.ledger.windows import Holder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("owner", "expires", "may"),
    [
        pytest.param(None, None, True, id="held by nobody"),
        pytest.param("me", NOW + HOUR, True, id="held by itself"),
        pytest.param("other", NOW + HOUR, False, id="held by another"),
        pytest.param("other", NOW + timedelta(microseconds=1), False, id="still held"),
        pytest.param("other", NOW, True, id="run out just now"),
        pytest.param("other", NOW - HOUR, True, id="run out"),
        pytest.param("gone", NOW + HOUR, True, id="held by a process that is gone"),
        pytest.param("other", None, False, id="held without an end"),
    ],
)
def test_may_take_looks_at_owner_time_and_process(
    owner: str | None, expires: datetime | None, may: bool
) -> None:
    holder = Holder("me", NOW, NOW + HOUR, is_gone=lambda name: name == "gone")

    assert holder.may_take(owner, expires) is may
