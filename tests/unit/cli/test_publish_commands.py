"""The exit code of a publish."""

from __future__ import annotations

import pytest

from tidegate.cli.output import FAILED, NOTHING
from tidegate.cli.publish_commands import exit_of
from tidegate.model.partition import Partition
from tidegate.model.run import PublishOutcome


@pytest.mark.parametrize(
    ("states", "code"),
    [
        pytest.param([], NOTHING, id="none-pending"),
        pytest.param(["committed", "committed"], 0, id="all-out"),
        pytest.param(["committed", "pending"], 0, id="some-wait"),
        pytest.param(["pending"], NOTHING, id="all-wait"),
        pytest.param(["unchanged"], NOTHING, id="nothing-new"),
        pytest.param(["committed", "held"], NOTHING, id="one-held"),
        pytest.param(["held", "failed"], FAILED, id="one-failed"),
    ],
)
def test_publish_with_outcomes_ends_with_the_gravest(states: list[str], code: int) -> None:
    outcomes = [PublishOutcome(Partition(()), state, 1, 1) for state in states]

    assert exit_of(outcomes) == code
