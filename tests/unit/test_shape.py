"""Every module has a unit test file that mirrors it, or a reason why it needs none."""

from __future__ import annotations

import importlib.util
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shape", ROOT / "tools" / "shape.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


shape = _load()
WITHOUT = [shape.module_name(path) for path in shape.without_test_file()]
PATTERNS = [pattern for patterns in shape.REASONS.values() for pattern in patterns]
NAMED = sorted({path for why in shape.REASONS for path in re.findall(r"tests/[\w/.]+\w", why)})


def test_module_has_a_test_file_or_a_reason() -> None:
    lacking = [module for module in WITHOUT if not shape.reasons_for(module)]

    assert lacking == [], "give each a unit test file that mirrors it, or a reason in REASONS"


def test_module_has_one_reason_only() -> None:
    assert [module for module in WITHOUT if len(shape.reasons_for(module)) > 1] == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_reason_is_of_modules_that_have_no_test_file(pattern: str) -> None:
    found = [module for module in WITHOUT if fnmatchcase(module, pattern)]

    assert found, f"{pattern} is gone or has a test file by now: take it out of REASONS"


@pytest.mark.parametrize("path", NAMED)
def test_reason_names_tests_that_are_there(path: str) -> None:
    assert (ROOT / path).exists()
