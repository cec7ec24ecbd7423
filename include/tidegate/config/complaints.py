"""Turn what pydantic found into one error that names file, line, key and the nearest valid name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from tidegate.config.document import Document, Place, key_text
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.words import NOT_BUILT, AmbiguousSide, KeyProblem, suggest
from tidegate.errors import AmbiguousStart, ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Known to the specs, so that whoever looks them up is told what became of them.
_ELSEWHERE = {
    "commit.require": NOT_BUILT,
    "commit.expected": NOT_BUILT,
    "commit.counts": NOT_BUILT,
    "commit.default_partition": "is always 'never': publish it by `tidegate publish`",
    "commit.late": "is written `commit.late_data`",
    "target.keys": f"belongs to `write: upsert`, which {NOT_BUILT}",
    "target.static_partition": NOT_BUILT,
    "source.require_marker": NOT_BUILT,
    "source.poll_interval": "is the schedule of the DAG: `dag.schedule`",
    "execute.spark": "is configured in Airflow's connection and by spark-submit",
    "compaction": NOT_BUILT,
    "sink": "is written `target`",
}
_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
}


def complain(invalid: ValidationError, document: Document, above: Place = ()) -> ConfigInvalid:
    """Make one error of the problem that stands first in the file, and count the others.

    Args:
        invalid: what validation found.
        document: the file that was validated.
        above: the place of the validated part in a pipeline file.
    """
    found = [(document.line(place), place, problem) for place, problem in _problems(invalid, above)]
    line, place, problem = min(found, key=lambda item: item[0])
    more = len({item[1] for item in found}) - 1
    rest = f" ({more} more problem{'s' if more > 1 else ''} in this file)" if more else ""
    refusal = AmbiguousStart if isinstance(problem, AmbiguousSide) else ConfigInvalid
    return refusal(file=document.file, line=line, key=key_text(place), problem=f"{problem}{rest}")


def _problems(
    invalid: ValidationError, above: Place
) -> Iterator[tuple[Place, str | AmbiguousSide]]:
    for error in invalid.errors(include_url=False):
        place = (*above, *error["loc"])
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ValidationError):
            yield from _problems(cause, place)
        elif isinstance(cause, KeyProblem):
            yield (*place, *cause.key.split(".")), str(cause)
        elif cause is not None:
            yield place, cause if isinstance(cause, AmbiguousSide) else str(cause)
        else:
            yield place, _describe(place, error)


def _describe(place: Place, error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _ELSEWHERE.get(key_text(place)) or _unknown_key(place)
    if kind in _TYPES:
        return f"expected {_TYPES[kind]}, found {error['input']!r}"
    if kind == "string_pattern_mismatch":
        return f"expected letters, digits and _ . -, found {error['input']!r}"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, found {error['input']!r}"


def _unknown_key(place: Place) -> str:
    known = _keys_at(place[:-1])
    if len(place) == 1:
        known.append("schedule")
    return f"unknown key; {suggest(str(place[-1]), known)}"


def _keys_at(place: Place) -> list[str]:
    """Name the keys of the section at a place."""
    model: type[BaseModel] = PipelineConfig
    for step in place:
        for name, field in model.model_fields.items():
            if step in (name, field.alias):
                model = _model_in(field.annotation) or model
                break
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(item) for item in getattr(annotation, "__args__", ()))
    return next((model for model in inner if model is not None), None)
