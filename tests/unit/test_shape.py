"""Every module has a unit test file that mirrors it, or a reason why it needs none."""

from __future__ import annotations

import importlib.util
import re
import sys
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
    sys.modules["shape"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


shape = _load()
PATTERNS = [pattern for reason in shape.REASONS for pattern in reason.modules]
NAMED_TESTS = sorted(
    {it for reason in shape.REASONS for it in re.findall(r"tests/[\w/.]+\w", reason.why)}
)


def test_modules_have_a_test_file_or_a_reason() -> None:
    lacking = [
        shape.module_name(path)
        for path in shape.without_test_file()
        if shape.reason_for(path) is None
    ]

    assert lacking == [], "give each a unit test file that mirrors it, or REASONS a reason"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_reason_names_modules_that_have_no_test_file(pattern: str) -> None:
    without = [shape.module_name(path) for path in shape.without_test_file()]

    found = [name for name in without if fnmatchcase(name, pattern)]

    assert found, f"{pattern} is gone or has a test file by now: take it out of REASONS"


def test_module_has_one_reason_only() -> None:
    without = [shape.module_name(path) for path in shape.without_test_file()]

    several = {
        name: found
        for name in without
        if len(found := [it for it in PATTERNS if fnmatchcase(name, it)]) > 1
    }

    assert several == {}


@pytest.mark.parametrize("path", NAMED_TESTS)
def test_reason_names_tests_that_are_there(path: str) -> None:
    assert (ROOT / path).exists()
