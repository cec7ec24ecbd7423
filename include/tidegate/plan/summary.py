"""Sum up what a plan reads, for its explanation (ICE-5.18)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tidegate.model.plan_record import DeleteTotal, SplitTotal
from tidegate.plan.weights import TERMS, delete_bytes, delete_lists, distinct_refs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidegate.model.plan import Piece, Split


def delete_totals(pieces: Iterable[Piece]) -> dict[str, DeleteTotal]:
    """Count the delete files and vectors that apply to pieces, by kind, each once."""
    lists = {id(refs): refs for piece in pieces for refs in delete_lists(piece)}
    kinds: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for ref in distinct_refs(lists.values()):
        kinds[ref["content"]].append(ref)
    return {
        kind: DeleteTotal(
            files=len(refs),
            bytes=sum(map(delete_bytes, refs)),
            rows=sum(ref["rows"] for ref in refs),
        )
        for kind, refs in sorted(kinds.items())
    }


def split_totals(splits: Sequence[Split]) -> dict[str, SplitTotal]:
    """Count splits by the term that decides their weight."""
    weights = {term: [split.weight for split in splits if split.term == term] for term in TERMS}
    return {
        term: SplitTotal(len(found), sum(found), max(found))
        for term, found in weights.items()
        if found
    }
