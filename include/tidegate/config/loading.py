"""Read a pipeline file; every complaint names file, line, key and the nearest valid name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tidegate.config.environment import PLACEHOLDER, pipelines_folder
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.words import NOT_BUILT, KeyProblem, suggest
from tidegate.errors import ConfigInvalid, PipelineNotFound

Place = tuple[str | int, ...]

# Keys written shorter (design §7): where a problem is reported → where the text stands.
_SHORTHANDS: Mapping[Place, Place] = {
    ("dag", "schedule"): ("schedule",),
    ("source", "read", "schema"): ("source", "read_schema"),
    ("source", "catalog"): ("source", "table"),
}
# Known to the specs, so that whoever looks them up is told what became of them.
_KNOWN_LATER = {
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
_OPENED = re.compile(r"\$\{[^}]*\}?")


def load_pipeline(path: str | Path) -> PipelineConfig:
    """Read and validate one pipeline file.

    Raises:
        ConfigInvalid: naming the first line that cannot be meant.
        PipelineNotFound: there is no such file.
        WorkInsideTarget: the work directory lies where readers list files.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise _not_found(str(path), file.parent)
    document = _Document.read(file)
    try:
        config = PipelineConfig.model_validate(
            document.content, context={"folder": str(file.parent)}
        )
    except ValidationError as invalid:
        raise document.complain(invalid) from invalid
    config._file = str(file)
    return config


def pipeline_files(folder: Path | None = None) -> tuple[Path, ...]:
    """List the pipeline files of a folder (default: `pipelines_folder()`), by name."""
    place = folder or pipelines_folder()
    found = [*place.glob("*.yaml"), *place.glob("*.yml")] if place.is_dir() else []
    return tuple(sorted(file for file in found if not file.name.startswith((".", "_"))))


def find_pipeline(name: str, folder: Path | None = None) -> Path:
    """Find the file of a pipeline by its name, or by the path of the file itself.

    Raises:
        PipelineNotFound: no file says this name.
    """
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name).absolute()
    place = folder or pipelines_folder()
    for file in pipeline_files(place):
        if _name_in(file) == name:
            return file
    raise _not_found(name, place)


def _not_found(name: str, folder: Path) -> PipelineNotFound:
    known = ", ".join(_name_in(file) for file in pipeline_files(folder))
    return PipelineNotFound(name=name, folder=str(folder), known=known or "no pipeline files")


def _name_in(file: Path) -> str:
    """Give the name that a file says, without validating the rest: a broken neighbour is no obstacle."""
    named = re.search(
        r"^name:\s*['\"]?([A-Za-z0-9_.-]+)", file.read_text("utf-8", "replace"), re.MULTILINE
    )
    return named.group(1) if named else file.stem


@dataclass(frozen=True)
class _Document:
    """A YAML mapping with the line of each of its keys."""

    file: Path
    content: dict[str, Any]
    lines: Mapping[Place, int]

    @classmethod
    def read(cls, file: Path) -> _Document:
        try:
            text = file.read_text("utf-8")
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as broken:
            mark = broken.problem_mark or broken.context_mark
            line = mark.line + 1 if mark else 1
            problem = f"no YAML: {broken.problem or broken.context}"
            raise ConfigInvalid(file=str(file), line=line, key="file", problem=problem) from broken
        except (UnicodeDecodeError, yaml.YAMLError) as broken:
            problem = f"no YAML in UTF-8: {broken}"
            raise ConfigInvalid(file=str(file), line=1, key="file", problem=problem) from broken
        if not isinstance(node, yaml.MappingNode):
            line = node.start_mark.line + 1 if node else 1
            problem = "expected the keys of a pipeline: name, source, target, …"
            raise ConfigInvalid(file=str(file), line=line, key="file", problem=problem)
        document = cls(file, {}, dict(_walk(file, node, ())))
        document.content.update(yaml.safe_load(text))
        return document

    def complain(self, invalid: ValidationError) -> ConfigInvalid:
        """Make one error of the problem that stands first in the file, and count the others."""
        found = sorted((self._line(place), place, problem) for place, problem in _problems(invalid))
        line, place, problem = found[0]
        more = len({item[1] for item in found}) - 1
        rest = f" ({more} more problem{'s' if more > 1 else ''} after this one)" if more else ""
        return ConfigInvalid(
            file=str(self.file), line=line, key=_key(place), problem=problem + rest
        )

    def _line(self, place: Place) -> int:
        for known in (place, _SHORTHANDS.get(place, place)):
            if known in self.lines:
                return self.lines[known]
        return self._line(place[:-1]) if place else 1


def _walk(file: Path, node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            below = (*place, str(key.value))
            if key.value in seen:
                problem = "stands there twice; YAML would silently take the last one"
                raise ConfigInvalid(file=str(file), line=line, key=_key(below), problem=problem)
            seen.add(key.value)
            yield below, line
            yield from _walk(file, value, below)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*place, index), value.start_mark.line + 1
            yield from _walk(file, value, (*place, index))
    elif isinstance(node, yaml.ScalarNode):
        for opened in _OPENED.findall(node.value):
            if not PLACEHOLDER.fullmatch(opened):
                problem = f"unknown placeholder '{opened}'; write '${{env:NAME}}'"
                line = node.start_mark.line + 1
                raise ConfigInvalid(file=str(file), line=line, key=_key(place), problem=problem)


def _problems(invalid: ValidationError, above: Place = ()) -> Iterator[tuple[Place, str]]:
    for error in invalid.errors(include_url=False):
        place = (*above, *error["loc"])
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ValidationError):
            yield from _problems(cause, place)
        elif isinstance(cause, KeyProblem):
            yield (*place, *cause.key.split(".")), str(cause)
        elif cause is not None:
            yield place, str(cause)
        else:
            yield place, _describe(place, error)


def _describe(place: Place, error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _unknown_key(place)
    if kind in _TYPES:
        return f"expected {_TYPES[kind]}, found {error['input']!r}"
    if kind == "string_pattern_mismatch":
        return f"expected letters, digits and _ . -, found {error['input']!r}"
    if kind == "literal_error":
        near = suggest(str(error["input"]), re.findall(r"'([^']+)'", error["ctx"]["expected"]))
        return f"unknown value {error['input']!r}; {near}"
    if kind == "union_tag_invalid":
        return f"unknown value {error['input']!r}"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, found {error['input']!r}"


def _unknown_key(place: Place) -> str:
    if reason := _KNOWN_LATER.get(_key(place)):
        return reason
    known = _keys_at(place[:-1])
    if place[:-1] == ():
        known = [*known, "schedule"]
    return f"unknown key; {suggest(str(place[-1]), known)}"


def _keys_at(place: Place) -> list[str]:
    """Name the keys of the section at a place."""
    model: type[BaseModel] = PipelineConfig
    for step in place:
        field = next(
            (field for name, field in model.model_fields.items() if step in (name, field.alias)),
            None,
        )
        model = _model_in(field.annotation) or model if field else model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = [_model_in(item) for item in getattr(annotation, "__args__", ())]
    return next((model for model in inner if model is not None), None)


def _key(place: Place) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "file"
