"""Whether a file of somebody else's has the sizes that files of this pipeline have."""

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
    """Return whether a file is so small that others should stand in one file with it.

    An eighth: below it a partition would have eight times as many files as were asked for.
    """
    return length * _SMALL_SHARE < limits.file_bytes


def has_usual_sizes(footer: ParquetFooter, limits: WriteLimits) -> bool:
    """Return whether readers of a file notice no difference to one that was written here.

    A file may pass `rolling.file_size` by its last row group, as those do (PC-F08). Row groups
    bound the memory of readers and are what they pass over, so none may be much larger than ours,
    and they may not be tiny. Not just as large: nobody configures them, and other writers fill
    128 MB whatever the number of rows.
    """
    most_rows, most_bytes = footer.largest_group
    return (
        footer.end.length - footer.last_group_bytes <= limits.file_bytes
        and most_rows <= _MORE_ROWS * limits.group_rows
        and most_bytes <= _MORE_BYTES * limits.group_bytes
        and (footer.groups == 1 or footer.end.length >= _SMALLEST_GROUP * footer.groups)
    )
