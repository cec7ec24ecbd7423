"""Read the header of a native log: a Parquet or ORC file that is one block (HUDI-L8).

Its rows are not read: the header stands in the footer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from tidegate.errors import LogBlockUnreadable
from tidegate.physical.key_values import FORMATS_WITH_KEYS, key_values
from tidegate.source.hudi.logs.blocks import Block, BlockType, Header

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_PREFIX = "hudi.log.format."
_WHOLE = f"{_PREFIX}metadata"
"""The key of the whole header, as it was before each entry had a key of its own."""
_VERSION = "VERSION"
_NEWEST = 2
_ROWS = "log"
_TYPES = {_ROWS: BlockType.PARQUET, "deletes": BlockType.DELETE, "cdc": BlockType.CDC}


class NativeLog(Protocol):
    """What the name of a native log tells of it."""

    @property
    def path(self) -> str:
        """The whole path."""
        ...

    @property
    def size_bytes(self) -> int:
        """Its length."""
        ...

    @property
    def instant(self) -> str:
        """The requested time of its write."""
        ...

    @property
    def kind(self) -> str:
        """What its rows are: `log`, `deletes` or `cdc`."""
        ...

    @property
    def file_format(self) -> str | None:
        """The format of the file."""
        ...


def native_block(file: pa.NativeFile, log: NativeLog) -> Block:
    """Return a native log as the block that it is.

    Args:
        file: open for random reads.
        log: its name; the instant counts if the header has none.

    Raises:
        LogBlockUnreadable: its format, or the version of its header, is not known, or rows have no
            header.
        OSError, pa.ArrowException: it is damaged.
    """
    file_format = log.file_format
    if file_format not in FORMATS_WITH_KEYS:
        expected = " or ".join(sorted(FORMATS_WITH_KEYS))
        problem = f"a log that is a file of format {file_format}, expected {expected}"
        raise LogBlockUnreadable(path=log.path, offset=0, problem=problem)
    texts = key_values(file, file_format)
    try:
        said = _header(texts)
    except ValueError as broken:
        problem = f"no header of a log in its footer: {broken}"
        raise LogBlockUnreadable(path=log.path, offset=0, problem=problem) from broken
    if log.kind == _ROWS and Header.SCHEMA.name not in said:
        # Hudi refuses it, too: without a header it is not known whether its rows are whole.
        problem = f"expected a text with the key {_PREFIX}{Header.SCHEMA.name} in its footer"
        raise LogBlockUnreadable(path=log.path, offset=0, problem=problem)
    header = {int(key): said[key.name] for key in Header if key.name in said}
    header.setdefault(int(Header.INSTANT_TIME), log.instant)
    return Block(log.path, _TYPES[log.kind], header, 0, log.size_bytes, file_format)


def _header(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of the header by their names.

    Raises:
        ValueError: they are spelled otherwise, or those of a newer version.
    """
    whole = json.loads(texts.get(_WHOLE, "{}"))
    if not isinstance(whole, dict):
        msg = f"expected entries by name, found {texts[_WHOLE]}"
        raise ValueError(msg)  # noqa: TRY004 (the text of a file, not an argument)
    said = {key: str(value) for key, value in whole.items() if value is not None}
    for key, text in texts.items():
        if key.startswith(_PREFIX):
            said[key.removeprefix(_PREFIX)] = text
    if int(said.get(_VERSION, _NEWEST)) > _NEWEST:
        msg = f"version {said[_VERSION]}, expected at most {_NEWEST}"
        raise ValueError(msg)
    return said
