"""Read a small file of counts as a whole: CSV, JSON, JSON lines or Parquet (PC-C03).

Called by what waits, many times a day: only a Parquet file loads pyarrow.
"""

from __future__ import annotations

import csv
import io
import json
import posixpath
from typing import TYPE_CHECKING, Any

from tidegate.errors import CountsUnreadable, SourceFileGone, TidegateError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidegate.storage import Storage


def read_count_file(storage: Storage, path: str) -> Mapping[str, Sequence[Any]]:
    """Return the rows of a file, column by column.

    Raises:
        CountsUnreadable: it is not there, or is no such file (Transient).
    """
    ending = posixpath.splitext(path)[1].lower()
    try:
        return READERS[ending](storage.read_bytes(path))
    except SourceFileGone as gone:
        raise CountsUnreadable(place=path, problem="there is no such file") from gone
    except (TidegateError, OSError, ValueError, OverflowError, RecursionError) as broken:
        said = str(broken).strip() or type(broken).__name__
        raise CountsUnreadable(place=path, problem=said.splitlines()[0]) from broken


def _csv(content: bytes) -> Mapping[str, Sequence[Any]]:
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    try:
        lines = [line for line in reader if line]
    except csv.Error as broken:
        msg = f"line {reader.line_num}: {broken}"
        raise ValueError(msg) from broken
    if not lines:
        msg = "it has no header"
        raise ValueError(msg)
    header, *rows = lines
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            msg = f"row {number} has {len(row)} values, and the header {len(header)}"
            raise ValueError(msg)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return dict(zip((name.strip() for name in header), columns, strict=True))


def _json(content: bytes) -> Mapping[str, Sequence[Any]]:
    return _columns(json.loads(content or b"[]"))


def _json_lines(content: bytes) -> Mapping[str, Sequence[Any]]:
    return _columns([json.loads(line) for line in content.splitlines() if line.strip()])


def _columns(found: Any) -> Mapping[str, Sequence[Any]]:
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        msg = "expected a list of objects, one for each partition"
        raise ValueError(msg)
    names = dict.fromkeys(name for row in found for name in row)
    return {name: [row.get(name) for row in found] for name in names}


def _parquet(content: bytes) -> Mapping[str, Sequence[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        read = pq.read_table(pa.BufferReader(content))
    except pa.ArrowException as broken:
        raise ValueError(str(broken)) from broken
    found: Mapping[str, Sequence[Any]] = read.to_pydict()
    return found


READERS: Mapping[str, Callable[[bytes], Mapping[str, Sequence[Any]]]] = {
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}
"""Ending → the function that reads such a file."""
