"""The names of base files and log files (HUDI-F1, L8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

_BASE = re.compile(
    r"(?P<group>[^.].*)_(?P<token>[^_]*)_(?P<instant>\d{14}|\d{17})[.](?P<format>[a-z]+)"
)
_LOG = re.compile(
    r"[.](?P<group>.+)_(?P<instant>\d{14}|\d{17})[.]log[.](?P<version>\d+)"
    r"(?:_(?P<token>[^_.]*))?(?P<cdc>[.]cdc)?"
)
_NATIVE = re.compile(
    r"(?P<group>[^.].*)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d{14}|\d{17})_(?P<version>\d+)"
    r"[.](?P<kind>log|deletes|cdc)[.](?P<format>[^.]+)"
)
_KINDS = ("log", "deletes", "cdc")
"""In the order of files of one version: an append writes its rows before its deletes."""
BASE_FORMATS = frozenset({"parquet", "orc", "hfile", "lance"})


class _AtPath:
    """Whatever has a path below the table."""

    path: str

    @property
    def name(self) -> str:
        """The path without its folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class BaseFile(_AtPath):
    """A base file, by its name."""

    path: str
    """Below the table."""
    size_bytes: int
    group: str
    """The id of its file group."""
    token: str
    instant: str
    """The requested time of the instant that wrote it."""
    file_format: str


@dataclass(frozen=True)
class LogFile(_AtPath):
    """A log file, by its name."""

    path: str
    """Below the table."""
    size_bytes: int
    group: str
    instant: str
    """Before version 8: of the base file that it belongs to; since then: of its write."""
    version: int
    token: str
    kind: Literal["log", "deletes", "cdc"]
    file_format: str | None = None
    """Of a native log, which is a file of another format (HUDI-L8); None: it has blocks."""

    @property
    def order(self) -> tuple[str, int, str, int, str]:
        """Its place among the logs of a slice: by requested time (HUDI-F11)."""
        return self.instant, self.version, self.token, _KINDS.index(self.kind), self.path


def parse_name(path: str, size_bytes: int) -> BaseFile | LogFile | None:
    """Read the name of a file; None for a file that is neither (HUDI-F3).

    Args:
        path: below the table.
        size_bytes: its length.
    """
    name = path.rpartition("/")[2]
    if log := _LOG.fullmatch(name):
        return LogFile(
            path=path,
            size_bytes=size_bytes,
            group=log["group"],
            instant=log["instant"],
            version=int(log["version"]),
            token=log["token"] or "",
            kind="cdc" if log["cdc"] else "log",
        )
    if native := _NATIVE.fullmatch(name):
        return LogFile(
            path=path,
            size_bytes=size_bytes,
            group=native["group"],
            instant=native["instant"],
            version=int(native["version"]),
            token=native["token"],
            kind=cast("Literal['log', 'deletes', 'cdc']", native["kind"]),
            file_format=native["format"].lower(),
        )
    base = _BASE.fullmatch(name)
    if base is None or base["format"] not in BASE_FORMATS:
        return None
    return BaseFile(path, size_bytes, base["group"], base["token"], base["instant"], base["format"])
