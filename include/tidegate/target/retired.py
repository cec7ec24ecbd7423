"""Record in a target that a pipeline ended, so that what it published stays and others may go on.

Its partitions belong to nobody: another pipeline of the target publishes to them only after they
were taken away, because it does not know their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.model.wire import Value, pretty
from tidegate.stored import as_stored, read_content

if TYPE_CHECKING:
    from tidegate.storage import Storage

_BEGINS, _ENDS = ".tidegate-retired-", ".record"
"""The ending is that of no data, whatever the pipeline is called: readers are given patterns."""


@dataclass(frozen=True)
class Retirement(Value):
    """The end of one pipeline."""

    pipeline: str
    ledger: str
    by: str
    at: datetime
    partitions: Mapping[str, int]
    """Path of each published partition → its last revision."""


def retirements(storage: Storage, target: str) -> tuple[Retirement, ...]:
    """Return the pipelines that ended in a target, in order of their names."""
    names = [name for name in storage.list_names(target) if is_retirement(name)]
    return tuple(_read(storage, f"{target}/{name}") for name in names)


def retirement_of(storage: Storage, target: str, pipeline: str) -> Retirement | None:
    """Return when a pipeline ended in a target; None if it did not."""
    path = _file(target, pipeline)
    return _read(storage, path) if storage.exists(path) else None


def record_retirement(storage: Storage, target: str, ended: Retirement, scratch: str) -> Retirement:
    """Write down that a pipeline ended, once; return what was written first."""
    path = _file(target, ended.pipeline)
    storage.write_once(path, pretty(ended.to_json()), scratch)
    return _read(storage, path)


def is_retirement(name: str) -> bool:
    """Return whether a path below a target is that of a record of a retirement."""
    return name.startswith(_BEGINS) and name.endswith(_ENDS)


def _file(target: str, pipeline: str) -> str:
    return f"{target}/{_BEGINS}{pipeline}{_ENDS}"


def _read(storage: Storage, path: str) -> Retirement:
    content = read_content(storage, path, _remedy)
    return as_stored(path, lambda: Retirement.from_text(content), _remedy)


def _remedy() -> str:
    return "put it back from a copy; it names partitions that no pipeline may write into"
