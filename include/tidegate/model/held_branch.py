"""The names of branches of an Iceberg table on which held partitions stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.model.partition import Partition

HELD = "tidegate-held/"
"""How they begin. No pipeline has a name with a slash, after which a source's checkpoint may be
kept in the same table."""


def held_branch(partition: Partition) -> str:
    """Return the name of the branch on which a held partition stands."""
    return f"{HELD}{partition.path or 'table'}"
