"""Say what every engine of one comparison does: what it reads, keeps and writes.

Standard library alone: the peers read it in an environment of their own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_VALUE = 255
_KEY_CHARACTERS = {"day": 10, "month": 7}


@dataclass(frozen=True)
class Job:
    """Read a table, keep what passes a filter, write it by day or month."""

    kind: str
    """`files`: a folder of Parquet files; `iceberg`, `hudi`: a table."""
    source: str
    """The folder, or an Iceberg table's metadata file."""
    filter: str
    """SQL; empty keeps everything."""
    event_time: str
    """Column whose day or month the output is partitioned by, as `dt`."""
    unit: str
    """`day` or `month`; of no matter if there is a partition column."""
    sums: tuple[str, ...]
    """SQL aggregates that tell the rows of a partition apart."""
    table: str = ""
    """Name of an Iceberg table in Spark's catalog `lake`."""
    warehouse: str = ""
    """Folder of that catalog."""
    columns: tuple[str, ...] = ()
    """Named where a changelog is read; all of the table's otherwise."""
    mode: str = "append"
    """`append` or `changelog`, see `source.read.mode`."""
    start_after: int | str | None = None
    """Only what came after this snapshot or instant; None: the whole table as it stands."""

    copy_whole_files: str = "auto"
    """Tidegate's `target.copy_whole_files`."""
    partition_column: str = ""
    """Column that the output is partitioned by instead of the event time."""
    shuffle: bool = False
    """Tidegate's `target.shuffle_by_partition`."""
    sort_by: tuple[str, ...] = ()
    """Tidegate's `target.sort_by`."""

    @property
    def condition(self) -> str:
        """The filter, as an engine wants it that always takes one."""
        return self.filter or "true"

    @property
    def key(self) -> str:
        """The name of the output's partition key."""
        return self.partition_column or "dt"

    @property
    def key_characters(self) -> int:
        """How much of a partition's value counts: engines write a month as its first day."""
        if self.partition_column:
            return _LONGEST_VALUE
        return _KEY_CHARACTERS[self.unit]

    def write(self, path: Path) -> None:
        """Leave the job for the processes that do it."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Job:
        """Give the job that was left."""
        found = json.loads(path.read_text())
        lists = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
        return cls(**found | lists)
