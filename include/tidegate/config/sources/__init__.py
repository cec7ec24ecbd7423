"""The `source` section of a pipeline file: one set of options per kind, selected by `kind`.

A new kind is a new module and its class in `KnownSource`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field

from tidegate.config.section import read_word
from tidegate.config.sources.every_kind import Names, SourceConfig
from tidegate.config.sources.files import FilesSourceConfig
from tidegate.config.sources.hudi import HudiSourceConfig
from tidegate.config.sources.iceberg import CatalogConfig, IcebergSourceConfig, InstantTime
from tidegate.config.sources.text_files import MarkerOption
from tidegate.config.words import KeyProblem
from tidegate.errors import StorageDenied

__all__ = [
    "KINDS",
    "AnySource",
    "CatalogConfig",
    "FilesSourceConfig",
    "HudiSourceConfig",
    "IcebergSourceConfig",
    "InstantTime",
    "MarkerOption",
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


def tables_around(places: Sequence[str], names: Names) -> list[tuple[str, str]]:
    """Return kind and folder of the tables that a folder is in or is, the outermost first.

    Args:
        places: the folder and those above it, the innermost first.
        names: of what they have.
    """
    return [
        (kind, place)
        for place in reversed(places)
        for kind, model in KINDS.items()
        if _is_of_table(model, place, names)
    ]


def tables_marked_by(found: Collection[str], folder: str, names: Names) -> list[str]:
    """Return the kinds of table of which a folder is one, or a part.

    Args:
        found: the names in the folder.
        folder: its path.
        names: of what it has.
    """
    return [
        kind
        for kind, model in KINDS.items()
        if not model.table_marks.isdisjoint(found) and _is_of_table(model, folder, names)
    ]


def _is_of_table(model: type[SourceConfig], folder: str, names: Names) -> bool:
    """Ask a kind; a folder that nobody lets us look into, as those above often are, is none."""
    try:
        return model.is_of_table(folder.rstrip("/"), names)
    except StorageDenied:
        return False
