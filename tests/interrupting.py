"""A disk on which something else happens, once, after a file has got its name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.storage import OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Interrupting(OsCalls):
    """System calls after which something else happens, once."""

    pattern: str = ""
    happens: list[Callable[[], Any]] = field(default_factory=list, hash=False)

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        if re.search(self.pattern, target) and self.happens:
            self.happens.pop()()
