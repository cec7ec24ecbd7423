"""Find out what a plan says about assembling rows that would make many small files.

A sub-split hands on one file for all buckets, as in an exchange; its message names the file beside
the part files. Every attempt at a sub-split that assembles finds the same rows in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.model.assembly import Assembly
    from tidegate.model.plan import Split


def handing_on(splits: Iterable[Split]) -> tuple[str, ...]:
    """Return the sub-splits of a plan that may hand on rows, in plan order."""
    return tuple(part.id for split in splits for part in split.sub_splits if part.may_hand_on)


def assembly_in(splits: Sequence[Split]) -> Assembly | None:
    """Return how a plan assembles rows, as its last bucket says it; None if it does not."""
    # Splits that assemble come after all those that they wait for.
    return splits[-1].sub_splits[-1].assembly if splits else None
