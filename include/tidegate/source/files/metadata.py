"""The columns about the file of a row, whose values a listing knows (PC-O07); never NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.physical.arrays import integer_column, text_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NANOSECONDS = 1_000
"""Nanoseconds per microsecond."""
_INSTANT = pa.timestamp("us", "UTC")


class FileFacts(NamedTuple):
    """What a listing knows of a file."""

    path: str
    """Its whole path."""
    size: int
    modified: int
    """In nanoseconds since 1970."""


def _number(value: int) -> pa.Scalar:
    return integer_column(np.full(1, value, np.int64))[0]


_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[FileFacts], pa.Scalar]]] = {
    "file.path": (pa.string(), lambda file: text_scalar(file.path)),
    "file.name": (pa.string(), lambda file: text_scalar(file.path.rpartition("/")[2])),
    "file.size": (pa.int64(), lambda file: _number(file.size)),
    "file.modification-time": (
        _INSTANT,
        lambda file: _number(file.modified // _NANOSECONDS).cast(_INSTANT),
    ),
}


def metadata_schema(named: Mapping[str, str]) -> pa.Schema:
    """Return the types of columns about files.

    Args:
        named: name → word of the pipeline file.
    """
    return pa.schema([(name, _COLUMNS[word][0]) for name, word in named.items()])


def metadata_values(named: Mapping[str, str], file: FileFacts) -> dict[str, pa.Scalar]:
    """Return the values of columns about a file."""
    return {name: _COLUMNS[word][1](file) for name, word in named.items()}
