"""Find out whether a planned file still has to be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import FileContentWrong, FileLengthWrong, StagedFileMissing

if TYPE_CHECKING:
    from tidegate.storage.protocol import Storage


def has_to_move(
    storage: Storage, staged: str, target: str, *, length: int, sha256: str, window: int
) -> bool:
    """Return whether a planned file still has to be moved (PC-F20–F26); changes nothing.

    Returns:
        True if it has to be moved, False if it is at its target.

    Raises:
        StagedFileMissing: it is at neither place (PC-F24).
        FileLengthWrong: one of the two is not as long as sealed (PC-F21, F23, F26).
        FileContentWrong: both exist, and the target has other bytes (PC-F25).
    """
    here, there = storage.length(staged), storage.length(target)
    if here is None and there is None:
        raise StagedFileMissing(path=staged, target=target, window=window)
    for path, found in ((staged, here), (target, there)):
        if found is not None and found != length:
            raise FileLengthWrong(path=path, window=window, expected=length, found=found)
    if here is not None and there is not None:
        found_hash = storage.sha256(target)
        if found_hash != sha256:
            raise FileContentWrong(path=target, expected=sha256, found=found_hash)
    return there is None
