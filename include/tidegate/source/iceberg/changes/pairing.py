"""Match the files of two states, whatever manifests list them. Reads nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from tidegate.source.iceberg.deletes.entries import FoundDelete
    from tidegate.source.iceberg.manifests.entries import Entry


class Pairs:
    """The matched data files of two states: a file that another manifest lists now is the same."""

    def __init__(
        self, removed: Sequence[Entry], added: Sequence[Entry], touched: Sequence[Entry]
    ) -> None:
        self.old = [*removed, *touched]
        self.new = [*added, *touched]
        left: dict[Hashable, list[Entry]] = defaultdict(list)
        for entry in removed:
            left[_identity(entry)].append(entry)
        self.kept = list(touched)
        self.added: list[Entry] = []
        for entry in added:
            same = left.get(_identity(entry))
            if same:
                same.pop()
                self.kept.append(entry)
            else:
                self.added.append(entry)
        self.removed = [entry for entries in left.values() for entry in entries]


def only_on_one_side(
    removed: Iterable[FoundDelete], added: Iterable[FoundDelete]
) -> tuple[list[FoundDelete], list[FoundDelete]]:
    """Return the delete files of one side only; rewritten manifests list the same ones again."""
    old, new = ({_delete_identity(found): found for found in side} for side in (removed, added))
    return (
        [found for key, found in old.items() if key not in new],
        [found for key, found in new.items() if key not in old],
    )


def _identity(entry: Entry) -> Hashable:
    # A file that was removed and added again has another sequence number, so other deletes apply.
    return entry.path, entry.sequence_number


def _delete_identity(found: FoundDelete) -> Hashable:
    return *found.file.key, found.file.sequence, found.partition
