"""Sum up what a plan reads, for its explanation (ICE-5.18)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tidegate.model.plan_record import DeleteTotal, SplitTotal
from tidegate.plan.weights import TERMS, distinct_deltas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.model.file_slice import Delta
    from tidegate.model.plan import Piece, Split


def delete_totals(pieces: Iterable[Piece]) -> dict[str, DeleteTotal]:
    """Count the delete files and vectors that apply to pieces, by kind, each once."""
    lists = {id(deltas): deltas for piece in pieces for deltas in piece.slice.delta_lists}
    kinds: dict[str, list[Delta]] = defaultdict(list)
    for delta in distinct_deltas(lists.values()):
        kinds[delta.kind].append(delta)
    return {
        str(kind): DeleteTotal(
            files=len(deltas),
            bytes=sum(delta.size_bytes for delta in deltas),
            rows=sum(delta.rows for delta in deltas),
        )
        for kind, deltas in sorted(kinds.items())
    }


def split_totals(splits: Sequence[Split]) -> dict[str, SplitTotal]:
    """Count splits by the term that decides their weight."""
    weights = {term: [split.weight for split in splits if split.term == term] for term in TERMS}
    return {
        term: SplitTotal(len(found), sum(found), max(found))
        for term, found in weights.items()
        if found
    }
