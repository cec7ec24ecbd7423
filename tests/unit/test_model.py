"""Every value of the vocabulary survives JSON, and says so when it cannot be read."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import strategies as st

import tidegate.model
from strategies import values_of
from tidegate.errors import FormatUnknown
from tidegate.model.wire import Value, canonical, digest, items_digest, text_digest

if TYPE_CHECKING:
    from collections.abc import Iterator


def _modules() -> Iterator[Any]:
    for found in pkgutil.iter_modules(tidegate.model.__path__, "tidegate.model."):
        yield importlib.import_module(found.name)


VALUES = sorted(
    {
        cls
        for module in _modules()
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, Value) and cls is not Value
    },
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
@hypothesis.settings(max_examples=10)
@hypothesis.given(draw=st.data())
def test_any_value_written_as_json_comes_back_equal(cls: type[Value], draw: st.DataObject) -> None:
    value = draw.draw(values_of(cls))

    text = value.to_text()

    assert text == canonical(value.to_json())
    assert cls.from_text(text) == value
    assert cls.from_text(text).to_text() == text


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_any_value_is_frozen(cls: type[Value]) -> None:
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]


@pytest.mark.parametrize("found", [None, 0, 99], ids=["missing", "older", "newer"])
@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_any_value_of_another_format_is_refused(cls: type[Value], found: int | None) -> None:
    with pytest.raises(FormatUnknown, match=f"{cls.__name__}: expected format version"):
        cls.from_json({"format": found})


@hypothesis.given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_canonical_text_does_not_depend_on_the_order_of_keys(raw: dict[str, Any]) -> None:
    backwards = dict(reversed(raw.items()))

    assert canonical(backwards) == canonical(raw)
    assert json.loads(canonical(raw)) == raw


@hypothesis.given(st.lists(st.text() | st.lists(st.integers(), max_size=3), max_size=4))
def test_digest_of_texts_is_that_of_their_objects(raw: list[Any]) -> None:
    assert text_digest(canonical(raw)) == digest(raw)
    assert items_digest(map(canonical, raw)) == digest(raw)
