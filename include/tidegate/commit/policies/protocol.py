"""The protocol of commit policies, each of which is repeatable (PC-A04)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.metastore import TableColumns
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Publication
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
    publication: Publication | None = None
    """What is committed: the files that come and go with it."""
    owner: str = ""
    """The run that commits."""
    schema: pa.Schema | None = None
    """The columns of a table that is shown by a policy of its kind; None as `columns`."""


@dataclass(frozen=True)
class CommitAhead:
    """What is known of a commit that has not begun (PC-A13)."""

    pipeline: str
    table_root: str
    columns: TableColumns | None
    """Those of the table; None if no policy needs them, or if nothing tells them yet."""
    partition: Partition | None = None
    """None: any one, as in `tidegate check`, which asks what the next commit would do."""
    revision: int | None = None
    files: tuple[str, ...] = ()
    """Names of all files that the partition will have."""
    rows: int | None = None


class CommitPolicy(Protocol):
    """Runs on: one process per partition. Called: at least once per revision.

    Files are moved before.

    Failure: an error leaves the partition pending; the same commit calls the policy again with the
    same context. Calling it twice must therefore have the effect of calling it once.
    """

    def commit(self, context: PolicyContext) -> None:
        """Carry out the policy."""


@runtime_checkable
class ListingPolicy(CommitPolicy, Protocol):
    """A policy that keeps a list of what stands, which can be compared and written anew (PC-A14).

    Its `commit` writes the entry of a revision that stands, too.
    """

    def differs(self, context: PolicyContext) -> str | None:
        """Return how the list differs from a revision that stands; None if it does not.

        Runs on: as `commit`, and in `tidegate fsck`. Called: any number of times; changes nothing.
        """


@runtime_checkable
class ForeseeingPolicy(CommitPolicy, Protocol):
    """A policy that knows before a commit begins what it will do, or that it cannot (PC-A13)."""

    def foresee(self, ahead: CommitAhead) -> str | None:
        """Return what the commit will do besides moving files; None if there is nothing to say.

        Runs on: as `commit`, and in `tidegate check`. Called: any number of times, also for
        commits that never begin; changes nothing. An error refuses the commit: no marker is
        retracted, and no file is moved.
        """
