"""Leave out files whose partition values alone fail the filter (PC-R04). Exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.predicate import Predicate
from tidegate.source.files.partition_values import arrow_type, parse_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.config import FilesSourceConfig
    from tidegate.model.partition import Partition


class PartitionPruning:
    """The filter on whole partitions; empty if it also names other columns."""

    def __init__(self, config: FilesSourceConfig, schema: pa.Schema) -> None:
        """Parse the filter against the columns that are read.

        Raises:
            PredicateInvalid: the filter does not fit the columns.
        """
        self._keys = config.partition_by
        self._default_name = config.default_partition_name
        self._predicate: Predicate | None = None
        text = config.read.filter
        if text is not None and self._keys:
            known = pa.unify_schemas([schema, self._key_schema])
            predicate = Predicate.parse(text, known, "source.read.filter")
            if set(predicate.columns) <= set(self._keys):
                self._predicate = predicate

    def keep(self, partitions: Iterable[Partition]) -> frozenset[Partition]:
        """Return the partitions that may have passing rows."""
        candidates = list(partitions)
        if self._predicate is None or not candidates:
            return frozenset(candidates)
        rows = [
            parse_values(partition, self._keys, self._default_name, partition.path)
            for partition in candidates
        ]
        columns = [pa.array([row[name] for row in rows], kind.type) for name, kind in self._fields]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._key_schema)
        mask = self._predicate.mask(batch).to_pylist()
        return frozenset(
            partition for partition, passes in zip(candidates, mask, strict=True) if passes
        )

    @property
    def _key_schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in self._keys.items()])

    @property
    def _fields(self) -> list[tuple[str, pa.Field]]:
        return [(field.name, field) for field in self._key_schema]
