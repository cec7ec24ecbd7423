"""Tell a table that has vanished from one that was never there, by the windows loaded from it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidegate.errors import SourceNotFound, SourceVanished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.ledger import Ledger


@contextmanager
def naming_vanished(ledger: Ledger) -> Iterator[None]:
    """Raise the error of a missing table with the last window that was loaded from it.

    A catalog that is not mounted, or another one at its address, answers that there is no table; it
    is worth asking again.

    Raises:
        SourceVanished: windows were loaded from it (Transient).
        SourceNotFound: none was.
    """
    try:
        yield
    except SourceNotFound as absent:
        loaded = [
            (item.sealed_at, item.window.sequence)
            for item in ledger.windows.all()
            if item.sealed_at is not None
        ]
        if not loaded:
            raise
        at, window = max(loaded)
        said = f"{at:%Y-%m-%d %H:%M}Z"
        raise SourceVanished(**absent.values, window=window, at=said) from absent
