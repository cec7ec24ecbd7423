"""The catalog of an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, GetJsonSchemaHandler, model_serializer, model_validator

from tidegate.config.section import Section
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class CatalogConfig(Section):
    """An Iceberg catalog: a name, and the properties that pyiceberg takes.

    Without properties, the name refers to a catalog of pyiceberg's own configuration.
    """

    name: str
    properties: dict[str, str] = Field(default_factory=dict)
    """Further keys, passed on: `uri`, `warehouse`, `type`, …; secrets as `${env:NAME}`."""

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, found: Any) -> Any:
        if isinstance(found, str):
            return {"name": found}
        if not isinstance(found, Mapping):
            return found
        rest = {key: value for key, value in found.items() if key != "name"}
        for key, value in rest.items():
            if not isinstance(value, str | int | float):
                problem = f"expected text, found {value!r}"
                raise KeyProblem(problem, key=str(key))
        named = {"name": found["name"]} if "name" in found else {}
        return {**named, "properties": {key: _property(value) for key, value in rest.items()}}

    @model_serializer
    def _flat(self) -> dict[str, str]:
        return {"name": self.name, **self.properties}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of both forms: a name, or a mapping with further keys."""
        del core, handler
        mapping = {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        }
        return {"anyOf": [{"type": "string"}, mapping], "description": cls.__doc__}


def _property(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
