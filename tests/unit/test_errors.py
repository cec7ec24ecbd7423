"""Every condition with a name: its values cross processes and stand in its message."""

from __future__ import annotations

import inspect
import json
import pickle
import string
import typing

import pytest

import tidegate.errors
from tidegate.errors import (
    SourceFileDamaged,
    TerminalError,
    TidegateError,
    TransientError,
    WindowNotFound,
)

ROOTS = {TidegateError, TerminalError, TransientError}
ERRORS = sorted(
    {
        cls
        for _, cls in inspect.getmembers(tidegate.errors, inspect.isclass)
        if issubclass(cls, TidegateError) and cls.template
    },
    key=lambda cls: cls.__name__,
)
every_error = pytest.mark.parametrize("cls", ERRORS, ids=lambda cls: cls.__name__)


def make(cls: type[TidegateError]) -> TidegateError:
    """Make the error with a value of the right type, and its own, for each name."""
    hints = typing.get_type_hints(cls)
    return cls(
        **{
            name: 1000 + number if hints[name] is int else f"<{name}>"
            for number, name in enumerate(cls.value_names())
        }
    )


@every_error
def test_any_error_pickled_comes_back_with_its_values(cls: type[TidegateError]) -> None:
    error = make(cls)

    again = pickle.loads(pickle.dumps(error))

    assert type(again) is cls
    assert again.values == error.values
    assert str(again) == str(error)


@every_error
def test_any_error_written_as_json_comes_back_with_its_values(cls: type[TidegateError]) -> None:
    error = make(cls)

    again = TidegateError.from_json(json.loads(json.dumps(error.to_json())))

    assert type(again) is cls
    assert again.values == error.values


@every_error
def test_any_message_names_every_value(cls: type[TidegateError]) -> None:
    in_template = {name for _, name, _, _ in string.Formatter().parse(cls.template) if name}
    error = make(cls)

    assert in_template == set(cls.value_names())
    assert all(str(value) in str(error) for value in error.values.values())


@every_error
def test_any_error_is_either_terminal_or_transient(cls: type[TidegateError]) -> None:
    assert issubclass(cls, TerminalError) != issubclass(cls, TransientError)


@every_error
def test_any_error_says_what_condition_it_is(cls: type[TidegateError]) -> None:
    assert cls.__doc__
    assert cls.__doc__ != cls.__base__.__doc__


def test_errors_without_a_template_are_only_families() -> None:
    families = {
        cls for cls in TidegateError._known.values() if not cls.template and cls not in ROOTS
    }

    assert all(cls.__subclasses__() for cls in families)


@pytest.mark.parametrize(
    "values",
    [{}, {"pipeline": "orders"}, {"pipeline": "orders", "sequence": 1, "extra": 2}],
    ids=["none", "one-missing", "one-too-many"],
)
def test_error_raised_with_other_values_names_the_expected(values: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"takes the values \['pipeline', 'sequence'\]"):
        WindowNotFound(**values)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("no footer.", "no footer. Restore"),
        ("no footer", "no footer. Restore"),
        ("'PAR1'.", "'PAR1'. Restore"),
        ("below /lake/..", "below /lake/... Restore"),
        ("cut off …", "cut off …. Restore"),
    ],
)
def test_message_has_one_stop_where_a_value_ends_with_one(problem: str, told: str) -> None:
    said = str(SourceFileDamaged(path="a.parquet", problem=problem))

    assert f"cannot be read: {told} the file" in said
