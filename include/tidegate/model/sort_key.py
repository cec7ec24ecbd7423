"""A column that the rows of a part file are sorted by."""

from __future__ import annotations

from dataclasses import dataclass

DESCENDING = "-"
"""Precedes the name of a column whose largest values come first."""


@dataclass(frozen=True)
class SortKey:
    """A column and its direction; NULL comes last in both."""

    column: str
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> SortKey:
        """Read the result of `text`."""
        column = text.removeprefix(DESCENDING)
        return cls(column.strip(), column != text)

    @property
    def text(self) -> str:
        """As it is written in a pipeline file: `amount`, or `-amount` for the largest first."""
        return f"{DESCENDING}{self.column}" if self.descending else self.column
