"""The wording of listings in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 3


def counted(files: int) -> str:
    """Return a number of files as text."""
    return "1 file" if files == 1 else f"{files} files"


def first_few(names: Sequence[str], most: int = _SHOWN) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
