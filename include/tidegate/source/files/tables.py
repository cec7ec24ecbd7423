"""Refuse a folder that is in a table or has some in it: only a table tells which files count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.config import source_meant_by, tables_around, tables_marked_by
from tidegate.errors import FolderOfTable, tables_below
from tidegate.errors.commands import command
from tidegate.source.words import first_few
from tidegate.storage import above, is_object

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidegate.source.files.folder_view import FolderView

PUBLISHED = "published"
"""Where others have a kind: a table that a pipeline publishes, whose markers tell what counts."""
_PLAIN_FILES = (
    "To read plain files beside tables, set `source.path_regex` to an expression that only their "
    "paths match."
)


def refuse_inside_of_table(root: str, real: str, names: FolderView) -> None:
    """Check that a folder is neither a table nor in one.

    Args:
        root: the folder, as the pipeline file names it.
        real: the folder, with links resolved.
        names: of what it and those above it have.

    Raises:
        FolderOfTable: it is.
    """
    around = tables_around((real, *above(real)), names)
    if around:
        kind, folder = around[0]
        raise FolderOfTable(source=root, tables=_said(folder, kind), remedy=_remedy({folder: kind}))


def kind_of_folder(found: Collection[str], folder: str, names: FolderView) -> str | None:
    """Return the kind of table to which the files of a folder belong; None for plain files.

    Args:
        found: the names of everything in the folder.
        folder: its path.
        names: of what it has.
    """
    return next(iter(tables_marked_by(found, folder, names)), None)


def refuse_tables_below(root: str, tables: Mapping[str, str]) -> None:
    """Check that no file that would be read belongs to a table.

    Args:
        root: the folder of the source.
        tables: folder → kind, or `PUBLISHED`, of those with files that would be read.

    Raises:
        FolderOfTable: there is one of a kind.
        PublishedTablesBelow: there is one that is published: its rows are not those of others.
    """
    of_kinds = {folder: kind for folder, kind in tables.items() if kind != PUBLISHED}
    if of_kinds:
        said = [_said(folder, kind) for folder, kind in sorted(of_kinds.items())]
        remedy = f"{_remedy(of_kinds)} {_PLAIN_FILES}"
        raise FolderOfTable(source=root, tables=first_few(said), remedy=remedy)
    if tables:
        raise tables_below(root, sorted(tables))


def _said(folder: str, kind: str) -> str:
    part = "" if is_object(folder) or _is_whole(folder, kind) else "a part of "
    return f"{part}a table of kind {kind} in {folder}"


def _remedy(tables: Mapping[str, str]) -> str:
    if any(map(is_object, tables)):
        return (
            "Read an Iceberg table in a store by its catalog (`source.kind: iceberg` with "
            "`source.catalog` and `source.table`), and a Hudi table where its files are mounted."
        )
    whole = [folder for folder, kind in sorted(tables.items()) if _is_whole(folder, kind)]
    if not whole:
        return "Name the folder of the whole table in place of one of its partitions."
    others = ", and the same for the other tables" if len(whole) > 1 else ""
    return f"Run `{command('init', '--from', whole[0])}`, which reads the table as such{others}."


def _is_whole(folder: str, kind: str) -> bool:
    return bool(source_meant_by(folder)["kind"] == kind)
