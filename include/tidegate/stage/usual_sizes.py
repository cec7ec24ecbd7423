"""Compare the sizes of a foreign file with those of the files that this pipeline writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.physical.parquet_footer import ParquetFooter
    from tidegate.stage.part_writers import WriteLimits

_SMALL_SHARE = 8
_MORE_BYTES = 2
_MORE_ROWS = 16
_SMALLEST_GROUP = 1 << 20


def is_small(length: int, limits: WriteLimits) -> bool:
    """Return whether a file is so small that it should share a part file with others.

    The limit is an eighth: below it a partition would have eight times as many files as configured.
    """
    return length * _SMALL_SHARE < limits.file_bytes


def has_usual_sizes(footer: ParquetFooter, limits: WriteLimits) -> bool:
    """Return whether readers of a file see no difference from one that was written here.

    A file may exceed `rolling.file_size` by its last row group, as those files do (PC-F08). Row
    groups bound the memory of readers and are what they skip, so none may be much larger than ours
    or tiny. They need not be equal: nobody configures them, and other writers fill 128 MB whatever
    the number of rows.
    """
    most_rows, most_bytes = footer.largest_group
    return (
        footer.end.length - footer.last_group_bytes <= limits.file_bytes
        and most_rows <= _MORE_ROWS * limits.group_rows
        and most_bytes <= _MORE_BYTES * limits.group_bytes
        and (footer.groups == 1 or footer.end.length >= _SMALLEST_GROUP * footer.groups)
    )
