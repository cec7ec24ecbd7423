"""Convert the partitions of one target from values to paths and keys and back (PC-P07)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.errors import PartitionPathInvalid
from tidegate.model.partition import UNPARTITIONED_KEY, Partition
from tidegate.model.partition_value import INTERVALS, value_format

if TYPE_CHECKING:
    from tidegate.config import TargetConfig

_MOMENT = datetime(2026, 11, 1, 5)  # noqa: DTZ001 (wall clock, as in partition values)


@dataclass(frozen=True)
class Partitioning:
    """How a target writes its partitions: the order of the keys, and the name of NULL."""

    names: tuple[str, ...]
    """The keys in the order of the pipeline file, which is also that of the path."""
    default_name: str
    values: tuple[str, ...] = ()
    """An example value for each key; empty if not known."""

    @classmethod
    def of(cls, target: TargetConfig) -> Partitioning:
        """Build it from a pipeline's configuration."""
        fields = target.partition_by
        names = tuple(field.name for field in fields)
        values = tuple(
            _MOMENT.strftime(value_format(field, fields))
            if field.transform in INTERVALS
            else "value"
            for field in fields
        )
        return cls(names, target.default_partition_name, values)

    @property
    def example(self) -> Partition:
        """An example of a partition, for messages."""
        return Partition(tuple(zip(self.names, self.values, strict=True)))

    def parse(self, path: str) -> Partition:
        """Parse the path of a directory below the table root; the root itself is the empty path.

        Raises:
            PartitionPathInvalid: the directory is not a partition of this target.
        """
        return Partition.parse(path, self.names, self.default_name)

    def read(self, text: str) -> Partition:
        """Parse a partition as people and Airflow write it.

        Args:
            text: a path such as `dt=2026-11-01/region=eu`, or a key such as `2026-11-01~eu`; `all`
                for a target without partitions.

        Raises:
            PartitionPathInvalid: it names no partition of this target.
        """
        if not self.names:
            if text != UNPARTITIONED_KEY:
                raise PartitionPathInvalid(path=text, expected=self.spelling)
            return Partition(())
        try:
            # A key never contains the character: it is escaped there.
            if "=" in text:
                return self.parse(text)
            return Partition.parse_key(text, self.names, self.default_name)
        except PartitionPathInvalid as misspelled:
            raise PartitionPathInvalid(path=text, expected=self.spelling) from misspelled

    @property
    def spelling(self) -> str:
        """How people write a partition, for messages."""
        if not self.names:
            return f"'{UNPARTITIONED_KEY}': the target has no partitions"
        form = "/".join(f"{name}=…" for name in self.names)
        if not self.values:
            return form
        return f"{form}, such as {self.example}, or its key such as {self.example.key}"
