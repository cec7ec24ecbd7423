"""Errors of tasks as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StorageFull, TidegateError
from tidegate.execute.errors_in_tasks import RetryTask, carried_error, error_of, error_text


@given(st.text(), st.text())
def test_error_text_any_values_survive(path: str, problem: str) -> None:
    error = StorageFull(path=path, problem=problem)

    found = error_of(error_text(error))

    assert (type(found), found.values) == (StorageFull, error.values)


@given(st.text())
def test_carried_error_inside_a_traceback_is_found(problem: str) -> None:
    error = StorageFull(path="/lake", problem=problem)
    failure = RuntimeError(
        f"Job aborted {{1}}:\nTraceback…\nRetryTask: {RetryTask(error)}\n\tat org.apache {{}}"
    )

    found = carried_error(failure)

    assert isinstance(found, TidegateError)
    assert found.values == error.values


@pytest.mark.parametrize("text", ["", "ValueError: {}", "tidegate-error: nothing"])
def test_carried_error_without_one_is_none(text: str) -> None:
    assert carried_error(RuntimeError(text)) is None
