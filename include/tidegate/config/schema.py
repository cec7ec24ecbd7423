"""The JSON Schema of pipeline files, for completion and checks in editors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from tidegate.config.descriptions import descriptions
from tidegate.config.pipeline import PipelineConfig

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

_RULES = re.compile(r"\s*\((?:ICE|PC|AF|HUDI|design)[^()]*\)")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a pipeline file, including shorthands."""
    schema: dict[str, Any] = _for_users(
        PipelineConfig.model_json_schema(by_alias=True, schema_generator=_Described)
    )
    schema["properties"]["schedule"] = {
        "type": ["string", "null"],
        "description": "Short for `dag.schedule`.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Tidegate pipeline",
    }


def _for_users(schema: Any) -> Any:
    """Remove the rules that descriptions cite for those who read the code."""
    if isinstance(schema, list):
        return [_for_users(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _RULES.sub("", item)
        if key == "description" and isinstance(item, str)
        else _for_users(item)
        for key, item in schema.items()
    }


class _Described(GenerateJsonSchema):
    """Adds what each key is for."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for key, description in descriptions(model).items():
            made["properties"][key]["description"] = description
        return made
