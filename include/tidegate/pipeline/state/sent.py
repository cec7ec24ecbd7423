"""Find the part files that were sent to a target and that nobody has completed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.stage import layout

if TYPE_CHECKING:
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage, Unfinished


def sent_parts(storage: Storage, roots: Roots) -> list[Unfinished]:
    """List the uploads of part files below a target (PC-F36); other writers may have their own."""
    return [it for it in storage.unfinished(roots.target) if layout.is_part_file(it.path)]
