"""The kinds of targets: what a published table is, as far as the house has to know it.

A new kind needs a line in `TARGET_KINDS`; what only it needs is in the policy that it publishes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

TargetWord = Literal["files", "iceberg"]


@dataclass(frozen=True)
class TargetKind:
    """What distinguishes a kind of target from the others."""

    data_folder: str = ""
    """Where the part files are, below `target.path`; empty: there."""
    shown_by: str | None = None
    """The policy that makes a revision visible; None: the files themselves do."""
    keeps_removed: bool = False
    """Whether files stay where they are when a revision removes them: older states of the table
    still name them, and the table's own maintenance deletes them."""
    is_laid_out: bool = True
    """Whether `target.layout` can be chosen."""
    copies_whole_files: bool = True
    """Whether files of a source may be taken over byte by byte."""


TARGET_KINDS: Mapping[TargetWord, TargetKind] = {
    "files": TargetKind(),
    "iceberg": TargetKind(
        data_folder="data",
        shown_by="snapshot",
        keeps_removed=True,
        is_laid_out=False,
        # A copied file of an Iceberg source has the field ids of that table, which readers of this
        # one would take for its own.
        copies_whole_files=False,
    ),
}
