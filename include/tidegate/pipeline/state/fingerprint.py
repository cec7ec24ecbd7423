"""The versions of the libraries that decide the bytes of a part file.

The same versions write the same bytes (design §5).
"""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRITERS = ("pyarrow", "polars")


@functools.cache
def library_fingerprint() -> Mapping[str, str]:
    """Return the versions that are part of a plan's digest."""
    return {name: version(name) for name in _WRITERS}
