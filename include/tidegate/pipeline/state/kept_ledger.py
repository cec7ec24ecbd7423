"""Let a step of a pipeline ask its ledger often for the price of opening it once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.ledger import Ledger

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class _Stands(Protocol):
    """What stands on a ledger."""

    @property
    def ledger(self) -> Ledger: ...


_It = TypeVar("_It", bound=_Stands)


def keeping_ledger_open(
    step: Callable[Concatenate[_It, _Given], _Made],
) -> Callable[Concatenate[_It, _Given], _Made]:
    """Keep the ledger's connections open while a method lasts.

    For methods that return when they are done: a generator would keep them as long as its caller
    likes.
    """

    @functools.wraps(step)
    def keeping(self: _It, /, *given: _Given.args, **named: _Given.kwargs) -> _Made:
        with self.ledger.keeping_open():
            return step(self, *given, **named)

    return keeping
