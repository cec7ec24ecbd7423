"""Bring batches from the schema that a file has into the schema that is wanted.

The work is decided once per file schema and then applied to batch after batch; a column that fits
is passed on as it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.model.wire import canonical
from tidegate.source.column_kernels import Found, Place, Wanted, decide, project, stands_for
from tidegate.source.promotion import CastTo, cast_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_KEPT_PROJECTIONS = 64


class Projection:
    """Converts batches of one file schema to the wanted schema."""

    def __init__(
        self,
        wanted: Sequence[Wanted],
        found: Sequence[Found],
        constants: Mapping[Any, pa.Scalar],
        path: str,
        cast: CastTo = cast_to,
    ) -> None:
        """Decide where each wanted column comes from.

        Args:
            wanted: the columns of the result, in order.
            found: the columns of the file's batches, in order.
            constants: values of columns that the file lacks, known from its partition (ICE-6.13).
            path: the file, for errors.
            cast: which primitive types may become which others, and how.

        Raises:
            SchemaIncompatible: a type cannot be promoted, or a required column has no value
                anywhere.
        """
        self.schema = pa.schema([pa.field(column.name, column.type) for column in wanted])
        self._columns = decide(wanted, found, Place(path, constants, cast_to=cast))
        self._found = tuple(found)

    @property
    def passing(self) -> tuple[str, ...] | None:
        """The columns that come from the file, if they are its first ones, in its order.

        None if one of them, or a nested field, has another position. Types are not compared: the
        same text column of a file may have different types in memory.
        """
        own = [column for column in self._columns if column.index is not None]
        in_place = all(
            column.index == place and stands_for(self._found[place], column.wanted)
            for place, column in enumerate(own)
        )
        return tuple(column.wanted.name for column in own) if in_place else None

    @property
    def repeated(self) -> dict[str, pa.Scalar]:
        """The columns that the file does not have, each with its value for all rows."""
        return {
            column.wanted.name: column.constant for column in self._columns if column.index is None
        }

    def apply(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """Convert a batch to the wanted schema.

        Raises:
            SchemaIncompatible: a value does not fit the wanted type.
        """
        arrays = [project(column, batch, path) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class Projections:
    """Keeps the projections of the file schemas that were seen last; one per reading thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, str], Projection] = OrderedDict()

    def get(
        self, schema: pa.Schema, values: Mapping[str, Any], decide: Callable[[], Projection]
    ) -> Projection:
        """Return the projection for batches of a schema.

        Args:
            schema: of the batch, with its metadata.
            values: the file's partition values, JSON-ready.
            decide: makes the projection if none is kept.
        """
        key = (schema.serialize().to_pybytes(), canonical(values))
        projection = self._kept.get(key)
        if projection is None:
            projection = self._kept[key] = decide()
            if len(self._kept) > _KEPT_PROJECTIONS:
                self._kept.popitem(last=False)
        return projection
