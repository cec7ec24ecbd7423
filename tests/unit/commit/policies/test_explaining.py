"""What a policy raises names the policy; Tidegate's own errors pass as they are."""

from __future__ import annotations

import pytest

from tidegate.commit.policies.explaining import policy_named
from tidegate.errors import PolicyFailed, PolicyRefused, StorageSilent


@pytest.mark.parametrize("error", [PolicyFailed, PolicyRefused])
@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit("no")])
def test_whatever_a_policy_raises_names_it(
    error: type[PolicyFailed | PolicyRefused], raised: BaseException
) -> None:
    with pytest.raises(error) as named, policy_named(error, "orders", "dt=1", "notify"):
        raise raised

    assert named.value.policy == "notify"
    assert named.value.problem == f"{type(raised).__name__}: no"


def test_error_of_tidegate_passes_as_it_is() -> None:
    silent = StorageSilent(path="/a", problem="b")

    with (
        pytest.raises(StorageSilent) as passed,
        policy_named(PolicyFailed, "orders", "dt=1", "notify"),
    ):
        raise silent

    assert passed.value is silent
