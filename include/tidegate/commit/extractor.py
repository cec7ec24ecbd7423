"""A reader of partition times of the user's own: `module:Class`, built with texts (PC-T18)."""

from __future__ import annotations

import functools
import importlib
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, cast

from tidegate.errors import ExtractorUnknown

if TYPE_CHECKING:
    from collections.abc import Sequence


class Extractor(Protocol):
    """Runs on: any process that loads or evaluates. Called: often, for any partition.

    Failure: a partition whose time it cannot return waits; the others go on.
    """

    def extract(self, keys: Sequence[str], values: Sequence[str]) -> object:
        """Return the local time that the values name, a `datetime` without a zone."""


class NotExtracted(ValueError):
    """A class of the user's own returned no local time; says why."""


@functools.lru_cache(maxsize=64)
def load_extractor(reference: str, parameters: tuple[str, ...]) -> Extractor:
    """Build the reader that a pipeline file names.

    Raises:
        ExtractorUnknown: the module or class does not exist or raises, or it has no `extract`.
    """
    module_name, _, class_name = reference.partition(":")
    try:
        extractor = getattr(importlib.import_module(module_name), class_name)(*parameters)
    except (Exception, SystemExit) as broken:
        # A user's module may raise anything.
        problem = f"{type(broken).__name__}: {broken}"
        raise ExtractorUnknown(extractor=reference, problem=problem) from broken
    if not callable(getattr(extractor, "extract", None)):
        problem = "it has no method extract(keys, values)"
        raise ExtractorUnknown(extractor=reference, problem=problem)
    return cast("Extractor", extractor)


def extracted(extractor: Extractor, keys: Sequence[str], values: Sequence[str]) -> datetime:
    """Return the local time that a reader finds.

    Raises:
        NotExtracted: it raises, or returns something else.
    """
    try:
        found = extractor.extract(keys, values)
    except (Exception, SystemExit) as broken:
        # Other partitions go on, whatever it raises (PC-T16).
        msg = f"{type(extractor).__name__} raised {type(broken).__name__}: {broken}"
        raise NotExtracted(msg) from broken
    if not isinstance(found, datetime) or found.tzinfo is not None:
        msg = f"{type(extractor).__name__} returned {found!r}, and no time without a zone"
        raise NotExtracted(msg)
    return found
