"""Write each delta once per plan: a window may have as many pairs as data files times deltas.

In the lines of a plan, the lists of slices are runs of the plan's table of deltas, `[first, end)`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.model.file_slice import Delta
from tidegate.model.plan import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tidegate.model.file_slice import Deltas, FileSlice
    from tidegate.model.plan import Piece

    Runs = tuple[tuple[int, int], ...]

_STATES = ("before", "after")
_KEY = "delta"
_START = f'{{"{_KEY}":'.encode()


class DeltaTable:
    """The deltas of splits, and their lists as runs of it; `lines` are its text."""

    def __init__(self, splits: Sequence[Split]) -> None:
        lists = {
            id(deltas): deltas for piece in _pieces(splits) for deltas in piece.slice.delta_lists
        }
        self.lines: list[str] = []
        self._places: dict[str, int] = {}
        self._runs: dict[int, tuple[Deltas, Runs]] = {}
        # Later commits have the deltas of earlier ones and more: the longest lists are written as
        # one run, and the others are parts of it.
        for deltas in sorted(lists.values(), key=len, reverse=True):
            self._runs[id(deltas)] = deltas, _runs(map(self._place, deltas))

    def shorten(self, split: Split) -> Split:
        """Return a split with runs in place of lists, only for writing."""
        if not self.lines:
            return split
        return _with_lists(split, lambda slice: _turned(slice, self._runs_of))

    def _runs_of(self, deltas: Deltas) -> Any:
        return self._runs[id(deltas)][1] if deltas else ()

    def _place(self, delta: Delta) -> int:
        text = delta.inner_text()
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.lines)
            self.lines.append(f'{{"{_KEY}":{text}}}')
        return place


class StoredDeltas:
    """The table in front of a plan's splits; each line is read when it is needed."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._read: dict[int, Delta] = {}

    @classmethod
    def before(cls, lines: Sequence[bytes]) -> StoredDeltas:
        """Find the table in front of the lines of splits; plans without deltas have none."""
        first = (place for place, line in enumerate(lines) if not line.startswith(_START))
        return cls(lines[: next(first, len(lines))])

    def __len__(self) -> int:
        """Count the lines."""
        return len(self._lines)

    def split(self, line: bytes) -> Split:
        """Read a split, with lists in place of runs."""
        raw = json.loads(line)
        if not self._lines:
            return Split.from_json(raw)
        # Removed while the rest is read: a delta is built once, however many slices name it.
        runs = [
            _taken_out(piece["slice"]) for part in raw["sub_splits"] for piece in part["pieces"]
        ]
        named = iter(runs)
        return _with_lists(Split.from_json(raw), lambda slice: self._restored(slice, next(named)))

    def _restored(self, slice: FileSlice, runs: dict[str, Runs]) -> FileSlice:
        deltas: dict[str, Any] = {name: self._deltas(found) for name, found in runs.items()}
        if slice.change is not None:
            return replace(slice, change=replace(slice.change, **deltas)) if deltas else slice
        return replace(slice, **deltas) if deltas else slice

    def _deltas(self, runs: Runs) -> Deltas:
        return tuple(self._delta(place) for first, end in runs for place in range(first, end))

    def _delta(self, place: int) -> Delta:
        found = self._read.get(place)
        if found is None:
            raw = json.loads(self._lines[place])[_KEY]
            found = self._read[place] = Delta.from_json({"format": Delta.FORMAT, **raw})
        return found


def _pieces(splits: Iterable[Split]) -> Iterator[Piece]:
    return (piece for split in splits for part in split.sub_splits for piece in part.pieces)


def _with_lists(split: Split, turn: Callable[[FileSlice], FileSlice]) -> Split:
    """Turn every slice of a split, in order."""
    parts = []
    for part in split.sub_splits:
        pieces = (replace(piece, slice=turn(piece.slice)) for piece in part.pieces)
        parts.append(replace(part, pieces=tuple(pieces)))
    return replace(split, sub_splits=tuple(parts))


def _turned(slice: FileSlice, runs_of: Callable[[Deltas], Any]) -> FileSlice:
    change = slice.change
    if change is None:
        return replace(slice, deltas=runs_of(slice.deltas)) if slice.deltas else slice
    runs = {
        state: runs_of(deltas)
        for state in _STATES
        if (deltas := getattr(change, state)) is not None
    }
    return replace(slice, change=replace(change, **runs))


def _taken_out(slice: dict[str, Any]) -> dict[str, Runs]:
    """Remove the runs from a slice that is about to be read, and return those that name deltas."""
    change = slice.get("change")
    holder, names = (slice, ("deltas",)) if change is None else (change, _STATES)
    runs = {name: holder[name] for name in names if holder[name]}
    holder |= dict.fromkeys(runs, ())
    return runs


def _runs(places: Iterable[int]) -> Runs:
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1] = runs[-1][0], place + 1
        else:
            runs.append((place, place + 1))
    return tuple(runs)
