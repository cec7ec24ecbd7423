"""The JSON Schema of pipeline files, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from tidegate.config.pipeline import PipelineConfig


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a pipeline file, including shorthands."""
    schema = PipelineConfig.model_json_schema(by_alias=True)
    schema["properties"]["schedule"] = {
        "type": ["string", "null"],
        "description": "Short for `dag.schedule`.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Tidegate pipeline",
    }
