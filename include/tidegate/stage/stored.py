"""Read what Tidegate itself wrote to a work directory, and name the remedy if it is lost."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, TypeVar

from tidegate import stored
from tidegate.errors import StateFileDamaged, StateFileLost
from tidegate.errors.commands import command
from tidegate.model.wire import Value
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidegate.storage import Storage

_Stored = TypeVar("_Stored", bound=Value)
_Said = TypeVar("_Said")


def read_stored(storage: Storage, path: str, kind: type[_Stored]) -> _Stored:
    """Read the value of a file.

    Raises:
        StateFileLost: there is no such file.
        StateFileDamaged: it does not contain such a value.
        FormatUnknown: another version of Tidegate wrote it.
    """
    content = read_content(storage, path)
    return as_stored(path, lambda: kind.from_text(content))


def read_content(storage: Storage, path: str) -> bytes:
    """Read a whole file.

    Raises:
        StateFileLost: there is no such file.
    """
    return stored.read_content(storage, path, lambda: _remedy(path))


def as_stored(path: str, decode: Callable[[], _Said]) -> _Said:
    """Decode a file's content.

    Raises:
        StateFileDamaged: it cannot be decoded.
    """
    return stored.as_stored(path, decode, lambda: _remedy(path))


def lost_commit_plans(lost: Mapping[str, Sequence[str]]) -> StateFileLost:
    """Return the error for commits that have a marker but no plan.

    Raised by the restoration if everything else is complete and the ledger in use does not have the
    plan either: a restored ledger has no revision without its plan, but the marker would name one;
    readers miss the marker until it is written again. If the ledger also forgot newer
    contributions, the rows of the commit may remain beside those that replace them.

    Args:
        lost: path of each plan → paths of the markers of its partition.
    """
    path, *more = lost
    if more:
        path = f"{path} and {len(more)} more commit plans"
    markers = ", ".join(marker for found in lost.values() for marker in found)
    restore = f"`{command('fsck', 'PIPELINE', '--rebuild')}`"
    remedy = (
        "remove the marker of each such partition, which alone tells its revision and who approved "
        f"it ({markers}), let {restore} find what stands, do with files that the commits left in "
        f"the table what `{command('fsck', 'PIPELINE')}` says, and publish with "
        f"`{command('publish', 'PIPELINE')}`"
    )
    return StateFileLost(path=path, remedy=remedy)


def damaged(path: str, found: str) -> StateFileDamaged:
    """Return the error for a file that was changed since it was written."""
    return StateFileDamaged(path=path, found=found, remedy=_remedy(path))


def _remedy(path: str) -> str:
    publish = f"`{command('publish', 'PIPELINE')}`"
    window = layout.window_of(path)
    if layout.is_abandoned_file(posixpath.basename(path)):
        abandon = command("abandon", "PIPELINE", window)
        return f"move it away; if the window is still open, give it up again with `{abandon}`"
    if window is not None and not layout.is_sealed_file(posixpath.basename(path)):
        replay = command("replay", "PIPELINE", window)
        return f"read its window again with `{replay}`, then publish with {publish}"
    erasure = layout.number_of_erasure(posixpath.basename(path))
    if erasure is not None and layout.is_erasure_file(path):
        instead = command("erase", "PIPELINE", "--instead", erasure, "--where", "CONDITION")
        return f"name its rows once more with `{instead}`"
    if layout.is_start_file(path):
        load = f"`{command('load', 'PIPELINE')}`"
        return f"remove it, and load with {load}, which begins where `source.start` says now"
    restore = f"let `{command('fsck', 'PIPELINE', '--rebuild')}` find what stands"
    return f"{restore}, then publish with {publish}"
