"""The files of a window's plan in the work directory; a light module, as every task imports it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, overload

from tidegate.model.plan import ScanPlan, Split
from tidegate.pipeline.state.delta_table import DeltaTable, StoredDeltas
from tidegate.stage import layout
from tidegate.stage.stored import as_stored, damaged, read_content, read_stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.storage import Storage

_LINES_PER_BLOCK = 256


def has_plan(storage: Storage, uri: str) -> bool:
    """Return whether all files of a plan exist."""
    return all(storage.exists(path) for path in (layout.plan_file(uri), layout.splits_file(uri)))


def announces_in(storage: Storage, uri: str) -> list[str]:
    """Return the files in a plan's directory that were written by its announces."""
    return [name for name in storage.list_names(uri) if layout.is_sealed_file(name)]


def read_plan(storage: Storage, uri: str) -> ScanPlan:
    """Read the plan of a plan directory."""
    return read_stored(storage, layout.plan_file(uri), ScanPlan)


class StoredSplits(Sequence[Split]):
    """The splits of a plan, each read on access: a task needs one of many thousands."""

    def __init__(self, path: str, lines: Sequence[bytes], deltas: StoredDeltas) -> None:
        self._path = path
        self._lines = lines
        self._deltas = deltas

    def __len__(self) -> int:
        """Return the number of splits."""
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> StoredSplits: ...
    def __getitem__(self, index: int | slice) -> Split | StoredSplits:
        """Read one split; a slice reads none.

        Raises:
            StateFileDamaged: its line cannot be read.
        """
        if isinstance(index, slice):
            return StoredSplits(self._path, self._lines[index], self._deltas)
        line = self._lines[index]
        return as_stored(self._path, lambda: self._deltas.split(line))


def read_splits(storage: Storage, uri: str) -> StoredSplits:
    """Read the splits of a plan directory, in plan order.

    Raises:
        StateFileLost: their file is gone.
        StateFileDamaged: the last line of their file is not whole.
    """
    path = layout.splits_file(uri)
    content = read_content(storage, path)
    if content and not content.endswith(b"\n"):
        raise damaged(path, f"{len(content)} bytes that end within a line")
    lines = content.splitlines()
    deltas = StoredDeltas.before(lines)
    return StoredSplits(path, lines[len(deltas) :], deltas)


def write_splits(storage: Storage, uri: str, splits: Sequence[Split]) -> None:
    """Write the splits to a plan directory."""
    storage.write_once(layout.splits_file(uri), _blocks(splits))


def _blocks(splits: Sequence[Split]) -> Iterator[bytes]:
    """Yield lines, many at a time: each block is a call to the file system."""
    table = DeltaTable(splits)
    lines = chain(table.lines, (table.shorten(split).to_text() for split in splits))
    while block := list(islice(lines, _LINES_PER_BLOCK)):
        yield "".join(f"{line}\n" for line in block).encode()


def pending_stages(storage: Storage, uri: str) -> list[list[int]]:
    """Return the positions of splits that have a sub-split without a message, by stage.

    Returns:
        Those of the first stage, which depend on no others, then those that depend on them, and so
        on; no stage is empty.
    """
    done = {
        layout.sub_split_of_message(name) for name in storage.list_files(layout.messages_root(uri))
    }
    stages: dict[int, list[int]] = {}
    for index, split in enumerate(read_splits(storage, uri)):
        # Ids are hashes of everything in a line.
        if not done or any(part.id not in done for part in split.sub_splits):
            stages.setdefault(split.stage, []).append(index)
    return [stages[stage] for stage in sorted(stages)]
