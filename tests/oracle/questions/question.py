"""One question, and how its answer is labelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SAME = "same"
REFUSED = "refused"
"""The answer where there is none: an error, whatever its class."""


@dataclass(frozen=True)
class Question:
    """What is asked of both."""

    ask: dict[str, Any]
    rule: str | None = None
    """The rule by which Tidegate answers otherwise; None: it answers the same."""
    ours: Any = None
    """Tidegate's answer if there is a rule."""
    beside: dict[str, Any] = field(default_factory=dict)
    """Further answers of Tidegate that Flink has no counterpart to."""

    @property
    def label(self) -> str:
        """`same`, or `different:` with the rule."""
        return SAME if self.rule is None else f"different: {self.rule}"

    def record(self) -> dict[str, Any]:
        """What stands in a file of answers, without the answer."""
        ours = {} if self.rule is None else {"ours": self.ours}
        return {"ask": self.ask, "label": self.label, **ours, **self.beside}
