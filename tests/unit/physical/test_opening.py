"""Files are opened by the name of their format, and closed where that fails."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.physical import open_rows


def test_column_whose_name_is_no_text_is_refused() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"name": [1]}), file, store_schema=False)
    broken = pa.BufferReader(file.getvalue().replace(b"name", b"\xffame"))

    with pytest.raises(pa.ArrowInvalid, match="no text"):
        open_rows(broken, "parquet")

    assert broken.closed
