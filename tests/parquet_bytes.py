"""Change single bytes of Parquet footers: what no writer at hand writes.

Statistics of 8-byte numbers, as Arrow writes them: largest and smallest in their old places, the
count of NULLs, largest and smallest again, and that both are exact.
"""

from __future__ import annotations

_BOUND, _COUNT, _BOUND_BEHIND_IT, _BOUND_WITHOUT_IT = b"\x18\x08", b"\x16", b"\x28\x08", b"\x38\x08"
_TRUE, _FALSE = b"\x11", b"\x12"


def with_inexact_largest(content: bytes, smallest: int) -> bytes:
    """Let the footer of a file say that the largest value of a column is only a bound.

    Args:
        content: of the file.
        smallest: number of the column, in all row groups.
    """
    exact = _BOUND + _number(smallest) + _TRUE
    return _with_footer(content, exact, exact[:-1] + _FALSE)


def without_null_count(content: bytes, largest: int) -> bytes:
    """Let the footer of a file not say how many values of a column are NULL; there are none.

    Args:
        content: of the file.
        largest: number of the column, in all row groups.
    """
    counted = _COUNT + b"\x00" + _BOUND_BEHIND_IT + _number(largest)
    return _with_footer(content, counted, _BOUND_WITHOUT_IT + _number(largest))


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def _with_footer(content: bytes, old: bytes, new: bytes) -> bytes:
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8]
    assert old in footer
    changed = footer.replace(old, new)
    return content[:start] + changed + len(changed).to_bytes(4, "little") + content[-4:]
