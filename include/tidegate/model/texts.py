"""Write frozen values as canonical JSON text, without building JSON objects first.

The writer of a type is built once. Knows neither formats nor how times are written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Write = Callable[[Any], str]
Fields = Callable[[type], Iterable[tuple[str, bool]]]
_TEXT = "_text"


class TextField(NamedTuple):
    """How a field of a dataclass is written."""

    start: str
    """The text in front of the value: its name."""
    name: str
    is_sparse: bool
    """Whether it is left out while it is None."""

    @classmethod
    def of(cls, key: str, name: str, *, is_sparse: bool = False) -> TextField:
        """Write an attribute under a key."""
        return cls(f"{json.dumps(key)}:", name, is_sparse)


class Texts(dict[type, Write]):
    """The writers of values, by type; a type is added with its first value."""

    def __init__(self, leaf: Write, fields: Fields, known: Mapping[type, Write]) -> None:
        """Prepare.

        Args:
            leaf: writes everything that is neither a dataclass nor a list.
            fields: the fields of a dataclass, and whether they are left out while None.
            known: writers for some types, used instead of `leaf`.
        """
        super().__init__({str: json.encoder.encode_basestring, int: int.__repr__, **known})
        self._leaf = leaf
        self._fields = fields

    def __missing__(self, kind: type) -> Write:
        """Return the writer of values of a type."""
        if dataclasses.is_dataclass(kind):
            write = self.of_object(kind)
            self[kind] = _kept(write) if getattr(kind, "KEEPS_TEXT", False) else write
        elif issubclass(kind, tuple | list):
            self[kind] = self._items
        else:
            self[kind] = self._leaf
        return self[kind]

    def of_object(self, kind: type, *further: TextField) -> Write:
        """Return the writer of a dataclass, with further attributes besides its fields."""
        own = (TextField.of(name, name, is_sparse=sparse) for name, sparse in self._fields(kind))
        fields = tuple(sorted((*own, *further)))

        def write(value: Any) -> str:
            parts = [
                start + self[type(item)](item)
                for start, name, is_sparse in fields
                if (item := getattr(value, name)) is not None or not is_sparse
            ]
            return f"{{{','.join(parts)}}}"

        return write

    def _items(self, items: Iterable[Any]) -> str:
        return f"[{','.join([self[type(item)](item) for item in items])}]"


def _kept(write: Write) -> Write:
    """Write each value once, because some occur in plans a million times."""

    def text(value: Any) -> str:
        # Stored where `functools.cached_property` would: frozen values are compared by fields only.
        kept = value.__dict__
        found: str | None = kept.get(_TEXT)
        if found is None:
            found = kept[_TEXT] = write(value)
        return found

    return text
