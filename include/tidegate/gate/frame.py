"""Turn what was read into the frames that the expectations run on, so that both engines agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_pandas(table: pa.Table) -> Any:
    """Make a pandas frame in which NULL is missing and nothing else changes.

    Integers and booleans get pandas' nullable types: the plain ones would turn a column with a
    NULL into floats (and lose digits above 2**53) or objects.
    """
    import pandas as pd

    nullable = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    frame = table.to_pandas(types_mapper=nullable.get)
    # Without a column only the index tells how many rows there are.
    return frame if table.num_columns else pd.DataFrame(index=range(table.num_rows))


def with_constants(frame: Any, constants: Mapping[str, str | None]) -> Any:
    """Add the partition's values to a Spark frame; as SQL, for this package knows no pyspark."""
    return frame.selectExpr("*", *(f"{_literal(text)} AS {_quoted(name)}"
                                   for name, text in constants.items()))  # fmt: skip


def _literal(text: str | None) -> str:
    if text is None:
        return "CAST(NULL AS STRING)"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
