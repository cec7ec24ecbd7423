"""What others came before is done again, a few times, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import LedgerMoved, NumberPassed
from tidegate.pipeline.state.again import again_if

ATTEMPTS = 5


class Attempt:
    """Fails so often, then succeeds."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error, self.calls = failures, error, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "done"


OVERTAKEN = NumberPassed(pipeline="orders", subject="window 1", reserved=1, found=2)


@given(failures=st.integers(0, 9))
def test_attempt_is_made_until_nobody_came_between(failures: int) -> None:
    attempt = Attempt(failures, OVERTAKEN)

    if failures < ATTEMPTS:
        assert again_if(NumberPassed, attempt) == "done"
    else:
        with pytest.raises(NumberPassed):
            again_if(NumberPassed, attempt)

    assert attempt.calls == min(failures + 1, ATTEMPTS)


def test_other_errors_pass_at_once() -> None:
    attempt = Attempt(1, LedgerMoved(pipeline="orders", expected="x", found="y"))

    with pytest.raises(LedgerMoved):
        again_if(NumberPassed, attempt)

    assert attempt.calls == 1
