"""Sections with keys that are written only if they are used."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer

from tidegate.config.section import Section


class SparseSection(Section):
    """A section that leaves some keys out of plans while they have their defaults.

    What an older version wrote then compares equal to the same file today.
    """

    sparse: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are left out."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> Any:
        found = write(self)
        fields = type(self).model_fields
        unused = {
            fields[name].alias or name
            for name in self.sparse
            if getattr(self, name) == fields[name].default
        }
        # Asked for by alias or not, depending on who writes.
        names = unused | {name for name in self.sparse if (fields[name].alias or name) in unused}
        return {key: item for key, item in found.items() if key not in names}
