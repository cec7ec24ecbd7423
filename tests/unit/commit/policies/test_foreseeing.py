"""What a policy says of a commit before it begins, and how it refuses one (PC-A13)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tidegate.commit.policies import CommitAhead, SuccessFile, foreseen
from tidegate.errors import MetastoreSilent, PolicyRefused
from tidegate.model.partition import Partition

AHEAD = CommitAhead("orders", "/lake/orders", None)
DAY = Partition((("dt", "2026-02-01"),))


class Says:
    """Does in `foresee` what it is built with."""

    def __init__(self, does: Any) -> None:
        self.does = does

    def commit(self, context: Any) -> None:
        """Do nothing."""

    def foresee(self, ahead: CommitAhead) -> Any:
        return self.does(ahead)


def test_policy_without_foresight_says_nothing() -> None:
    assert foreseen("success-file", SuccessFile(), AHEAD) is None


def test_policy_says_what_it_will_do() -> None:
    assert foreseen("it", Says(lambda ahead: f"lists {ahead.pipeline}"), AHEAD) == "lists orders"
    assert foreseen("it", Says(lambda _: None), AHEAD) is None


@pytest.mark.parametrize(
    ("ahead", "subject"),
    [(AHEAD, "the next commit"), (CommitAhead("orders", "/o", None, DAY), "dt=2026-02-01")],
    ids=["check", "commit"],
)
@pytest.mark.parametrize("ends", [lambda _: 1 / 0, lambda _: sys.exit(3)], ids=["error", "exit"])
def test_anything_that_a_policy_raises_refuses_the_commit(
    ends: Any, ahead: CommitAhead, subject: str
) -> None:
    with pytest.raises(PolicyRefused, match=f"{subject}: policy 'it' refuses it: "):
        foreseen("it", Says(ends), ahead)


def test_error_of_tidegate_stays_as_it_is() -> None:
    def silent(_: CommitAhead) -> None:
        raise MetastoreSilent(uri="thrift://x:1", problem="no")

    with pytest.raises(MetastoreSilent):
        foreseen("it", Says(silent), AHEAD)
