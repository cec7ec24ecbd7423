"""Write commands as they are typed: arguments that a shell would split are quoted."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMAND = re.compile(r"(`tidegate [^`]*`)")
_PLACES = re.compile(r"\bPIPELINE\b|\bPARTITION\b")
_TWO_STOPS = re.compile(r"(?<=[\w)'\"])\.\.(?=\s|$)")
"""A full stop that ends a value, followed by the full stop of the template."""


def command(*words: object) -> str:
    """Return a command of Tidegate with its arguments."""
    return shlex.join(["tidegate", *map(str, words)])


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a message; inside a command, a value is written as it is typed."""
    typed = {name: shlex.quote(str(value)) for name, value in values.items()}
    parts = _COMMAND.split(template)
    return "".join(
        part.format(**typed)
        if _COMMAND.fullmatch(part)
        else _TWO_STOPS.sub(".", part.format(**values))
        for part in parts
    )


def naming(message: str, pipeline: str, partition: object = None) -> str:
    """Replace PIPELINE in the commands of a message by the name of a pipeline.

    PARTITION is replaced as well, if the message is about a partition.
    """
    names = {"PIPELINE": pipeline, "PARTITION": "PARTITION" if partition is None else partition}
    parts = _COMMAND.split(message)
    return "".join(
        _PLACES.sub(lambda found: shlex.quote(str(names[found[0]])), part)
        if _COMMAND.fullmatch(part)
        else part
        for part in parts
    )
