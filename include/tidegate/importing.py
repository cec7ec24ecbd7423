"""Import large modules for less: without looking for garbage meanwhile."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let the garbage collector rest while modules are imported.

    What they bring stays. To find that out again and again is a fifth of an import, measured.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def import_at_rest(name: str) -> ModuleType:
    """Import a module, or return it where it is there already."""
    if name in sys.modules:
        return import_module(name)
    with collector_at_rest():
        return import_module(name)
