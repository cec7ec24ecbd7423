"""Find out whether a planned file still has to be moved, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import FileContentWrong, FileLengthWrong, StagedFileMissing, UploadGone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.model.message import PartFile
    from tidegate.model.publication import StagedFile
    from tidegate.storage.protocol import Storage


def waiting_uploads(
    storage: Storage, files: Iterable[tuple[StagedFile | PartFile, str]]
) -> frozenset[str]:
    """Return which files are there once their uploads are completed.

    Args:
        storage: that they were sent to.
        files: each with the path that it is to have.

    Returns:
        The paths of those whose uploads can be completed as they were sent, and lead there.
    """
    sent = [file.upload for file, target in files if file.upload and file.upload.path == target]
    uploads = storage.uploads(sent[0].path) if sent else None
    if uploads is None:
        return frozenset()
    stand = uploads.standing(sent)
    return frozenset(item.path for item, stands in zip(sent, stand, strict=True) if stands)


def check_sent(storage: Storage, file: StagedFile, target: str) -> None:
    """Check that what stands where a file was sent to is that file (PC-F25, F37).

    Raises:
        FileContentWrong: another writer made it.
    """
    if file.upload is None:
        return
    uploads = storage.uploads(target)
    if uploads is not None and file.upload.path == target and uploads.made(file.upload):
        return
    # As it is after a commit that was taken back, or put there from a copy.
    found = storage.sha256(target)
    if found != file.sha256:
        raise FileContentWrong(path=target, expected=file.sha256, found=found)


def has_to_move(
    storage: Storage,
    found: Mapping[str, int | None],
    file: StagedFile,
    staged: str,
    target: str,
) -> bool:
    """Return whether a planned file still has to be moved (PC-F20–F26); changes nothing.

    Args:
        storage: that has both places.
        found: path → size of the file there, of both places and perhaps others.
        file: as it was sealed.
        staged: where it was staged.
        target: where it belongs.

    Returns:
        True if it has to be moved, False if it is at its target.

    Raises:
        StagedFileMissing, UploadGone: it is at neither place (PC-F24).
        FileLengthWrong: one of the two is not as long as sealed (PC-F21, F23, F26).
        FileContentWrong: both exist, and the target has other bytes (PC-F25).
    """
    here, there = found[staged], found[target]
    if here is None and there is None:
        if file.upload is not None:
            raise UploadGone(path=target, window=file.window)
        raise StagedFileMissing(path=staged, target=target, window=file.window)
    for path, size in ((staged, here), (target, there)):
        if size is not None and size != file.length:
            raise FileLengthWrong(path=path, window=file.window, expected=file.length, found=size)
    if here is not None and there is not None:
        found_hash = storage.sha256(target)
        if found_hash != file.sha256:
            raise FileContentWrong(path=target, expected=file.sha256, found=found_hash)
    return there is None
