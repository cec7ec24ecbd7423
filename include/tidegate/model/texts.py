"""Write frozen values as canonical JSON text without making objects of them first.

What a type needs is worked out once. Knows neither formats nor how times are written.
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
    """A field of a dataclass as it is written."""

    start: str
    """Its name, up to the value."""
    name: str
    is_sparse: bool
    """Whether it is left out while it is None."""

    @classmethod
    def of(cls, key: str, name: str, *, is_sparse: bool = False) -> TextField:
        """Write an attribute under a key."""
        return cls(f"{json.dumps(key)}:", name, is_sparse)


class Texts(dict[type, Write]):
    """How values are written, by type; a type is added when its first value comes."""

    def __init__(self, leaf: Write, fields: Fields, known: Mapping[type, Write]) -> None:
        """Prepare.

        Args:
            leaf: writes whatever is no dataclass and no list.
            fields: names the fields of a dataclass, and whether they are left out while None.
            known: writes some types, faster or otherwise than `leaf`.
        """
        super().__init__({str: json.encoder.encode_basestring, int: int.__repr__, **known})
        self._leaf = leaf
        self._fields = fields

    def __missing__(self, kind: type) -> Write:
        """Work out how values of a type are written."""
        if dataclasses.is_dataclass(kind):
            write = self.of_object(kind)
            self[kind] = _kept(write) if getattr(kind, "KEEPS_TEXT", False) else write
        elif issubclass(kind, tuple | list):
            self[kind] = self._items
        else:
            self[kind] = self._leaf
        return self[kind]

    def of_object(self, kind: type, *further: TextField) -> Write:
        """Return what writes a dataclass, with further attributes besides its fields."""
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
    """Write each value once: some stand in plans a million times."""

    def text(value: Any) -> str:
        # Where `functools.cached_property` would keep it: frozen values compare by fields alone.
        kept = value.__dict__
        found: str | None = kept.get(_TEXT)
        if found is None:
            found = kept[_TEXT] = write(value)
        return found

    return text
