"""Tell of columns that earlier windows published, and that a window does not have any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.model.plan import Pin


def notes_on_columns(before: Pin, now: Pin) -> Iterator[str]:
    """Yield a sentence if columns are gone; a renamed one is gone, and another one is there.

    A partition that both windows have rows for then has files with the one and with the other.

    Args:
        before: the source as the window before read it.
        now: the source as this window reads it.
    """
    stood, stands = dict(before.schema), dict(now.schema)
    gone = [name for name in stood if name not in stands]
    if not gone:
        return
    new = [name for name in stands if name not in stood]
    beside = f", and lacks {_listed(new)}" if new else ""
    yield (
        f"earlier windows had {_listed(gone)}, this one has not: what was published before keeps "
        f"{'it' if len(gone) == 1 else 'them'}{beside}. To write partitions anew with the columns "
        "of now, run `tidegate rebuild PIPELINE PARTITION`, or `tidegate reset PIPELINE` for all "
        "of them, then `tidegate publish PIPELINE`"
    )


def _listed(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)}"
