"""An upload in parts to a store, of which all bytes were sent."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value


@dataclass(frozen=True)
class Upload(Value):
    """An object of a store that is there once its upload is completed (PC-F36)."""

    path: str
    """Address of the object."""
    id: str
    """The store's id of the upload; an address may have several."""
    writer: str
    """The random text in the metadata of the object that it becomes."""
    tags: tuple[str, ...]
    """The store's tags of the parts, in their order."""
