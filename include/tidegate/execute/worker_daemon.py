"""Start Spark's Python workers from the pyspark that is installed, not from its zipped copy.

Spark puts the copy first. Python compiles all that it imports from there, each time: half a second
before the first worker of a run begins, measured. Run as a module, in place of `pyspark.daemon`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_COPY = ("pyspark", "python", "lib", "pyspark.zip")


def without_copy(path: Sequence[str]) -> list[str]:
    """Leave the copy out if what is found then is the package that it lies in, and so the same."""
    copies = [place for place in path if Path(place).parts[-len(_COPY) :] == _COPY]
    left = [place for place in path if place not in copies]
    found = PathFinder.find_spec("pyspark", left)
    if found is None or found.origin is None:
        return list(path)
    origins = {(Path(place).parents[2] / "__init__.py").resolve() for place in copies}
    return left if {Path(found.origin).resolve()} == origins else list(path)


if __name__ == "__main__":
    sys.path[:] = without_copy(sys.path)
    import_module("pyspark.daemon").manager()
