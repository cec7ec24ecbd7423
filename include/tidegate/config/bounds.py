"""The points of a source's history that a pipeline file may name: where to start, where to end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, WithJsonSchema, model_serializer, model_validator

from tidegate.config.section import Section
from tidegate.config.words import AmbiguousSide, suggest
from tidegate.model.instant import aware_time, time_in_zone

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

StartKind = Literal["full", "earliest", "latest", "latest_inclusive", "after", "from"]

_WORDS = ("full", "earliest", "latest", "latest_inclusive")
_OTHER_NAMES = {"full_then_incremental": "full", "latest_exclusive": "latest"}
"""The words of ICE-2.11 for the same starts."""
_ZONELESS_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*")
"""A date alone is none: tags may be named by dates."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _point(found: Any) -> str:
    """Read a snapshot id, an ISO time or a tag name as text."""
    if isinstance(found, date | datetime):
        return found.isoformat()
    if isinstance(found, bool) or not isinstance(found, str | int) or not str(found).strip():
        msg = f"expected a snapshot id, an ISO time or a tag name, found {found!r}"
        raise ValueError(msg)
    return str(found).strip()


def _with_zone(text: str) -> str:
    """Return a time in UTC if it names no zone, and other text unchanged."""
    try:
        moment = None if text.isdecimal() else datetime.fromisoformat(text)
    except ValueError:
        moment = None
    return text if moment is None or moment.tzinfo else f"{moment.isoformat()}Z"


def _epoch_ms(found: Any) -> int:
    """Read an ISO time that names its zone, or milliseconds since 1970."""
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    if isinstance(found, str) and found.strip().isdecimal():
        return int(found)
    try:
        moment = found if isinstance(found, datetime) else datetime.fromisoformat(str(found))
    except ValueError:
        moment = None
    if moment is None:
        msg = (
            f"expected an ISO time such as '2026-01-31T12:00:00Z', or milliseconds since 1970; "
            f"found {found!r}"
        )
        raise ValueError(msg)
    if moment.tzinfo is None:
        msg = f"'{found}' does not name its zone; write '{moment.isoformat()}Z' for UTC"
        raise ValueError(msg)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


Point = Annotated[
    str, BeforeValidator(_point), WithJsonSchema({"type": ["string", "integer"], "minLength": 1})
]
"""A snapshot id, an ISO time with a zone, or a tag name."""
EpochMillis = Annotated[
    int,
    BeforeValidator(_epoch_ms),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["2026-01-31T12:00:00Z"]}),
]
"""A time in milliseconds since 1970, written as an ISO time or as that number."""


class Start(Section):
    """Where the first window begins: a word, or an instant with its side (`after` or `from`)."""

    kind: StartKind = "full"
    value: str | None = None
    """The snapshot id, ISO time or tag after which, or from which on, changes are read."""

    @property
    def time(self) -> datetime | None:
        """The time that it names; None for anything else, including a time without a zone."""
        return aware_time(self.value) if self.value is not None else None

    def in_zone(self, zone: str) -> Self:
        """Return the start with its zone, if it is a time that names none."""
        if self.value is None or not _ZONELESS_TIME.fullmatch(self.value):
            return self
        moment = time_in_zone(self.value, zone)
        return self if moment is None else self.model_copy(update={"value": moment.isoformat()})

    @model_validator(mode="before")
    @classmethod
    def _read(cls, found: Any) -> Any:
        if isinstance(found, Start):
            return found
        if isinstance(found, Mapping):
            if len(found) != 1 or next(iter(found)) not in {"after", "from"}:
                msg = "expected {after: INSTANT} or {from: INSTANT}"
                raise ValueError(msg)
            kind, value = next(iter(found.items()))
            return {"kind": kind, "value": _point(value)}
        word = str(found).strip().lower().replace("-", "_")
        word = _OTHER_NAMES.get(word, word)
        if word in _WORDS:
            return {"kind": word}
        if re.fullmatch(r"[\d:T.Z+ -]+", str(found)):
            raise AmbiguousSide(str(found), _with_zone(str(found)))
        near = suggest(word, (*_WORDS, "{after: X}", "{from: X}"))
        msg = f"unknown value '{found}'; {near}"
        raise ValueError(msg)

    @model_serializer
    def _write(self) -> str | dict[str, str]:
        return self.kind if self.value is None else {self.kind: self.value}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the forms in which it can be written."""
        del core, handler
        sides = [
            {
                "type": "object",
                "properties": {side: {"type": ["string", "integer"]}},
                "required": [side],
                "additionalProperties": False,
            }
            for side in ("after", "from")
        ]
        return {
            "anyOf": [{"enum": [*_WORDS, *_OTHER_NAMES]}, *sides],
            "default": "full",
            "description": cls.__doc__,
        }
