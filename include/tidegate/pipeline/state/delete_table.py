"""Name delete files once per plan: a window may have as many pairs of files as data times deletes.

In the lines of a plan, the lists of pieces are runs of the plan's table of deletes, `[first, end)`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.model.row_changes import CHANGE
from tidegate.model.wire import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tidegate.model.plan import Piece, Split

    Refs = Sequence[Mapping[str, Any]]
    Runs = Sequence[Sequence[int]]
    Lists = dict[int, tuple[Refs, Runs]]

_DELETES = "deletes"
_STATES = ("before", "after")
_KEY = "delete"
_START = f'{{"{_KEY}":'.encode()


class DeleteTable:
    """The delete files of splits, and their lists as runs of it; `lines` are its text."""

    def __init__(self, splits: Sequence[Split]) -> None:
        lists = {id(refs): refs for piece in _pieces(splits) for refs in _lists(piece.details)}
        self.lines: list[str] = []
        self._texts: dict[int, str] = {}
        self._places: dict[str, int] = {}
        self._runs: Lists = {}
        # Later commits have the deletes of earlier ones and more: the longest lists are one run,
        # and so are the others, which are parts of them.
        for refs in sorted(lists.values(), key=len, reverse=True):
            self._runs[id(refs)] = refs, _runs(map(self._place, refs))

    def shorten(self, split: Split) -> Split:
        """Return a split with runs in place of lists."""
        if not self.lines:
            return split
        parts = (
            replace(part, pieces=tuple(map(self._shortened, part.pieces)))
            for part in split.sub_splits
        )
        return replace(split, sub_splits=tuple(parts))

    def _shortened(self, piece: Piece) -> Piece:
        details = _with_lists(piece.details, lambda refs: self._runs[id(refs)][1])
        return piece if details is piece.details else replace(piece, details=details)

    def _place(self, ref: Mapping[str, Any]) -> int:
        # Sources share what describes one delete file; those that do not give equal texts.
        text = self._texts.get(id(ref))
        if text is None:
            text = self._texts[id(ref)] = canonical(ref)
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.lines)
            self.lines.append(f'{{"{_KEY}":{text}}}')
        return place


class StoredDeletes:
    """The table as it stands in front of a plan's splits, each line read when it is asked for."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._read: dict[int, Mapping[str, Any]] = {}

    @classmethod
    def before(cls, lines: Sequence[bytes]) -> StoredDeletes:
        """Find the table in front of the lines of splits; plans without deletes have none."""
        first = (place for place, line in enumerate(lines) if not line.startswith(_START))
        return cls(lines[: next(first, len(lines))])

    def __len__(self) -> int:
        """Count the lines."""
        return len(self._lines)

    def restore(self, split: Any) -> None:
        """Put lists in place of runs into the JSON of a split."""
        if not self._lines:
            return
        for part in split["sub_splits"]:
            for piece in part["pieces"]:
                piece["details"] = _with_lists(piece["details"], self._refs)

    def _refs(self, runs: Runs) -> Refs:
        return [self._ref(place) for first, end in runs for place in range(first, end)]

    def _ref(self, place: int) -> Mapping[str, Any]:
        found = self._read.get(place)
        if found is None:
            found = self._read[place] = json.loads(self._lines[place])[_KEY]
        return found


def _pieces(splits: Iterable[Split]) -> Iterator[Piece]:
    return (piece for split in splits for part in split.sub_splits for piece in part.pieces)


def _lists(details: Mapping[str, Any]) -> tuple[Refs, ...]:
    change = details.get(CHANGE)
    if change is not None:
        return tuple(refs for refs in map(change.get, _STATES) if refs)
    refs = details.get(_DELETES)
    return (refs,) if refs else ()


def _with_lists(details: Mapping[str, Any], turn: Callable[[Any], Any]) -> Mapping[str, Any]:
    change = details.get(CHANGE)
    if change is not None:
        turned = {state: turn(change[state]) for state in _STATES if change[state]}
        return {**details, CHANGE: {**change, **turned}} if turned else details
    refs = details.get(_DELETES)
    return {**details, _DELETES: turn(refs)} if refs else details


def _runs(places: Iterable[int]) -> Runs:
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1][1] += 1
        else:
            runs.append([place, place + 1])
    return runs
