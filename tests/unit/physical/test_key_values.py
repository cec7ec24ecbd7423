"""The texts of a footer are read, whatever the format."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_native import orc_log, parquet_log
from tidegate.physical.key_values import FORMATS_WITH_KEYS, key_values

ROWS = pa.table({"n": [1]})
MAKERS = {"parquet": parquet_log, "orc": orc_log}


@pytest.mark.parametrize("file_format", sorted(FORMATS_WITH_KEYS))
@pytest.mark.parametrize("texts", [{}, {"a": "1", "long": "x" * 300, "umlaut": "ä"}])
def test_texts_are_those_that_were_written(texts: dict[str, str], file_format: str) -> None:
    file = pa.BufferReader(MAKERS[file_format](ROWS, texts))

    assert key_values(file, file_format) == texts


@pytest.mark.parametrize("file_format", sorted(FORMATS_WITH_KEYS))
def test_file_of_another_format_is_an_error_of_arrow(file_format: str) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        key_values(pa.BufferReader(b"neither of them"), file_format)
