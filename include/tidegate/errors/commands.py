"""Write commands as they are typed: what a shell would take apart stands in quotes."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMAND = re.compile(r"(`tidegate [^`]*`)")
_PLACES = re.compile(r"\bPIPELINE\b|\bPARTITION\b")
_TWO_STOPS = re.compile(r"(?<=[\w)'\"])\.\.(?=\s|$)")
"""Where a value ends a sentence, as what a library says does, and the template ends it as well."""


def command(*words: object) -> str:
    """Return a command of Tidegate's with its arguments."""
    return shlex.join(["tidegate", *map(str, words)])


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a message; inside of a command a value stands as it is typed."""
    typed = {name: shlex.quote(str(value)) for name, value in values.items()}
    parts = _COMMAND.split(template)
    return "".join(
        part.format(**typed)
        if _COMMAND.fullmatch(part)
        else _TWO_STOPS.sub(".", part.format(**values))
        for part in parts
    )


def naming(message: str, pipeline: str, partition: object = None) -> str:
    """Return a message whose commands name a pipeline where they say PIPELINE.

    And a partition where they say PARTITION, if there is one that the message is about.
    """
    names = {"PIPELINE": pipeline, "PARTITION": "PARTITION" if partition is None else partition}
    parts = _COMMAND.split(message)
    return "".join(
        _PLACES.sub(lambda found: shlex.quote(str(names[found[0]])), part)
        if _COMMAND.fullmatch(part)
        else part
        for part in parts
    )
