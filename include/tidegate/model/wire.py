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
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Self

from tidegate.errors import FormatUnknown
from tidegate.model.texts import TextField, Texts

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


SPARSE = "sparse"
"""A key of field metadata: the field is left out of the JSON while it is None, so that values
written before the field existed compare equal to the same values today."""


class Value:
    """A frozen dataclass that crosses processes as JSON.

    The outermost object has `format`, the version of its layout; nested values do not repeat it.
    """

    FORMAT: ClassVar[int] = 1
    KEEPS_TEXT: ClassVar[bool] = False
    """Whether a value caches its text, because it occurs in many others."""

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON-ready objects with its format version."""
        return {"format": self.FORMAT, **_encode_fields(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Build the value from the result of `to_json`.

        Raises:
            FormatUnknown: the format version is not the one that this version of Tidegate reads.
        """
        if raw.get("format") != cls.FORMAT:
            raise FormatUnknown(
                kind=cls.__name__, found=str(raw.get("format")), expected=cls.FORMAT
            )
        return _decode(cls, {key: item for key, item in raw.items() if key != "format"})  # type: ignore[no-any-return]

    def to_text(self) -> str:
        """Return the value as canonical JSON text: sorted keys, no blanks.

        The same as the text of `to_json`, without building its objects, because plans have hundreds
        of thousands of lines.
        """
        cls: type = type(self)
        return _outermost_text(cls)(self)

    def inner_text(self) -> str:
        """Return the text of the value inside another one, which has no format version."""
        return _TEXTS[type(self)](self)

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Build the value from `to_text`, or from the same JSON in another layout."""
        return cls.from_json(json.loads(text))


def canonical(raw: Any) -> str:
    """Write JSON-ready objects so that equal objects give equal text."""
    return json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pretty(raw: Any) -> bytes:
    """Write JSON-ready objects for people: indented, sorted, one newline at the end, UTF-8."""
    return (json.dumps(raw, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def digest(raw: Any, length: int = 16) -> str:
    """Hash JSON-ready objects to `length` hexadecimal digits of SHA-256."""
    return text_digest(canonical(raw), length)


def text_digest(text: str, length: int = 16) -> str:
    """Hash canonical text, with the same result as `digest` of its objects."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def items_digest(texts: Iterable[str], length: int = 16) -> str:
    """Hash the canonical texts of a list's items one by one, with the same result as `digest`."""
    found = hashlib.sha256(b"[")
    for place, text in enumerate(texts):
        found.update(f",{text}".encode() if place else text.encode())
    found.update(b"]")
    return found.hexdigest()[:length]


def instant_text(moment: datetime) -> str:
    """Write an aware moment in UTC with microseconds; text order is time order."""
    # Not strftime, which writes the year 1 with one digit on Linux. Not isoformat alone, which
    # takes twice as long, mostly for the zone.
    utc = moment.astimezone(UTC)
    return f"{date.isoformat(utc)}T{utc.time().isoformat('microseconds')}Z"


def parse_instant_text(text: str) -> datetime:
    """Read the result of `instant_text`."""
    if not text.endswith("Z"):
        msg = f"expected a time in UTC such as 2026-01-31T12:00:00.000000Z, found {text!r}"
        raise ValueError(msg)
    return datetime.fromisoformat(text)


# Plans have hundreds of thousands of values, so what a type needs is computed once.
_AS_IT_IS = frozenset({str, int, float, bool, type(None)})


def _encode(value: Any) -> Any:
    kind: type = type(value)
    return value if kind in _AS_IT_IS else _encoder(kind)(value)


@functools.cache
def _encoder(kind: type) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(kind):
        return _encode_fields
    found: Mapping[type, Callable[[Any], Any]] = {
        Enum: lambda value: value.value,
        tuple: _encode_items,
        list: _encode_items,
        Mapping: _encode_mapping,
        datetime: instant_text,
        timedelta: timedelta.total_seconds,
    }
    return next((encode for base, encode in found.items() if issubclass(kind, base)), _same)


def _encode_items(items: Iterable[Any]) -> list[Any]:
    return [_encode(item) for item in items]


def _encode_mapping(found: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _encode(item) for key, item in found.items()}


def _encode_fields(value: Any) -> dict[str, Any]:
    cls: type = type(value)
    return {
        name: _encode(item)
        for name, sparse in _fields(cls)
        if (item := getattr(value, name)) is not None or not sparse
    }


@functools.cache
def _fields(cls: type) -> tuple[tuple[str, bool], ...]:
    return tuple(
        (field.name, bool(field.metadata.get(SPARSE))) for field in dataclasses.fields(cls)
    )


def _same(value: Any) -> Any:
    return value


_leaf_text = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    check_circular=False,
    default=_encode,
).encode
_TEXTS = Texts(_leaf_text, _fields, {datetime: lambda moment: f'"{instant_text(moment)}"'})


@functools.cache
def _outermost_text(cls: type) -> Callable[[Any], str]:
    # `FORMAT` is found on the value like its fields.
    return _TEXTS.of_object(cls, TextField.of("format", "FORMAT"))


def _decode(hint: Any, raw: Any) -> Any:
    return _decoder(hint)(raw)


@functools.cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType or origin is typing.Union:
        inner = [item for item in arguments if item is not type(None)]
        return _optional(_decoder(inner[0])) if len(inner) == 1 else _same
    if origin is tuple:
        return _tuple_decoder(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(_decoder(arguments[1]))
    return _plain_decoder(hint) if isinstance(hint, type) else _same


def _optional(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda raw: None if raw is None else decode(raw)


def _tuple_decoder(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        decode = _decoder(arguments[0])
        return lambda raw: tuple(raw) if decode is _same else tuple(map(decode, raw))
    decoders = tuple(map(_decoder, arguments))
    return lambda raw: tuple(decode(item) for decode, item in zip(decoders, raw, strict=True))


def _mapping_decoder(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if decode is _same:
        return dict
    return lambda raw: {key: decode(item) for key, item in raw.items()}


def _plain_decoder(cls: type) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(cls):
        # Looked up with the first value, because a value may contain values of its own class.
        return lambda raw: cls(
            **{key: decode(item) for key, decode, item in _with_decoders(cls, raw)}
        )
    if issubclass(cls, Enum):
        return cls
    if cls is datetime:
        return parse_instant_text
    return _seconds if cls is timedelta else _same


def _with_decoders(
    cls: type, raw: Mapping[str, Any]
) -> Iterator[tuple[str, Callable[[Any], Any], Any]]:
    decoders = _field_decoders(cls)
    for key, item in raw.items():
        yield key, decoders[key], item


@functools.cache
def _field_decoders(cls: type) -> dict[str, Callable[[Any], Any]]:
    hints = typing.get_type_hints(cls)
    return {name: _decoder(hints[name]) for name, _ in _fields(cls)}


def _seconds(raw: float) -> timedelta:
    return timedelta(seconds=raw)
