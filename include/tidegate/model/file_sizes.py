"""How many files a partition has, how large they are, and how few would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.partition import Partition
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class FileSizes(Value):
    """The files of one published partition (PC-O38)."""

    partition: Partition
    files: int
    bytes: int
    small_files: int
    """Files with fewer bytes than a file should have."""
    small_bytes: int
    files_after: int
    """Files that there would be if the small ones were merged."""

    @classmethod
    def of(
        cls, partition: Partition, lengths: Collection[int], small_below: int, target_size: int
    ) -> FileSizes:
        """Count files.

        Args:
            partition: the partition.
            lengths: the bytes of each of its files.
            small_below: a smaller file is small.
            target_size: bytes of a file that small ones are merged into.
        """
        small = [length for length in lengths if length < small_below]
        # As many files as there are cannot become more: one that is alone stays.
        merged = min(len(small), -(-sum(small) // target_size))
        return cls(
            partition=partition,
            files=len(lengths),
            bytes=sum(lengths),
            small_files=len(small),
            small_bytes=sum(small),
            files_after=len(lengths) - len(small) + merged,
        )

    @property
    def mean_bytes(self) -> int:
        """The mean size of a file; 0 if there is none."""
        return self.bytes // self.files if self.files else 0
