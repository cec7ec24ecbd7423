"""The `source` section of a pipeline file: one set of options per kind, selected by `kind`.

A new kind is a new module and its class in `KnownSource`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BeforeValidator, Field

from tidegate.config.section import read_word
from tidegate.config.sources.every_kind import SourceConfig
from tidegate.config.sources.files import FilesSourceConfig
from tidegate.config.sources.hudi import HudiSourceConfig
from tidegate.config.sources.iceberg import CatalogConfig, IcebergSourceConfig, InstantTime
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "KINDS",
    "AnySource",
    "CatalogConfig",
    "FilesSourceConfig",
    "HudiSourceConfig",
    "IcebergSourceConfig",
    "InstantTime",
    "SourceConfig",
    "of_one_kind",
    "source_meant_by",
    "tables_around",
    "tables_marked_by",
]

KnownSource = IcebergSourceConfig | HudiSourceConfig | FilesSourceConfig

KINDS: Mapping[str, type[SourceConfig]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(KnownSource)
}
"""Kind → its options."""


def _with_kind(found: Any) -> Any:
    """Read the word of `kind` in any spelling, which selects the options."""
    if not isinstance(found, Mapping):
        return found
    if "kind" not in found:
        *others, last = KINDS
        problem = f"is required: {', '.join(others)} or {last}"
        raise KeyProblem(problem, key="kind")
    try:
        return {**found, "kind": read_word(found["kind"], tuple(KINDS), {})}
    except ValueError as unknown:
        raise KeyProblem(str(unknown), key="kind") from unknown


AnySource = Annotated[KnownSource, Field(discriminator="kind"), BeforeValidator(_with_kind)]


def of_one_kind(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the options of other kinds from a stored `source`.

    Plans of earlier versions have the options of every kind, those of other kinds at their
    defaults.
    """
    own = KINDS.get(str(resolved.get("kind")))
    if own is None:
        return dict(resolved)
    foreign = {name for model in KINDS.values() for name in model.model_fields}
    foreign -= own.model_fields.keys()
    return {key: item for key, item in resolved.items() if key not in foreign}


def source_meant_by(table: str) -> dict[str, Any]:
    """Return the `source` section for a table named by one text, which tells its kind."""
    said = (model.meant_by(table) for model in KINDS.values())
    return next(mapping for mapping in said if mapping is not None)


def tables_around(folder: Path) -> list[tuple[str, str]]:
    """Return kind and folder of the tables that a folder is in or is, the outermost first."""
    places = (folder, *folder.parents)
    return [
        (kind, str(place))
        for place in reversed(places)
        for kind, model in KINDS.items()
        if model.is_of_table(place)
    ]


def tables_marked_by(names: Collection[str], folder: Path) -> list[str]:
    """Return the kinds of table of which a folder with these names in it is one, or a part."""
    return [
        kind
        for kind, model in KINDS.items()
        if not model.table_marks.isdisjoint(names) and model.is_of_table(folder)
    ]
