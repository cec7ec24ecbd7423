"""Decide, from sums, whether changes turn each state into the next (ICE-3.17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import ChangelogInconsistent
from tidegate.model.bag_sum import BagSum

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def check_balance(source: str, sums: Iterable[Mapping[str, BagSum]]) -> None:
    """Check that the sums of every commit add up to nothing.

    Args:
        source: the table, for errors.
        sums: of all changes of a window, and of all states at their ends, in any parts.

    Raises:
        ChangelogInconsistent: those of a commit do not.
    """
    left: dict[str, BagSum] = {}
    for part in sums:
        for commit, found in part.items():
            left[commit] = left.get(commit, BagSum()).plus(found)
    for commit, rest in sorted(left.items()):
        if rest != BagSum():
            raise ChangelogInconsistent(source=source, snapshot=commit, rows=rest.rows)
