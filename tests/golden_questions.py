"""What the golden answers ask, as parameters of tests."""

from __future__ import annotations

from typing import Any

import pytest


def question(case: str, number: int | str | None = None, *values: Any, slow: bool = False) -> Any:
    """Give one question as a parameter set `(case, *values)` with a readable id.

    `slow` questions are asked by `make test-all` only: others of the same kind cover the case.
    """
    marks = [pytest.mark.slow] if slow else []
    return pytest.param(
        case, *values, id=case if number is None else f"{case}-{number}", marks=marks
    )
