"""Name the pipeline in the commands of an error, so that they can be typed as a log shows them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tidegate.errors import TidegateError
from tidegate.errors.commands import naming

if TYPE_CHECKING:
    from collections.abc import Callable

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def naming_pipeline(step: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Replace PIPELINE in the message of every error of a task.

    For methods of an operator with a `pipeline`, and for functions whose first argument is its
    name.
    """

    @functools.wraps(step)
    def named(*given: _Given.args, **options: _Given.kwargs) -> _Made:
        try:
            return step(*given, **options)
        except TidegateError as error:
            first: Any = given[0]
            name = first if isinstance(first, str) else first.pipeline
            error.args = (naming(str(error), name),)
            raise

    return named
