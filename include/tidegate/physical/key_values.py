"""Read the texts that a writer stored by key in a file's footer."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow.orc as orc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa


def _of_parquet(file: pa.NativeFile) -> Mapping[bytes, bytes]:
    return pq.ParquetFile(file, pre_buffer=False).metadata.metadata or {}


def _of_orc(file: pa.NativeFile) -> Mapping[bytes, bytes]:
    return dict(orc.ORCFile(file).metadata.items())


_READERS: Mapping[str, Callable[[pa.NativeFile], Mapping[bytes, bytes]]] = MappingProxyType(
    {"parquet": _of_parquet, "orc": _of_orc}
)
FORMATS_WITH_KEYS = frozenset(_READERS)
"""The formats whose footers have such texts."""


def key_values(file: pa.NativeFile, file_format: str) -> dict[str, str]:
    """Read the texts of a footer.

    Args:
        file: open for random reads; stays open.
        file_format: one of `FORMATS_WITH_KEYS`.

    Raises:
        OSError, pa.ArrowException: the file does not have this format.
    """
    found = _READERS[file_format](file).items()
    return {key.decode(errors="replace"): text.decode(errors="replace") for key, text in found}
