"""The pydantic types that all sections of a pipeline file are built from."""

from __future__ import annotations

import os
import posixpath
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)

from tidegate.config.words import (
    NOT_BUILT,
    duration_text,
    interval_text,
    parse_duration,
    parse_interval,
    parse_size,
    suggest,
)
from tidegate.model.partition_value import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_S3_SCHEMES = ("s3://", "s3a://", "s3n://")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Section(BaseModel):
    """A section of the pipeline file: a mapping with fixed keys, frozen once read."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=True,
    )


def words(choices: object, refused: Mapping[str, str] | None = None) -> BeforeValidator:
    """Return a validator for the words of a `Literal`.

    Args:
        choices: the `Literal` whose words are valid.
        refused: words of the specifications that are refused here, with the reason.
    """
    valid = get_args(choices)
    return BeforeValidator(lambda found: read_word(found, valid, refused or {}))


def read_word(found: object, valid: Sequence[str], refused: Mapping[str, str]) -> str:
    """Read a word, with `-` or `_`, in any case; the error says why a known word is refused.

    Raises:
        ValueError: it is not one of the valid ones.
    """
    if not isinstance(found, str):
        msg = f"expected one of {', '.join(valid)}, found {found!r}"
        raise ValueError(msg)  # noqa: TRY004 (pydantic collects ValueError)
    word = found.strip().lower().replace("_", "-")
    for known in valid:
        if word == known.replace("_", "-"):
            return known
    for name, reason in refused.items():
        if word == name.replace("_", "-"):
            msg = f"'{found}' {reason}"
            raise ValueError(msg)
    msg = f"unknown value '{found}'; {suggest(word, valid)}"
    raise ValueError(msg)


def later(*names: str) -> dict[str, str]:
    """Return the reason for refusing words that a later version will know."""
    return dict.fromkeys(names, NOT_BUILT)


_NEARLY_STORE = re.compile(r"s3[an]?(:|//)")
"""How an address of objects begins that misses a character, and would be that of a directory."""

# Some were made before capitals and `_` were refused, and stores of others may still make them.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")


def _not_negative(duration: timedelta) -> timedelta:
    if duration < timedelta(0):
        msg = "expected a duration that is not negative"
        raise ValueError(msg)
    return duration


def _one_character(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        msg = f"expected one ASCII character, found {text!r}"
        raise ValueError(msg)
    return text


def _positive(size: int) -> int:
    if size <= 0:
        msg = f"expected more than 0, found {size}"
        raise ValueError(msg)
    return size


def folder_of(info: ValidationInfo) -> Path | None:
    """Return the folder of the pipeline file that is read; None if there is no file."""
    folder = (info.context or {}).get("folder")
    return Path(folder) if folder else None


def absolute_path(path: str, folder: Path | None = None) -> str:
    """Make a path absolute against a folder (default: the current one).

    Addresses with a scheme and paths with an unresolved `${env:…}` stay as they are; only `file://`
    is removed.
    """
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    if _SCHEME.match(path) or "${env:" in path:
        return path
    return os.path.abspath(Path(folder or Path.cwd()) / Path(path).expanduser())  # noqa: PTH100


def local_path(path: str, folder: Path | None = None, others: str = "") -> str:
    """Make a path absolute, and refuse stores that this version cannot reach."""
    made = absolute_path(path, folder)
    if scheme := _SCHEME.match(made):
        known = f"a path of a mounted file system{others}"
        msg = f"'{path}': {scheme.group(1)}:// {NOT_BUILT}; write {known}"
        raise ValueError(msg)
    return made if made == "/" else made.rstrip("/")


def store_path(path: str, folder: Path | None = None) -> str:
    """Make a path absolute, or read the address of objects: `s3://bucket/prefix`, also `s3a://`."""
    if not is_in_store(path):
        if _NEARLY_STORE.match(path):
            msg = f"expected `s3://bucket/prefix`, found '{path}'"
            raise ValueError(msg)
        return local_path(path, folder, ", or s3://")
    bucket, _, prefix = path.partition("://")[2].partition("/")
    if "@" in bucket:
        msg = "expected `s3://bucket/prefix`, found a user or a password; they belong to `s3`"
        raise ValueError(msg)
    parts = prefix.rstrip("/").split("/")
    if not bucket or (prefix and not all(parts)) or not {".", ".."}.isdisjoint(parts):
        msg = f"expected `s3://bucket/prefix`, found '{path}'"
        raise ValueError(msg)
    if "${env:" not in bucket and not _BUCKET.fullmatch(bucket):
        msg = (
            f"'{bucket}' is no name of a bucket: expected 3 to 63 small letters, digits, dots and "
            "hyphens, with a letter or digit at both ends"
        )
        raise ValueError(msg)
    return f"s3://{bucket}/{'/'.join(parts)}".rstrip("/")


def is_in_store(path: str) -> bool:
    """Return whether a path is the address of objects, by any of the names of its scheme."""
    return path.startswith(_S3_SCHEMES)


def real_place(path: str) -> str:
    """Return a place without links; that of objects has none."""
    return path if _SCHEME.match(path) else os.path.realpath(path)


def lies_inside(path: str, root: str) -> bool:
    """Return whether an absolute path equals another one or is below it, by their text alone."""
    below, above = posixpath.normpath(path), posixpath.normpath(root)
    return below == above or below.startswith(above.rstrip("/") + "/")


def overlap(one: str, other: str) -> bool:
    """Return whether one of two directories is the other, or inside it, by real path."""
    first, second = real_place(one), real_place(other)
    return lies_inside(first, second) or lies_inside(second, first)


def unique(what: str) -> AfterValidator:
    """Refuse a list with a duplicate name."""

    def read(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        doubled = [name for name in names or () if (names or ()).count(name) > 1]
        if doubled:
            msg = f"the {what} '{doubled[0]}' stands there twice"
            raise ValueError(msg)
        return names

    return AfterValidator(read)


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    AfterValidator(_not_negative),
    PlainSerializer(duration_text),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["15m", "6 h", "1d", "0s"]}),
]
"""`15m`, `15 min`, `1 h`, `1d`."""

Character = Annotated[str, AfterValidator(_one_character)]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    AfterValidator(_positive),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["128MiB", "64 KB"]}),
]
"""Bytes: `128MiB`, `128 MB`."""

PartitionLength = Annotated[
    Interval,
    BeforeValidator(parse_interval),
    PlainSerializer(interval_text),
    WithJsonSchema({"type": "string", "examples": ["1 h", "1 d", "1 month"]}),
]

StorePath = Annotated[str, AfterValidator(lambda path, info: store_path(path, folder_of(info)))]
AnyPath = Annotated[str, AfterValidator(lambda path, info: absolute_path(path, folder_of(info)))]
