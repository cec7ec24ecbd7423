"""Imports that the garbage collector does not interrupt leave it as they found it."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest

from tidegate.importing import import_at_rest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=[True, False], ids=["enabled", "disabled"])
def was_enabled(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    if not request.param:
        gc.disable()
    yield request.param
    if before:
        gc.enable()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "a_module.py").write_text("import gc\nenabled = gc.isenabled()\n")
    (tmp_path / "a_broken_one.py").write_text("raise ZeroDivisionError\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "a_module"
    sys.modules.pop("a_module", None)


def test_collector_rests_while_a_module_is_imported(module: str, *, was_enabled: bool) -> None:
    found = import_at_rest(module)

    assert not found.enabled
    assert gc.isenabled() is was_enabled
    assert import_at_rest(module) is found


@pytest.mark.usefixtures("module")
def test_collector_goes_on_after_a_module_that_is_broken(*, was_enabled: bool) -> None:
    with pytest.raises(ZeroDivisionError):
        import_at_rest("a_broken_one")

    assert gc.isenabled() is was_enabled
