"""Hypothesis strategies: any value of the vocabulary, made from its type hints."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from tidegate.model.partition import Partition

SMALL = 2
"""Most items of a collection: nesting makes enough of them."""

moments = st.integers(-(10**15), 4 * 10**15).map(
    lambda microseconds: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=SMALL)
        | st.dictionaries(st.text(max_size=8), inner, max_size=SMALL)
    ),
    max_leaves=SMALL,
)

_names = st.text(min_size=1, max_size=8)
partitions = st.builds(
    Partition,
    st.lists(st.tuples(_names, st.none() | _names), max_size=SMALL).map(tuple),
    st.none() | _names,
)
"""Partitions whose path can be written: no name and no value is empty (PC-P02)."""

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: json_values,
    type(None): st.none(),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=12),
    datetime: moments,
    Partition: partitions,
    timedelta: st.timedeltas(timedelta(days=-400), timedelta(days=400)),
}


def values_of(cls: type) -> st.SearchStrategy[Any]:
    """Make instances of a frozen dataclass, every field drawn from its type hint."""
    hints = typing.get_type_hints(cls)
    return st.builds(
        cls, **{field.name: of_hint(hints[field.name]) for field in dataclasses.fields(cls)}
    )


def of_hint(hint: Any) -> st.SearchStrategy[Any]:
    """Make what a type hint allows."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin = typing.get_origin(hint)
    if origin is not None:
        return _of_generic(origin, typing.get_args(hint))
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    return st.deferred(lambda: values_of(hint))


def _of_generic(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in (types.UnionType, typing.Union):
        return st.one_of([of_hint(argument) for argument in arguments])
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return st.lists(of_hint(arguments[0]), max_size=SMALL).map(tuple)
    if origin is tuple:
        return st.tuples(*map(of_hint, arguments))
    if issubclass(origin, Mapping):
        return st.dictionaries(of_hint(arguments[0]), of_hint(arguments[1]), max_size=SMALL)
    msg = f"no strategy for {origin}[{arguments}]"
    raise TypeError(msg)
