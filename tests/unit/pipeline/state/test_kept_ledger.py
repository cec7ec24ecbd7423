"""A method asks its ledger inside one step of it, also when it fails or calls another one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.pipeline.state.kept_ledger import keeping_ledger_open

if TYPE_CHECKING:
    from collections.abc import Iterator


class Steps:
    """Counts the steps that are at work on a ledger; the ledger's pipeline, too."""

    def __init__(self) -> None:
        self.open = 0

    @property
    def ledger(self) -> Any:
        return self

    @contextmanager
    def keeping_open(self) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    @keeping_ledger_open
    def inner(self, /, *given: object, **named: object) -> tuple[object, ...]:
        """Return what came in, and how many steps are open."""
        return self.open, given, named

    @keeping_ledger_open
    def outer(self) -> tuple[object, ...]:
        return self.inner()

    @keeping_ledger_open
    def failing(self) -> None:
        assert self.open == 1
        msg = "asked"
        raise ValueError(msg)


def test_method_runs_inside_a_step_with_what_it_is_called_with() -> None:
    steps = Steps()

    assert steps.inner("a", b="c") == (1, ("a",), {"b": "c"})
    assert steps.open == 0


def test_method_that_calls_another_keeps_the_step_of_its_own() -> None:
    steps = Steps()

    assert steps.outer()[0] == 2
    assert steps.open == 0


def test_step_ends_with_a_method_that_fails() -> None:
    steps = Steps()

    with pytest.raises(ValueError, match="asked"):
        steps.failing()

    assert steps.open == 0


def test_method_keeps_its_name_and_docstring() -> None:
    assert Steps.inner.__name__ == "inner"
    assert Steps.inner.__doc__ == "Return what came in, and how many steps are open."
