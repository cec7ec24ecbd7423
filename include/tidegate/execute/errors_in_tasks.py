"""Carry errors out of Spark tasks so that they arrive on the driver as what they are."""

from __future__ import annotations

import json
import re

from tidegate.errors import TidegateError

_MARK = "tidegate-error:"
_MARKED = re.compile(re.escape(_MARK) + r"(\{.*\})")


class RetryTask(RuntimeError):
    """Tells Spark to try a task again; its text carries the Transient error for the last time."""

    def __init__(self, error: TidegateError) -> None:
        super().__init__(f"{_MARK}{error_text(error)}")


def error_text(error: TidegateError) -> str:
    """Write an error with its values on one line."""
    return json.dumps(error.to_json(), default=str)


def error_of(text: str) -> TidegateError:
    """Build the error again that `error_text` wrote."""
    return TidegateError.from_json(json.loads(text))


def carried_error(failure: BaseException) -> TidegateError | None:
    """Find the error that a failed job carries in its text, None if it is none of ours."""
    found = _MARKED.search(str(failure))
    return error_of(found.group(1)) if found else None
