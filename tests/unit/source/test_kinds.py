"""A kind of source describes itself: options, reading, errors; nobody else asks for it."""

from __future__ import annotations

import ast
import functools
import inspect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidegate.errors
from tidegate.config.sources import KINDS as OPTIONS
from tidegate.config.sources import SourceConfig
from tidegate.errors import TidegateError
from tidegate.source import KINDS as MODULES
from tidegate.source import SourceKind

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
CODE = [ROOT / name for name in ("include/tidegate", "plugins", "jobs", "dags")]
ROOMS = {
    kind: (
        f"tidegate.source.{kind}",
        f"tidegate.config.sources.{kind}",
        f"tidegate.errors.sources.{kind}",
    )
    for kind in MODULES
}
REGISTRIES = {"tidegate.config", "tidegate.config.sources", "tidegate.errors.sources"}
"""They gather what all kinds have; `tidegate.source` names the modules of the kinds as texts."""
RAISED_ELSEWHERE = {
    # By what reads and plans changes, whichever kind they come from; only Iceberg has some so far,
    # and everything that it refuses is of one family (ICE-2.24).
    *("ChangelogInconsistent", "IdentifierNotUnique", "StatsMissing"),
    # By what reads a pipeline file; a start without a side is known by its name in Iceberg.
    "AmbiguousStart",
}
every_kind = pytest.mark.parametrize("kind", sorted(MODULES))


@functools.cache
def modules() -> list[tuple[str, ast.Module]]:
    """Read every module of the project, by its name."""
    found = []
    for root in CODE:
        for file in sorted(root.rglob("*.py")):
            place = file.relative_to(root.parent).with_suffix("").parts
            name = ".".join(part for part in place if part != "__init__")
            found.append((name, ast.parse(file.read_text("utf-8"), str(file))))
    return found


def is_at_home(module: str, kind: str) -> bool:
    """Tell whether a module stands in a room of a kind."""
    return any(module == room or module.startswith(f"{room}.") for room in ROOMS[kind])


def imported(tree: ast.AST) -> Iterator[str]:
    """Name what a module imports, as modules; a class stands below its module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def kinds_compared(tree: ast.AST) -> Iterator[str]:
    """Find comparisons of something called `kind` with a word of a kind of source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        else:
            continue
        said = {
            leaf.value
            for side in sides
            for leaf in ast.walk(side)
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
        }
        if any(_is_called_kind(side) for side in sides):
            yield from said & MODULES.keys()


def _is_called_kind(side: ast.AST) -> bool:
    match side:
        case ast.Attribute(attr="kind") | ast.Name(id="kind"):
            return True
        case ast.Subscript(slice=ast.Constant(value="kind")):
            return True
        case ast.Call(args=[ast.Constant(value="kind"), *_]):
            return True
    return False


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("config.source.kind == 'iceberg'", ["iceberg"]),
        ("'files' != kind", ["files"]),
        ("mapping['kind'] in {'files', 'other'}", ["files"]),
        ("mapping.get('kind') == 'files'", ["files"]),
        ("match config.kind:\n    case 'iceberg': pass", ["iceberg"]),
        ("start.kind == 'full'", []),
        ("name == 'files'", []),
        ("{'kind': 'files'}", []),
    ],
)
def test_comparison_with_a_kind_is_found(code: str, found: list[str]) -> None:
    assert list(kinds_compared(ast.parse(code))) == found


def test_registries_know_the_same_kinds() -> None:
    assert OPTIONS.keys() == MODULES.keys()


@every_kind
def test_kind_has_options_of_its_own(kind: str) -> None:
    options = OPTIONS[kind]

    assert issubclass(options, SourceConfig)
    assert options.__module__.startswith(f"tidegate.config.sources.{kind}")
    assert not inspect.isabstract(options)
    assert options.outside_plans <= {
        field.alias or name for name, field in options.model_fields.items()
    }


@every_kind
def test_kind_has_the_functions_of_every_kind(kind: str) -> None:
    module = import_module(MODULES[kind])
    wanted = [name for name, _ in inspect.getmembers(SourceKind, inspect.isfunction)]

    assert "open_source" in wanted
    for name in (name for name in wanted if not name.startswith("_")):
        given = inspect.signature(getattr(module, name)).parameters
        asked = [*inspect.signature(getattr(SourceKind, name)).parameters][1:]
        assert list(given) == asked
        assert given["config"].annotation == OPTIONS[kind].__name__


@every_kind
def test_kind_has_errors_of_its_own(kind: str) -> None:
    room = f"tidegate.errors.sources.{kind}"
    import_module(room)
    own = [error for error in TidegateError._known.values() if error.__module__.startswith(room)]

    assert own
    assert all(getattr(tidegate.errors, error.__name__) is error for error in own)


def test_nobody_outside_its_rooms_asks_for_a_kind() -> None:
    asking = {
        (module, kind)
        for module, tree in modules()
        for kind in kinds_compared(tree)
        if not is_at_home(module, kind)
    }

    assert asking == set()


def test_nobody_outside_imports_the_rooms_of_a_kind() -> None:
    importing = {
        module
        for module, tree in modules()
        for name in imported(tree)
        for kind in MODULES
        if is_at_home(name, kind) and not is_at_home(module, kind)
    }

    assert importing <= REGISTRIES


def test_nobody_outside_raises_or_catches_the_errors_of_a_kind() -> None:
    own = {
        f"tidegate.errors.{name}": kind
        for name, error in TidegateError._known.items()
        for kind in MODULES
        if is_at_home(error.__module__, kind)
    }

    using = {
        name.rpartition(".")[2]
        for module, tree in modules()
        for name in imported(tree)
        if name in own and not is_at_home(module, own[name])
    }

    assert using == RAISED_ELSEWHERE
