"""What every kind of source consists of: instants, slices of windows, rows.

Planning happens once, in one process (`timeline`, `slicing`); reading happens in many tasks
(`reading`), which get the pin from the plan and never look at the source's head again (ICE-2.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidegate.source.reading import PinnedReading
    from tidegate.source.slicing import Slicing, TableHints
    from tidegate.source.timeline import KeptHistory, Protection, Timeline


class Source(Protocol):
    """Where changes come from."""

    @property
    def name(self) -> str:
        """The source's name for people."""
        ...

    def places(self) -> tuple[str, ...]:
        """Name the directories of this machine that hold the source's files."""
        ...

    @property
    def timeline(self) -> Timeline:
        """Its instants."""
        ...

    @property
    def slicing(self) -> Slicing:
        """The files of its windows."""
        ...

    @property
    def reading(self) -> PinnedReading:
        """Its rows."""
        ...

    @property
    def hints(self) -> TableHints | None:
        """What it tells of files without their being read; None for a source that tells nothing."""
        ...

    @property
    def kept(self) -> KeptHistory | None:
        """What Tidegate keeps of its past; None where the source itself tells."""
        ...

    @property
    def protection(self) -> Protection | None:
        """What keeps it from forgetting a checkpoint, if the pipeline file asks for that."""
        ...
