"""Something else happens, once: after a file got its name, or before a look at the ledger."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.storage import OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from tidegate.pipeline import Pipeline


@dataclass(frozen=True)
class Interrupting(OsCalls):
    """System calls after which something else happens, once."""

    pattern: str = ""
    happens: list[Callable[[], Any]] = field(default_factory=list, hash=False)

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        if re.search(self.pattern, target) and self.happens:
            self.happens.pop()()


@contextlib.contextmanager
def before_look(
    monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, number: int, act: Callable[[], object]
) -> Iterator[list[int]]:
    """Do something before one of the looks at what waits and at what was brought.

    Yields:
        The number of the look once something was done before it.
    """
    happened: list[int] = []
    looks = iter(range(1, 1 + number))

    def seen(real: Callable[..., Any]) -> Callable[..., Any]:
        def look(*arguments: Any) -> Any:
            if next(looks, None) == number:
                happened.append(number)
                act()
            return real(*arguments)

        return look

    ledger = pipeline.ledger
    with monkeypatch.context() as watched:
        for part, name in ((type(ledger.partitions), "get"), (type(ledger.contributions), "to")):
            watched.setattr(part, name, seen(getattr(part, name)))
        yield happened
