"""A YAML file with the line of each of its keys, which are text; refuses duplicate keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from tidegate.config.environment import PLACEHOLDER
from tidegate.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Place = tuple[str | int, ...]
"""Keys and list positions from the top of the file down."""

# Shorter keys (design §7): where a problem is reported → where the text is.
_SHORTHANDS: Mapping[Place, Place] = {
    ("dag", "schedule"): ("schedule",),
    ("source", "read", "schema"): ("source", "read_schema"),
    ("source", "catalog"): ("source", "table"),
}
_OPENED = re.compile(r"\$\{[^}]*\}?")
_TEXT = "tag:yaml.org,2002:str"
_KEYS_READ = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "timestamp", "value")
)
"""What YAML takes a plain key for that is meant as text, such as the column `no`; not `<<`."""


@dataclass(frozen=True)
class Document:
    """The content of a file, with the place of each key."""

    file: str
    content: Mapping[Any, Any]
    lines: Mapping[Place, int]
    scalars: Mapping[Place, str] = field(default_factory=dict)
    """The text of each value that YAML reads as something else: a number, a date, null."""

    @classmethod
    def read(cls, file: Path) -> Document:
        """Read a file whose top level is a mapping.

        Raises:
            ConfigInvalid: it is not YAML, has a duplicate key or a placeholder other than
                `${env:NAME}`, or cannot be read.
            FileNotFoundError: there is no such file.
        """
        try:
            text = file.read_text("utf-8")
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            nodes = _nodes(file, root)
            content = yaml.SafeLoader("").construct_document(root)
        except FileNotFoundError:
            raise
        except yaml.MarkedYAMLError as broken:
            mark = broken.problem_mark or broken.context_mark
            problem = f"cannot be read as YAML: {broken.problem or broken.context}"
            raise _invalid(file, mark.line + 1 if mark else 1, (), problem) from broken
        except OSError as refused:
            problem = f"cannot be read: {refused.strerror}"
            raise _invalid(file, 1, (), problem) from refused
        except (UnicodeDecodeError, yaml.YAMLError, ValueError) as broken:
            problem = f"cannot be read as YAML in UTF-8: {broken}"
            raise _invalid(file, 1, (), problem) from broken
        lines = {place: line for place, (line, _) in nodes.items()}
        scalars = {
            place: node.value
            for place, (_, node) in nodes.items()
            if isinstance(node, yaml.ScalarNode) and node.tag != _TEXT
        }
        return cls(str(file), content, lines, scalars)

    def line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest parent that the file has."""
        for known in (place, _SHORTHANDS.get(place, place)):
            if known in self.lines:
                return self.lines[known]
        return self.line(place[:-1]) if place else 1


def key_text(place: Place) -> str:
    """Return a place as text, such as `commit.policies[1]`."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "file"


def _invalid(file: Path, line: int, place: Place, problem: str) -> ConfigInvalid:
    return ConfigInvalid(file=str(file), line=line, key=key_text(place), problem=problem)


def _nodes(file: Path, node: yaml.Node | None) -> Mapping[Place, tuple[int, yaml.Node]]:
    """Return the line and the value of each place, and read all keys as text."""
    if not isinstance(node, yaml.MappingNode):
        problem = "expected the keys of a pipeline: name, source, target, …"
        raise _invalid(file, node.start_mark.line + 1 if node else 1, (), problem)
    return dict(_walk(file, node, ()))


def _walk(
    file: Path, node: yaml.Node, place: Place
) -> Iterator[tuple[Place, tuple[int, yaml.Node]]]:
    if isinstance(node, yaml.MappingNode):
        yield from _walk_mapping(file, node, place)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*place, index), (value.start_mark.line + 1, value)
            yield from _walk(file, value, (*place, index))
    elif isinstance(node, yaml.ScalarNode):
        for opened in _OPENED.findall(node.value):
            if not PLACEHOLDER.fullmatch(opened):
                problem = f"unknown placeholder '{opened}'; write '${{env:NAME}}'"
                raise _invalid(file, node.start_mark.line + 1, place, problem)
        _check_scalar(file, node, place)


def _walk_mapping(
    file: Path, node: yaml.MappingNode, place: Place
) -> Iterator[tuple[Place, tuple[int, yaml.Node]]]:
    seen: set[str] = set()
    node.value = [(_as_text(key), value) for key, value in node.value]
    for key, value in node.value:
        line, below = key.start_mark.line + 1, (*place, str(key.value))
        if below[-1] in seen:
            problem = "is given twice; YAML would silently use the last one"
            raise _invalid(file, line, below, problem)
        seen.add(str(key.value))
        yield below, (line, value)
        yield from _walk(file, value, below)


def _as_text(key: yaml.Node) -> yaml.Node:
    """Return a key whose value is its text; a value of the same anchor stays what it is."""
    if isinstance(key, yaml.ScalarNode) and key.tag in _KEYS_READ:
        return yaml.ScalarNode(_TEXT, key.value, key.start_mark, key.end_mark)
    return key


def _check_scalar(file: Path, node: yaml.ScalarNode, place: Place) -> None:
    """Refuse what YAML takes for a date or a number but cannot read as one, such as 2026-13-01."""
    try:
        yaml.SafeLoader("").construct_object(node)
    except ValueError as broken:
        taken = "no date" if node.tag.endswith(":timestamp") else "not what YAML takes it for"
        problem = f"'{node.value}' is {taken}: {broken}"
        raise _invalid(file, node.start_mark.line + 1, place, problem) from broken
