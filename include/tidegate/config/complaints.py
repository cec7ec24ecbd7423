"""Turn the errors of pydantic into one error that names file, line, key and nearest valid name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from tidegate.config.descriptions import descriptions
from tidegate.config.document import Document, Place, key_text
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.policies import POLICIES
from tidegate.config.sources import KINDS, SourceConfig
from tidegate.config.words import AmbiguousSide, KeyProblem, suggest
from tidegate.errors import AmbiguousStart, ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

# Keys of the specifications that have another form here; the error says which.
_ELSEWHERE = {
    "commit.late": "is written `commit.late_data`",
    "source.poll_interval": "is the schedule of the DAG: `dag.schedule`",
    "execute.spark": "is configured in Airflow's connection and by spark-submit",
    "compaction": "is written `target.compaction`",
    "sink": "is written `target`",
}
_CHOICES: Mapping[str, Mapping[str, type[BaseModel]]] = {
    "source": KINDS,
    "commit.policies": POLICIES,
}
"""For a place with one of several sets of options: the word that selects one → options."""
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


_MOST_TOLD = 9
"""More problems than these, besides the first, are counted."""


@dataclass(frozen=True)
class _Problem:
    place: Place
    """Its place in the file."""
    said: str | AmbiguousSide
    is_absence: bool = False
    """Whether a key is missing, so that it has no place in the file."""


def complain(invalid: ValidationError, document: Document, above: Place = ()) -> ConfigInvalid:
    """Return one error, for the first problem in the file, followed by the others.

    Missing keys come last: they may be there under a misspelt name.

    Args:
        invalid: what validation found.
        document: the file that was validated.
        above: the place of the validated part in a pipeline file.
    """
    found: dict[Place, _Problem] = {}
    for item in _problems(invalid, document, above):
        found.setdefault(item.place, item)
    first, *others = sorted(
        found.values(), key=lambda item: (item.is_absence, document.line(item.place))
    )
    refusal = AmbiguousStart if isinstance(first.said, AmbiguousSide) else ConfigInvalid
    lines = [
        f"{document.file}:{document.line(it.place)}: `{key_text(it.place)}`: {it.said}"
        for it in others[:_MOST_TOLD]
    ]
    if len(others) > _MOST_TOLD:
        lines.append(f"and {len(others) - _MOST_TOLD} more")
    return refusal(
        file=document.file,
        line=document.line(first.place),
        key=key_text(first.place),
        problem="\n".join((str(first.said), *lines)),
    )


def _problems(invalid: ValidationError, document: Document, above: Place) -> Iterator[_Problem]:
    for error in invalid.errors(include_url=False):
        found = (*above, *error["loc"])
        place, model = _located(found)
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ValidationError):
            yield from _problems(cause, document, found)
        elif isinstance(cause, KeyProblem):
            yield _Problem((*place, *cause.key.split(".")), str(cause))
        elif cause is not None:
            yield _Problem(place, cause if isinstance(cause, AmbiguousSide) else str(cause))
        elif error["type"] == "missing":
            yield _Problem(place, _is_required(model, place[-1]), is_absence=True)
        elif error["type"] == "extra_forbidden":
            yield _Problem(place, _misplaced(model, place))
        else:
            yield _Problem(place, _describe(error, document.scalars.get(place)))


def _describe(error: Mapping[str, Any], scalar: str | None) -> str:
    """Say what was expected and found; a scalar is written that YAML does not read as text."""
    kind = error["type"]
    if kind == "string_type" and scalar:
        return (
            f"expected text, found {error['input']!r}: YAML reads `{scalar}` so; write it in "
            f"quotes, as '{scalar}'"
        )
    if kind in _TYPES:
        return f"expected {_TYPES[kind]}, found {error['input']!r}"
    if kind == "string_pattern_mismatch":
        return f"expected letters, digits and _ . -, found {error['input']!r}"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, found {error['input']!r}"


def _is_required(model: type[BaseModel], key: str | int) -> str:
    """Return the purpose of a key: the first sentence of its description."""
    description = descriptions(model).get(str(key))
    if not description:
        return "is required"
    sentence = description.partition(".\n")[0].partition(". ")[0].rstrip(".")
    is_word = sentence[1:2].islower()
    return f"is required: {sentence[0].lower() if is_word else sentence[0]}{sentence[1:]}"


def _misplaced(model: type[BaseModel], place: Place) -> str:
    key = str(place[-1])
    others = [kind for kind, options in KINDS.items() if key in _keys(options)]
    if key_text(place) in _ELSEWHERE:
        return _ELSEWHERE[key_text(place)]
    if others and issubclass(model, SourceConfig):
        own = next(kind for kind, options in KINDS.items() if options is model)
        return f"belongs to sources of kind '{others[0]}', not to '{own}'"
    known = [*_keys(model), *(["schedule"] if len(place) == 1 else [])]
    return (
        f"unknown key; {suggest(key, known)}"
        if known
        else ("unknown key; this section has no keys")
    )


def _located(found: Place) -> tuple[Place, type[BaseModel]]:
    """Return a place as it is in the file, and the section that contains it.

    pydantic also names the choice of a union, which is not a key.
    """
    place: list[str | int] = []
    section: type[BaseModel] = PipelineConfig
    choices: Mapping[str, type[BaseModel]] = {}
    inner: type[BaseModel] | None = section
    for step in found:
        if isinstance(step, int):
            place.append(step)
            continue
        if step in choices:
            inner, choices = choices[step], {}
            continue
        place.append(step)
        section = inner or section
        field = _keys(section).get(step)
        inner = _model_in(field.annotation) if field else None
        choices = _CHOICES.get(key_text(tuple(place)), {})
    return tuple(place), section


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(item) for item in getattr(annotation, "__args__", ()))
    return next((model for model in inner if model is not None), None)
