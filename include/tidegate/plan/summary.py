"""Sum up what a plan reads, for its explanation (ICE-5.18)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tidegate.model.plan_record import DeleteTotal, SplitTotal
from tidegate.plan.weights import TERMS, delete_bytes, delete_refs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidegate.model.plan import Piece, Split


def delete_totals(pieces: Iterable[Piece]) -> dict[str, DeleteTotal]:
    """Count the delete files and vectors that apply to pieces, by kind, each once."""
    kinds: dict[str, dict[tuple[str, int | None], Mapping[str, Any]]] = defaultdict(dict)
    for piece in pieces:
        for ref in delete_refs(piece):
            kinds[ref["content"]][ref["path"], ref["offset"]] = ref
    return {
        kind: DeleteTotal(
            files=len(refs),
            bytes=sum(map(delete_bytes, refs.values())),
            rows=sum(ref["rows"] for ref in refs.values()),
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
