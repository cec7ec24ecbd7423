"""The keys of `target` that belong to an Iceberg table (`target.kind: iceberg`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.config.target_kinds import TARGET_KINDS
from tidegate.config.words import KeyProblem
from tidegate.model.held_branch import HELD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_OF_A_TABLE = ("table", "catalog", "branch", "on_foreign_change")
"""Keys that no other kind has."""


def check_table_keys(found: Mapping[str, Any], said: Collection[str]) -> None:
    """Check that the keys of an Iceberg table are there for one, and only for one.

    Args:
        found: the section `target`: key → value.
        said: the keys that the pipeline file has.

    Raises:
        KeyProblem: one is missing, does not fit, or belongs to another kind.
    """
    if TARGET_KINDS[found["kind"]].shown_by is None:
        for key in _OF_A_TABLE:
            if key in said:
                instead = (
                    f"the kind is '{found['kind']}'"
                    if "kind" in said
                    else "add `kind: iceberg`, or remove it"
                )
                problem = f"belongs to `kind: iceberg`; {instead}"
                raise KeyProblem(problem, key=key)
        return
    _check_address(found)
    if found["format"] != "parquet":
        problem = f"'{found['format']}' is none of `kind: iceberg`, whose files are parquet"
        raise KeyProblem(problem, key="format")
    if found["metastore"] is not None:
        problem = "lists folders of files; an Iceberg table is found in `target.catalog`: remove it"
        raise KeyProblem(problem, key="metastore")
    if found["branch"].startswith(HELD):
        problem = (
            f"'{found['branch']}' begins like the branches of held partitions, which a reset "
            "drops; choose another name"
        )
        raise KeyProblem(problem, key="branch")


def _check_address(found: Mapping[str, Any]) -> None:
    if found["catalog"] is None:
        problem = (
            "is required for `kind: iceberg`: the catalog of the table, a name or a mapping with "
            "the options that a source's catalog has"
        )
        raise KeyProblem(problem, key="catalog")
    table = found["table"]
    if table is None:
        problem = "is required for `kind: iceberg`: `namespace.table` of the catalog"
        raise KeyProblem(problem, key="table")
    parts = table.split(".")
    if len(parts) < 2 or not all(parts):
        problem = f"expected `namespace.table`, found '{table}'"
        raise KeyProblem(problem, key="table")
