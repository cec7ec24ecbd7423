"""What a plan says of the deletes of one piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.source.iceberg.deletes.file import DeleteContent, DeleteFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.plan import Piece

_Files = tuple[DeleteFile, ...]


@dataclass(frozen=True)
class PieceDeletes:
    """The delete files that apply to a data file in the states that are read."""

    before: _Files | None
    """None: the file is not part of that state, or no state before is read."""
    after: _Files | None
    kinds: bool
    """Whether changes between two states are read."""

    @classmethod
    def of(cls, piece: Piece) -> PieceDeletes:
        """Read them from the details of a piece."""
        change = piece.details.get("change")
        if change is None:
            return cls(None, _files(piece.details.get("deletes") or ()), False)
        return cls(_state(change["before"]), _state(change["after"]), True)

    @property
    def key_files(self) -> _Files:
        """The equality delete files of both states."""
        files = (*(self.before or ()), *(self.after or ()))
        return tuple(file for file in files if file.content == DeleteContent.KEYS)

    @property
    def has_same_keys(self) -> bool:
        """Whether the same equality deletes apply in both states."""
        return _keys(self.before) == _keys(self.after)


def _keys(files: _Files | None) -> frozenset[str]:
    return frozenset(file.path for file in files or () if file.content == DeleteContent.KEYS)


def _state(raw: Sequence[Any] | None) -> _Files | None:
    return None if raw is None else _files(raw)


def _files(raw: Sequence[Any]) -> _Files:
    return tuple(DeleteFile.from_json(each) for each in raw)
