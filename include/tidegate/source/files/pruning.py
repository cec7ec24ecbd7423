"""Leave out files whose path, and what a listing knows of them, fail the filter (PC-R04). Exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.predicate import Predicate
from tidegate.source.files.metadata import FileFacts, metadata_schema, metadata_values
from tidegate.source.files.partition_values import arrow_type, parse_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.config import FilesSourceConfig
    from tidegate.model.partition import Partition


class PartitionPruning:
    """The filter on whole files, by partition and metadata; empty if it also names other columns.

    Files of one partition are judged once, unless the filter asks about files.
    """

    def __init__(self, config: FilesSourceConfig, schema: pa.Schema) -> None:
        """Parse the filter against the columns that are read.

        Raises:
            PredicateInvalid: the filter does not fit the columns.
        """
        self._keys = config.partition_by
        self._default_name = config.default_partition_name
        self._metadata = config.named_metadata
        self._predicate: Predicate | None = None
        text = config.read.filter
        if text is not None and (self._keys or self._metadata):
            known = pa.unify_schemas([schema, self._key_schema])
            predicate = Predicate.parse(text, known, "source.read.filter")
            if set(predicate.columns) <= set(self._key_schema.names):
                self._predicate = predicate

    @property
    def asks_files(self) -> bool:
        """Whether files of one partition may be judged differently."""
        predicate = self._predicate
        return predicate is not None and not self._metadata.keys().isdisjoint(predicate.columns)

    def keep(self, partitions: Iterable[Partition]) -> frozenset[Partition]:
        """Return the partitions that may have passing rows."""
        candidates = list(partitions)
        nothing = FileFacts("", 0, 0)
        passes = self.passing([(partition, nothing) for partition in candidates])
        return frozenset(
            partition for partition, is_kept in zip(candidates, passes, strict=True) if is_kept
        )

    def passing(self, files: Sequence[tuple[Partition, FileFacts]]) -> list[bool]:
        """Return which files may have passing rows."""
        if self._predicate is None or not files:
            return [True] * len(files)
        rows = [
            parse_values(partition, self._keys, self._default_name, partition.path)
            | metadata_values(self._metadata, file)
            for partition, file in files
        ]
        columns = [pa.array([row[name] for row in rows], kind.type) for name, kind in self._fields]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._key_schema)
        return [bool(passes) for passes in self._predicate.mask(batch).to_pylist()]

    @property
    def _key_schema(self) -> pa.Schema:
        keys = [pa.field(name, arrow_type(kind)) for name, kind in self._keys.items()]
        return pa.schema([*keys, *metadata_schema(self._metadata)])

    @property
    def _fields(self) -> list[tuple[str, pa.Field]]:
        return [(field.name, field) for field in self._key_schema]
