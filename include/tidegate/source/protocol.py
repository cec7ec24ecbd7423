"""The protocol of sources: instants, files of windows, rows.

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
    """A source of changes."""

    @property
    def name(self) -> str:
        """The name of the source for people."""
        ...

    def places(self) -> tuple[str, ...]:
        """Return the directories of this machine that have the source's files."""
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
        """Hints about files that are not read; None for a source without hints."""
        ...

    @property
    def kept(self) -> KeptHistory | None:
        """The history that Tidegate keeps of it; None if the source keeps its own."""
        ...

    @property
    def protection(self) -> Protection | None:
        """The protection of a checkpoint from expiry, if the pipeline file asks for it."""
        ...
