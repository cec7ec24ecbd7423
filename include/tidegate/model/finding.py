"""One difference between files, markers and ledger, as `tidegate fsck` tells it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tidegate.model.wire import Value

_COMMAND = re.compile(r"`(tidegate [^`]*)`")


class FindingKind(Enum):
    """What is wrong; the value says why that matters."""

    REFUSED = "commands that write are refused until this is put right"
    SOURCE_FILE_LOST = "the next load, or a backfill, needs it"
    STATE_FILE_LOST = "a lost ledger is restored from such files"
    WINDOW_ABANDONED = "the next load begins with it"
    COMMIT_UNFINISHED = "readers by marker do not see the partition meanwhile"
    FILE_LOST = "readers miss its rows, or fail"
    FILE_CHANGED = "readers get other rows than those that were published, or fail"
    FILE_UNKNOWN = "readers that list files see its rows"
    STAGED_FILE_LOST = "the next revision cannot be published without it"
    RETIRED_FILE_LOST = "the revision cannot be compared or brought back; readers do not need it"
    JOINED_PART_LOST = "a replay of one of its windows needs it; readers do not"
    ERASURE_UNFINISHED = "rows that were to be erased may still be there"
    ERASED_ROWS = "readers see rows that were erased"
    TABLE_DIFFERS = "readers of the table see other rows than those that were published"
    MARKER_LOST = "readers by marker do not see the partition"
    MARKER_CHANGED = "readers by marker may see other files than those that were published"
    LIST_DIFFERS = "readers who ask the metastore miss the partition, or find another revision"
    MARKER_UNKNOWN = "readers by marker take the partition for published"


@dataclass(frozen=True)
class Finding(Value):
    """One difference, and what to do about it."""

    kind: FindingKind
    where: str
    """A path, a partition or a window."""
    text: str
    """What was found, and what to do."""
    error: str | None = None
    """The code of the error that other commands end with for this reason."""

    def __str__(self) -> str:
        return self.text

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that help, in their order."""
        return tuple(_COMMAND.findall(self.text))
