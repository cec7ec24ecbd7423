"""The protocol of commit policies, each of which is repeatable (PC-A04)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidegate.model.metastore import TableColumns
    from tidegate.model.partition import Partition
    from tidegate.storage import Storage


@dataclass(frozen=True)
class PolicyContext:
    """What a policy receives (PC-A11)."""

    pipeline: str
    table_root: str
    partition: Partition
    partition_root: str
    """Directory of the files: that of the partition, the table root for an unpartitioned target;
    with `target.layout: revisions` one below it, which no other revision has."""
    revision: int
    key: str
    """Identifies this commit: the same for every repetition of it."""
    files: tuple[str, ...]
    """Names of all files of the partition as committed."""
    rows: int
    size_bytes: int
    marker_name: str
    marker: str
    storage: Storage
    columns: TableColumns | None
    """Those of the table; None if no policy needs them, or if the plans that tell them are lost."""
    scratch: str
    """Directory outside the table, on its file system, for `storage.write_once` into the table."""


class CommitPolicy(Protocol):
    """Runs on: one process per partition. Called: at least once per revision.

    Files are moved before.

    Failure: an error leaves the partition pending; the same commit calls the policy again with the
    same context. Calling it twice must therefore have the effect of calling it once.
    """

    def commit(self, context: PolicyContext) -> None:
        """Carry out the policy."""
