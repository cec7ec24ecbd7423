"""What the golden answers ask, as parameters of tests; and which of it is not answered yet."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_YET: Mapping[str, str] = {}
"""`case/question` or `case/question/number` as a pattern → why it is not answered yet."""


def question(
    kind: str, case: str, number: int | str | None = None, *values: Any, slow: bool = False
) -> Any:
    """Give one question as a parameter set `(case, *values)` with a readable id.

    `slow` questions are asked by `make test-all` only: others of the same kind cover the case.
    """
    name = "/".join(str(part) for part in (case, kind, number) if part is not None)
    reasons = [reason for pattern, reason in NOT_YET.items() if fnmatchcase(name, pattern)]
    marks = [pytest.mark.xfail(reason=reasons[0], strict=False)] if reasons else []
    if slow:
        marks.append(pytest.mark.slow)
    test_id = case if number is None else f"{case}-{number}"
    return pytest.param(case, *values, id=test_id, marks=marks)
