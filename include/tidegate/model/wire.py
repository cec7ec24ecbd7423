"""Turn frozen values into JSON and back.

The same bytes for the same value. Reads and writes no file.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Self

from tidegate.errors import FormatUnknown

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


SPARSE = "sparse"
"""Key of a field's metadata: left out of the JSON while it is None, so that values written before
the field was known compare equal to the same values today."""


class Value:
    """A frozen dataclass that crosses processes as JSON.

    The outermost object carries `format`, the version of its shape; nested values do not repeat it.
    """

    FORMAT: ClassVar[int] = 1

    def to_json(self) -> dict[str, Any]:
        """Give the value as JSON-ready objects with its format version."""
        return {"format": self.FORMAT, **_encode_fields(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Build the value from what `to_json` gave.

        Raises:
            FormatUnknown: the format version is not the one that this version of Tidegate reads.
        """
        if raw.get("format") != cls.FORMAT:
            raise FormatUnknown(
                kind=cls.__name__, found=str(raw.get("format")), expected=cls.FORMAT
            )
        return _decode(cls, {key: item for key, item in raw.items() if key != "format"})  # type: ignore[no-any-return]

    def to_text(self) -> str:
        """Give the value as canonical JSON text: sorted keys, no blanks."""
        return canonical(self.to_json())

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Build the value from `to_text`, or from the same JSON laid out otherwise."""
        return cls.from_json(json.loads(text))


def canonical(raw: Any) -> str:
    """Write JSON-ready objects so that equal objects give equal text."""
    return json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pretty(raw: Any) -> bytes:
    """Write JSON-ready objects for people: indented, sorted, one newline at the end, UTF-8."""
    return (json.dumps(raw, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def digest(raw: Any, length: int = 16) -> str:
    """Hash JSON-ready objects to `length` hexadecimal digits of SHA-256."""
    return hashlib.sha256(canonical(raw).encode()).hexdigest()[:length]


def instant_text(moment: datetime) -> str:
    """Write an aware moment in UTC with microseconds; text order is time order."""
    # Not strftime: on Linux it writes the year 1 with one digit.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_instant_text(text: str) -> datetime:
    """Read what `instant_text` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    return _encode_moment(value)


def _encode_moment(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant_text(value)
    return value.total_seconds() if isinstance(value, timedelta) else value


def _encode_fields(value: Any) -> dict[str, Any]:
    found = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {
        field.name: _encode(item)
        for field, item in found.items()
        if item is not None or not field.metadata.get(SPARSE)
    }


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(hint: Any, raw: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        return _decode_optional(hint, raw)
    if origin is tuple:
        return _decode_tuple(typing.get_args(hint), raw)
    if origin is not None and issubclass(origin, Mapping):
        inner = typing.get_args(hint)[1]
        return {key: _decode(inner, item) for key, item in raw.items()}
    if isinstance(hint, type):
        return _decode_plain(hint, raw)
    return raw


def _decode_optional(hint: Any, raw: Any) -> Any:
    if raw is None:
        return None
    inner = [item for item in typing.get_args(hint) if item is not type(None)]
    return _decode(inner[0], raw) if len(inner) == 1 else raw


def _decode_tuple(arguments: tuple[Any, ...], raw: list[Any]) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], item) for item in raw)
    return tuple(_decode(inner, item) for inner, item in zip(arguments, raw, strict=True))


def _decode_plain(cls: type, raw: Any) -> Any:
    if dataclasses.is_dataclass(cls):
        hints = _hints(cls)
        return cls(**{key: _decode(hints[key], item) for key, item in raw.items()})
    if issubclass(cls, Enum):
        return cls(raw)
    if cls is datetime:
        return parse_instant_text(raw)
    if cls is timedelta:
        return timedelta(seconds=raw)
    return raw
