"""Ask a policy what a commit will do before it begins (PC-A13). Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.commit.policies.explaining import policy_named
from tidegate.commit.policies.protocol import ForeseeingPolicy
from tidegate.errors import PolicyRefused

if TYPE_CHECKING:
    from tidegate.commit.policies.protocol import CommitAhead, CommitPolicy


def foreseen(title: str, policy: CommitPolicy, ahead: CommitAhead) -> str | None:
    """Return what a policy says of a commit that has not begun.

    Returns:
        None if it says nothing, or is one that foresees nothing.

    Raises:
        PolicyRefused: it is not able or willing to carry out its part (Transient).
    """
    if not isinstance(policy, ForeseeingPolicy):
        return None
    partition = "the next commit" if ahead.partition is None else str(ahead.partition)
    with policy_named(PolicyRefused, ahead.pipeline, partition, title):
        said = policy.foresee(ahead)
    return None if said is None else str(said)
