"""Read the types of columns, written as in Spark's DDL: `decimal(10,2)`, `array<string>`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.config.words import suggest

_SYNONYMS = {"integer": "int", "bigint": "long", "real": "float", "bool": "boolean"}
PLAIN = (
    "string",
    "int",
    "long",
    "float",
    "double",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
)
_NESTED = ("array", "struct")
_KNOWN = (*PLAIN, "decimal(P,S)", "array<…>", "struct<name: …>")
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|`[^`]+`|[<>:,()]|\d+)\s*")
_MOST_DIGITS = 38


@dataclass(frozen=True)
class ColumnType:
    """A type: a plain word, a decimal, or one that contains others."""

    word: str
    """One of `PLAIN`, or `decimal`, `array`, `struct`."""
    digits: tuple[int, int] = (0, 0)
    """Precision and scale of a decimal."""
    children: tuple[tuple[str, ColumnType], ...] = ()
    """(name, type) of the fields of a struct; the elements of an array have the name `element`."""

    @property
    def is_nested(self) -> bool:
        """Whether it contains others."""
        return self.word in _NESTED

    def __str__(self) -> str:
        if self.word == "decimal":
            return f"decimal({self.digits[0]},{self.digits[1]})"
        if self.word == "array":
            return f"array<{self.children[0][1]}>"
        if self.word == "struct":
            return (
                f"struct<{', '.join(f'{_quoted(name)}: {kind}' for name, kind in self.children)}>"
            )
        return self.word


def parse_type(text: str) -> ColumnType:
    """Read a type.

    Raises:
        ValueError: it is unknown, or not complete.
    """
    tokens: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            msg = f"'{text}' is no type at '{text[at:]}'"
            raise ValueError(msg)
        tokens.append(match[1])
        at = match.end()
    parser = _Parser(tokens, text)
    found = parser.type()
    if parser.tokens:
        msg = f"'{text}' is no type: '{parser.tokens[0]}' is one too many"
        raise ValueError(msg)
    return found


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


@dataclass
class _Parser:
    tokens: list[str]
    text: str

    def type(self) -> ColumnType:
        word = self._next().lower()
        word = _SYNONYMS.get(word, word)
        if word in PLAIN:
            return ColumnType(word)
        if word in {"decimal", "numeric"}:
            return self._decimal()
        if word == "array":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return ColumnType("array", children=(("element", element),))
        if word == "struct":
            return self._struct()
        msg = f"unknown type '{self.text}'; {suggest(word, _KNOWN)}"
        raise ValueError(msg)

    def _decimal(self) -> ColumnType:
        self._expect("(")
        precision = self._number()
        self._expect(",")
        scale = self._number()
        self._expect(")")
        if not (1 <= precision <= _MOST_DIGITS and scale <= precision):
            msg = (
                f"'{self.text}': expected 1 to {_MOST_DIGITS} digits, and no more behind the point"
            )
            raise ValueError(msg)
        return ColumnType("decimal", (precision, scale))

    def _struct(self) -> ColumnType:
        self._expect("<")
        children: list[tuple[str, ColumnType]] = []
        while not children or self._follows(","):
            name = self._next().strip("`")
            if name in dict(children):
                msg = f"'{self.text}': the field '{name}' stands there twice"
                raise ValueError(msg)
            self._follows(":")
            children.append((name, self.type()))
        self._expect(">")
        return ColumnType("struct", children=tuple(children))

    def _follows(self, token: str) -> bool:
        if self.tokens[:1] != [token]:
            return False
        self.tokens.pop(0)
        return True

    def _expect(self, token: str) -> None:
        if not self._follows(token):
            found = f"'{self.tokens[0]}'" if self.tokens else "the end"
            msg = f"'{self.text}' is no type: expected '{token}', found {found}"
            raise ValueError(msg)

    def _number(self) -> int:
        found = self._next()
        if not found.isdecimal():
            msg = f"'{self.text}' is no type: expected a number, found '{found}'"
            raise ValueError(msg)
        return int(found)

    def _next(self) -> str:
        if not self.tokens:
            msg = f"'{self.text}' is no complete type"
            raise ValueError(msg)
        return self.tokens.pop(0)
