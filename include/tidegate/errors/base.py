"""The root of all errors: values as attributes, a message made from them, Terminal or Transient."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.errors.commands import filled

if TYPE_CHECKING:
    from collections.abc import Mapping


class TidegateError(Exception):
    """An error that Tidegate knows by name.

    A subclass annotates its values and defines `template`, a format string over them that says what
    was expected, what was found and what to do. Errors keep their values when they are pickled or
    written as JSON, so that the error of a Spark driver is raised again in the task that submitted
    it (AF-4.16).
    """

    template: ClassVar[str] = ""
    _known: ClassVar[dict[str, type[TidegateError]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        TidegateError._known[cls.__name__] = cls

    def __init__(self, **values: Any) -> None:
        expected = self.value_names()
        if set(values) != set(expected):
            msg = f"{type(self).__name__} takes the values {expected}, not {sorted(values)}"
            raise TypeError(msg)
        self.values = values
        self.__dict__.update(values)
        super().__init__(filled(self.template, values))

    @classmethod
    def value_names(cls) -> list[str]:
        """Return the names of the values that this error carries."""
        names: list[str] = []
        for parent in reversed(cls.__mro__):
            names += [
                name
                for name, hint in inspect.get_annotations(parent).items()
                if not str(hint).startswith(("ClassVar", "typing.ClassVar"))
            ]
        return names

    @property
    def code(self) -> str:
        """The stable name of the error."""
        return type(self).__name__

    def to_json(self) -> dict[str, Any]:
        """Return code, message and values, for a file or a log."""
        return {"code": self.code, "message": str(self), "values": dict(self.values)}

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> TidegateError:
        """Build the error again that `to_json` described."""
        return TidegateError._known[raw["code"]](**raw["values"])

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.values))


def _rebuild(cls: type[TidegateError], values: dict[str, Any]) -> TidegateError:
    return cls(**values)


class TerminalError(TidegateError):
    """An error that a retry cannot resolve: Airflow fails the task at once."""


class TransientError(TidegateError):
    """An error that may be gone later: Airflow retries the task."""
