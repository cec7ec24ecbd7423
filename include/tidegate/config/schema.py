"""The JSON Schema of pipeline files, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from tidegate.config.pipeline import PipelineConfig


def json_schema() -> dict[str, Any]:
    """Describe a pipeline file, shorthands included."""
    schema = PipelineConfig.model_json_schema(by_alias=True)
    schema["properties"]["schedule"] = {
        "type": ["string", "null"],
        "description": "`dag.schedule`, written shorter.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Tidegate pipeline",
    }
