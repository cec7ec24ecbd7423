"""Partitions of the target: values, directory path, key for Airflow (PC-P01–P11, AF-3.16)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from tidegate.errors import PartitionKeyIllegal, PartitionPathInvalid
from tidegate.model.wire import SPARSE, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_NAME = "__DEFAULT_PARTITION__"
"""The directory value for NULL, unless the target has another one."""
HIVE_DEFAULT_NAME = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive and Spark use."""
UNPARTITIONED_KEY = "all"

# PC-P03: control characters, DEL, and these.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\[\\\]^{}]")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_KEY_SAFE = re.compile(r"[A-Za-z0-9_.:+-]")
_KEY_LEGAL = re.compile(r"^[A-Za-z0-9_.~:+-]{1,250}$")
_KEY_NULL = "_null_"


class Transform(Enum):
    """How a partition value is made from a column."""

    IDENTITY = "identity"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    STATIC = "static"
    """It is a constant of the pipeline file (PC-O22)."""


@dataclass(frozen=True)
class PartitionField(Value):
    """One key of the target's partitioning: `dt: day(ordered_at)`."""

    name: str
    column: str
    """The column of the source; of a static key, the value itself."""
    transform: Transform

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source that it is made from: one, or none of a static key."""
        return () if self.transform is Transform.STATIC else (self.column,)


@dataclass(frozen=True)
class Partition(Value):
    """One combination of partition values in declared key order.

    None is the default partition's value.
    """

    values: tuple[tuple[str, str | None], ...]
    default_name: str | None = field(default=None, metadata={SPARSE: True})
    """The directory value for None; None: the usual one, or no value is missing."""

    def __post_init__(self) -> None:
        """Drop a name that the path does not need, so that equal partitions have equal paths."""
        if self.default_name is not None and not (
            self.is_default and self.default_name != DEFAULT_NAME
        ):
            object.__setattr__(self, "default_name", None)

    @property
    def path(self) -> str:
        """Directory below the table root, without a trailing slash.

        Empty for an unpartitioned target.
        """
        missing = self.default_name or DEFAULT_NAME
        return "/".join(
            f"{escape(name)}={escape(missing if value is None else value)}"
            for name, value in self.values
        )

    @property
    def key(self) -> str:
        """Key of the partition in Airflow (AF-3.16).

        It consists of the values, joined by `~` and reversibly encoded.
        """
        if not self.values:
            return UNPARTITIONED_KEY
        key = "~".join(_encode_key(value) for _, value in self.values)
        if not _KEY_LEGAL.match(key):
            raise PartitionKeyIllegal(partition=self.path, key=key)
        return key

    @property
    def has_key(self) -> bool:
        """Whether its key is legal in Airflow: a run, or a consumer, can name it."""
        try:
            return bool(self.key)
        except PartitionKeyIllegal:
            return False

    def __str__(self) -> str:
        return self.path or UNPARTITIONED_KEY

    @property
    def is_default(self) -> bool:
        """Whether any value is missing: such a partition has no partition time (PC-T17)."""
        return any(value is None for _, value in self.values)

    @classmethod
    def parse(cls, path: str, names: tuple[str, ...], default_name: str) -> Partition:
        """Read a directory path relative to the table root (PC-P05).

        Args:
            path: as returned by `path`.
            names: the declared keys.
            default_name: the directory value for NULL in this table (PC-P08).

        Raises:
            PartitionPathInvalid: a component is missing, is not `key=value`, or names another key.
        """
        components = [part for part in path.strip("/").split("/") if part]
        if len(components) != len(names):
            raise PartitionPathInvalid(path=path, expected="/".join(f"{name}=…" for name in names))
        values = []
        for component, name in zip(components, names, strict=True):
            key, equals, value = component.partition("=")
            if not equals or unescape(key) != name or not value:
                raise PartitionPathInvalid(
                    path=path, expected="/".join(f"{name}=…" for name in names)
                )
            text = unescape(value)
            values.append((name, None if text == default_name else text))
        return cls(tuple(values), default_name)

    @classmethod
    def parse_key(cls, key: str, names: tuple[str, ...], default_name: str) -> Partition:
        """Read an Airflow key back into its partition.

        A value that is spelled like the default partition's directory stands for that partition,
        because no text may have this spelling (PC-P07).

        Raises:
            PartitionPathInvalid: the key does not have one value per partition key, or has one that
                `key` would write differently.
        """
        if not names:
            return cls(())
        parts = key.split("~")
        texts = [_decode_key(part) for part in parts]
        # A mistyped escape must not become the name of another partition.
        written = [_encode_key(text) for text in texts]
        if len(parts) != len(names) or not all(parts) or written != parts:
            raise PartitionPathInvalid(path=key, expected="~".join("…" for _ in names))
        return cls(
            tuple(
                (name, None if text == default_name else text)
                for name, text in zip(names, texts, strict=True)
            ),
            default_name,
        )


class PartitionGroups:
    """Partitions by the values of some of their keys.

    Args:
        groups: combinations of values, all of the same keys.
    """

    def __init__(self, groups: Iterable[Partition]) -> None:
        self._values = {frozenset(group.values) for group in groups}
        self._names = {name for values in self._values for name, _ in values}

    def __contains__(self, partition: Partition) -> bool:
        """Return whether a partition has the values of one of the groups."""
        return frozenset(it for it in partition.values if it[0] in self._names) in self._values


def escape(text: str) -> str:
    """Escape one path component's key or value (PC-P03).

    Raises:
        PartitionPathInvalid: the text is empty (PC-P02).
    """
    if not text:
        raise PartitionPathInvalid(path=text, expected="text that is not empty")
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape(text: str) -> str:
    """Undo `escape`; a `%` without two hexadecimal digits stays as it is (PC-P04).

    Hive and Spark escape ASCII only. Other writers (pyarrow, polars, DuckDB) escape the bytes of
    UTF-8; bytes that are none stand for the characters of their numbers, as Spark reads them.
    """
    return _PERCENT.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    found = unquote_to_bytes(match.group())
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.decode("latin-1")


def _encode_key(value: str | None) -> str:
    if value is None:
        return _KEY_NULL
    # "_" begins an escape, so it is escaped itself, as is ".." (AF-3.16 forbids it anywhere in a
    # key).
    plain = "".join(
        character if _KEY_SAFE.match(character) and character != "_" else _bytes_key(character)
        for character in value
    )
    return plain.replace("..", "_2E_2E")


def _bytes_key(character: str) -> str:
    return "".join(f"_{byte:02X}" for byte in character.encode())


def _decode_key(part: str) -> str | None:
    if part == _KEY_NULL:
        return None
    return unquote_to_bytes(part.replace("_", "%")).decode(errors="replace")
