"""What each key of the pipeline file is for, read from the texts that stand below the attributes.

Read when somebody asks: a third of the time that the models take to load, in every process.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING

from tidegate.config.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel


@functools.cache
def descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the description of each key that has one, inherited ones included."""
    sections = [item for item in model.__mro__ if issubclass(item, Section)]
    found = {name: text for section in reversed(sections) for name, text in _own(section)}
    keys = {name: field.alias or name for name, field in model.model_fields.items()}
    return {key: found[name] for name, key in keys.items() if name in found}


def _own(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    (defined,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    for attribute, text in pairwise(getattr(defined, "body", ())):
        match attribute, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(description))),
            ):
                yield name, inspect.cleandoc(description)
