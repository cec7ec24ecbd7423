"""Match the files of two states, whichever manifests list them. Reads nothing."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from tidegate.source.iceberg.matching import partition_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from tidegate.source.iceberg.entries import Entry


class Pairs:
    """Data files of two states, matched: a file that another manifest lists now is the same."""

    def __init__(
        self, gone: Sequence[Entry], come: Sequence[Entry], touched: Sequence[Entry]
    ) -> None:
        self.old = [*gone, *touched]
        self.new = [*come, *touched]
        left: dict[Hashable, list[Entry]] = defaultdict(list)
        for entry in gone:
            left[_identity(entry)].append(entry)
        self.kept = list(touched)
        self.added: list[Entry] = []
        for entry in come:
            same = left.get(_identity(entry))
            if same:
                same.pop()
                self.kept.append(entry)
            else:
                self.added.append(entry)
        self.removed = [entry for entries in left.values() for entry in entries]


def only_on_one_side(gone: Iterable[Entry], come: Iterable[Entry]) -> list[Entry]:
    """Give the delete files of one side only; rewritten manifests list the same ones again."""
    sides = [{_delete_identity(entry): entry for entry in side} for side in (gone, come)]
    common = sides[0].keys() & sides[1].keys()
    return [entry for key, entry in chain(*(side.items() for side in sides)) if key not in common]


def _identity(entry: Entry) -> Hashable:
    # A file that was removed and added again has another age, so other deletes apply to it.
    return entry.path, entry.sequence_number


def _delete_identity(entry: Entry) -> Hashable:
    partition = partition_key(entry.spec_id, entry.partition)
    return entry.path, entry.content_offset, entry.sequence_number, partition
