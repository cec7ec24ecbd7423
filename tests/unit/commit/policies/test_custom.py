"""A policy of the user's own is built with its texts, or refused by name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from tidegate.commit.policies.custom import load_custom
from tidegate.config import CustomPolicy
from tidegate.errors import PolicyUnknown


class Policy:
    """Keeps what it was built with."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def commit(self, context: Any) -> None:
        """Do nothing."""


class Silent:
    """Has no method of a policy."""


def _leaving() -> None:
    sys.exit(3)


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a module of the user's be found."""
    made = ModuleType("of_the_user")
    made.__dict__.update(Policy=Policy, Silent=Silent, leaving=_leaving, number=7)
    monkeypatch.setitem(sys.modules, "of_the_user", made)


def test_policy_is_built_with_the_texts_of_the_pipeline_file() -> None:
    found = load_custom(CustomPolicy(custom="of_the_user:Policy", parameters=("a", "b")))

    assert isinstance(found, Policy)
    assert found.texts == ("a", "b")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("not_there:Policy", "ModuleNotFoundError"),
        ("of_the_user:Nothing", "AttributeError"),
        ("of_the_user", "AttributeError"),
        ("of_the_user:number", "TypeError"),
        ("of_the_user:leaving", "SystemExit"),
        ("of_the_user:Silent", "no method commit"),
        ("", "ValueError"),
    ],
)
def test_what_is_no_policy_is_refused_and_stops_nobody_else(reference: str, problem: str) -> None:
    with pytest.raises(PolicyUnknown, match=problem):
        load_custom(CustomPolicy.model_construct(custom=reference, parameters=()))
