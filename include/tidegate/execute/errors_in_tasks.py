"""Carry errors from Spark tasks to the driver as what they are."""

from __future__ import annotations

import json
import re

from tidegate.errors import TidegateError

_MARK = "tidegate-error:"
_MARKED = re.compile(re.escape(_MARK) + r"(\{.*\})")


class RetryTask(RuntimeError):
    """Makes Spark retry a task; its text has the Transient error, for the last attempt."""

    def __init__(self, error: TidegateError) -> None:
        super().__init__(f"{_MARK}{error_text(error)}")


def error_text(error: TidegateError) -> str:
    """Return an error with its values as one line."""
    return json.dumps(error.to_json(), default=str)


def error_of(text: str) -> TidegateError:
    """Build the error from the result of `error_text`."""
    return TidegateError.from_json(json.loads(text))


def carried_error(failure: BaseException) -> TidegateError | None:
    """Return the error in the text of a failed job; None if it is not one of Tidegate's."""
    found = _MARKED.search(str(failure))
    return error_of(found.group(1)) if found else None
