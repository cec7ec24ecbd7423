"""Refuse a folder that is in a table or has some in it: only a table tells which files count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.config import source_meant_by, tables_around, tables_marked_by
from tidegate.errors import FolderOfTable
from tidegate.errors.commands import command
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PLAIN_FILES = (
    "To read plain files beside tables, set `source.path_regex` to an expression that only their "
    "paths match."
)


def refuse_inside_of_table(root: str) -> None:
    """Check that a folder is neither a table nor in one.

    Raises:
        FolderOfTable: it is.
    """
    around = tables_around(Path(root).resolve())
    if around:
        kind, folder = around[0]
        raise FolderOfTable(source=root, tables=_said(folder, kind), remedy=_remedy({folder: kind}))


def kind_of_folder(names: Collection[str], folder: str) -> str | None:
    """Return the kind of table to which the files of a folder belong; None for plain files.

    Args:
        names: of everything in the folder.
        folder: its path.
    """
    return next(iter(tables_marked_by(names, Path(folder))), None)


def refuse_tables_below(root: str, tables: Mapping[str, str]) -> None:
    """Check that no file that would be read belongs to a table.

    Args:
        root: the folder of the source.
        tables: folder → kind, of those with files that would be read.

    Raises:
        FolderOfTable: there is one.
    """
    if tables:
        said = [_said(folder, kind) for folder, kind in sorted(tables.items())]
        remedy = f"{_remedy(tables)} {_PLAIN_FILES}"
        raise FolderOfTable(source=root, tables=first_few(said), remedy=remedy)


def _said(folder: str, kind: str) -> str:
    part = "" if _is_whole(folder, kind) else "a part of "
    return f"{part}a table of kind {kind} in {folder}"


def _remedy(tables: Mapping[str, str]) -> str:
    whole = [folder for folder, kind in sorted(tables.items()) if _is_whole(folder, kind)]
    if not whole:
        return "Name the folder of the whole table in place of one of its partitions."
    others = ", and the same for the other tables" if len(whole) > 1 else ""
    return f"Run `{command('init', '--from', whole[0])}`, which reads the table as such{others}."


def _is_whole(folder: str, kind: str) -> bool:
    return bool(source_meant_by(folder)["kind"] == kind)
