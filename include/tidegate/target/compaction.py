"""Decide which small files of a partition are joined, and undo it where a window changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from tidegate.model.publication import PublishedFile, StagedFile

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


@dataclass(frozen=True)
class CompactionRule:
    """When files are joined, and how large they become (PC-K02, K06)."""

    small_file: int
    """Bytes; only smaller files are joined."""
    target_size: int
    """Bytes that the joined files may have together."""
    every: int = 1
    """A revision joins files only if its number is a multiple of this."""


def bins(files: Sequence[PublishedFile], rule: CompactionRule) -> tuple[tuple[str, ...], ...]:
    """Return the names of files that are joined to one each, in content order.

    A file that would be alone passes through (PC-K04).
    """
    small = [file for file in files if file.length < rule.small_file]
    found: list[list[PublishedFile]] = []
    for file in small:
        if not found or sum(it.length for it in found[-1]) + file.length > rule.target_size:
            found.append([])
        found[-1].append(file)
    return tuple(tuple(file.name for file in joined) for joined in found if len(joined) > 1)


def ingredients(files: Sequence[PublishedFile], retired: str | None) -> tuple[StagedFile, ...]:
    """Return what a joined file consists of: files as they were staged, each of one window.

    Args:
        files: that are joined; one that was joined before counts by what it consists of.
        retired: directory to which the revision retires files, relative to the work directory; None
            for files that never stood, and stay where they were staged.
    """
    return tuple(part for file in files for part in _parts(file, retired))


def _parts(file: PublishedFile, retired: str | None) -> Sequence[StagedFile]:
    if file.made_of:
        return file.made_of
    plain = StagedFile(**{item.name: getattr(file, item.name) for item in fields(StagedFile)})
    if retired is None:
        return [plain]
    return [replace(plain, staged=f"{retired}/{file.name}", upload=None)]


def taken_apart(
    standing: Sequence[PublishedFile], settled: Collection[str]
) -> tuple[tuple[PublishedFile, ...], tuple[PublishedFile, ...]]:
    """Return which joined files no longer stand for their windows, and what comes in their place.

    Args:
        standing: the content.
        settled: the windows whose rows stay as they were.

    Returns:
        The joined files that go, and those of their ingredients whose windows are settled.
    """
    unsettled = {
        file.name
        for file in standing
        if not all(str(part.window) in settled for part in file.made_of)
    }
    going, parts = apart(standing, unsettled)
    return going, tuple(part for part in parts if str(part.window) in settled)


def apart(
    standing: Sequence[PublishedFile], names: Collection[str]
) -> tuple[tuple[PublishedFile, ...], tuple[PublishedFile, ...]]:
    """Return what has to go if some joined files do, and all that comes in its place.

    Args:
        standing: the content.
        names: of files; those that are not joined are left out.

    Returns:
        The joined files that go, and what they consist of.
    """
    joined = [file for file in standing if file.made_of]
    lost = {part.name for file in joined if file.name in names for part in file.made_of}
    going: tuple[PublishedFile, ...] = ()
    # Files that were joined together and became too large for one share what they consist of.
    while len(found := tuple(it for it in joined if _has_any(it, lost))) > len(going):
        going = found
        lost |= {part.name for file in going for part in file.made_of}
    coming = {
        part.name: PublishedFile(**{it.name: getattr(part, it.name) for it in fields(part)})
        for file in going
        for part in file.made_of
    }
    return going, tuple(coming.values())


def _has_any(file: PublishedFile, names: Collection[str]) -> bool:
    return any(part.name in names for part in file.made_of)
