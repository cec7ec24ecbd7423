"""Find the files that a range of snapshots appended (ICE-3.1–3.8).

Snapshots are classified by the content of their own manifests, not only by the name of their
operation (ICE-3.2). No delete is applied: rows are read as they were committed (ICE-3.8).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import SnapshotClassMismatch
from tidegate.source.iceberg.changes.commit_entries import CommitEntries
from tidegate.source.iceberg.changes.live_manifests import check_readable
from tidegate.source.iceberg.changes.passed_over import PassedOver, Step
from tidegate.source.iceberg.deletes.entries import FILE_PATH_ID, found_delete
from tidegate.source.iceberg.manifests.decode import is_delete_manifest
from tidegate.source.iceberg.manifests.entries import Entry, Status
from tidegate.source.iceberg.manifests.tally import MANIFESTS_PRUNED
from tidegate.source.iceberg.timeline.history import operation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.decode import ManifestReader
    from tidegate.source.iceberg.manifests.pruning import Pruning


APPEND, REWRITE, EMPTY = "append", "replace", "empty"
_CHANGED = (
    *("added-data-files", "deleted-data-files", "added-records", "deleted-records"),
    *("added-delete-files", "removed-delete-files"),
)
"""Summary counts of added and removed files and rows, which are left out if they are 0."""


class Commit(NamedTuple):
    """A snapshot and its class."""

    snapshot: Snapshot
    kind: str


@dataclass
class Changes:
    """The data files found, oldest first, and what was skipped."""

    entries: list[Entry] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Class of snapshot → how many were skipped."""
    tally: Counter[str] = field(default_factory=Counter)
    """Counts of what the filter ruled out; see `tidegate.source.iceberg.manifests.tally`."""


class ChangeReader:
    """Lists the data files that append snapshots added, pruned by the filter."""

    def __init__(
        self,
        source: str,
        manifests: ManifestReader,
        pruning: Pruning,
        metric_ids: Collection[int] = (),
    ) -> None:
        """Prepare; nothing is read.

        Args:
            source: the table, for errors.
            manifests: of the table.
            pruning: the filter's pruning.
            metric_ids: columns whose metrics entries should have besides those of the filter.
        """
        self._source = source
        self._manifests = manifests
        self._commits = CommitEntries(manifests)
        self._pruning = pruning
        self._metric_ids = pruning.metric_ids.union(metric_ids)

    def classified(self, snapshots: Iterable[Snapshot]) -> list[Commit]:
        """Return the class of each snapshot, in order."""
        return [Commit(snapshot, self.kind(snapshot)) for snapshot in snapshots]

    def appended(
        self,
        commits: Iterable[Commit],
        *,
        enough: int | None = None,
        metric_ids: Collection[int] = (),
    ) -> Changes:
        """List the files that append snapshots added, in the order of the snapshots (ICE-3.7).

        Args:
            commits: a range of the lineage, oldest first; those that are not appends are counted.
            enough: later snapshots are not listed once the files have that many rows (ICE-5.13).
            metric_ids: further columns whose metrics entries should have.

        Raises:
            SnapshotClassMismatch: an append removes files or adds deletes (ICE-3.3).
            UnsupportedFeature: a file is encrypted or in an unknown format.
        """
        commits = list(commits)
        changes = Changes()
        changes.skipped.update(commit.kind for commit in commits if commit.kind != APPEND)
        for commit in commits:
            if commit.kind == APPEND:
                self._add(changes, commit.snapshot, self._metric_ids.union(metric_ids))
            if enough and sum(entry.rows for entry in changes.entries) >= enough:
                break
        return changes

    def passed_over(self, commits: Iterable[Commit], rules: DeleteRules) -> PassedOver:
        """Read the changes of the commits that are not appends.

        Args:
            commits: a stretch of the lineage, oldest first.
            rules: of the table.

        Raises:
            CorruptDeletes, UnsupportedFeature: a delete file cannot be read.
        """
        others = [self._step(commit, rules) for commit in commits if commit.kind != APPEND]
        return PassedOver(tuple(others), rules)

    def _step(self, commit: Commit, rules: DeleteRules) -> Step:
        own = self._commits.own(commit.snapshot)
        rows = [manifest for manifest in own if not is_delete_manifest(manifest)]
        deletes = [manifest for manifest in own if is_delete_manifest(manifest)]
        is_rewrite = commit.kind == REWRITE
        changed = (Status.ADDED, Status.DELETED)
        files = self._commits.by(commit.snapshot, rows, *changed, metric_ids=self._metric_ids)
        found = self._commits.by(
            commit.snapshot, deletes, Status.ADDED, metric_ids={*rules.key_fields, FILE_PATH_ID}
        )
        kept = self._pruning.keep(files, Counter())
        return Step(
            removed=[entry for entry in kept if entry.status == Status.DELETED],
            added=[entry for entry in kept if entry.status == Status.ADDED],
            deletes=[] if is_rewrite else [found_delete(entry, rules) for entry in found],
            is_rewrite=is_rewrite,
        )

    def kind(self, snapshot: Snapshot) -> str:
        """Classify a snapshot by its operation; if it has none, by its changes (ICE-3.3).

        A delete or overwrite that matched no row is empty: engines commit one for every statement.
        """
        named = operation(snapshot)
        if named is None:
            return self._kind_by_content(snapshot)
        if named not in {APPEND, REWRITE} and self._changed_nothing(snapshot):
            return EMPTY
        return named

    def _changed_nothing(self, snapshot: Snapshot) -> bool:
        """Return whether neither summary nor manifests have an added or removed file."""
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        if any(int(said.get(name, 0)) for name in _CHANGED):
            return False
        own = [
            manifest
            for manifest in self._commits.own(snapshot)
            if manifest.added_files_count != 0 or manifest.deleted_files_count != 0
        ]
        return not self._commits.by(snapshot, own, Status.ADDED, Status.DELETED)

    def _add(self, changes: Changes, snapshot: Snapshot, metric_ids: frozenset[int]) -> None:
        self._check_append(snapshot)
        own = [
            manifest
            for manifest in self._commits.own(snapshot)
            if manifest.has_added_files() and not is_delete_manifest(manifest)
        ]
        kept = [manifest for manifest in own if self._pruning.keeps_manifest(manifest)]
        changes.tally[MANIFESTS_PRUNED] += len(own) - len(kept)
        added = self._commits.by(snapshot, kept, Status.ADDED, metric_ids=metric_ids)
        for entry in added:
            check_readable(entry, self._source)
        changes.entries += self._pruning.keep(added, changes.tally)

    def _check_append(self, snapshot: Snapshot) -> None:
        """Prove by counts, else by entries, that data files were only added (ICE-3.3)."""
        deletes, rows = self._doubtful(snapshot)
        touched = self._commits.by(snapshot, deletes, Status.ADDED, Status.DELETED)
        if touched:
            self._mismatch(snapshot, f"adds delete files, or removes them: {touched[0].path}")
        removed = self._commits.by(snapshot, rows, Status.DELETED)
        if removed:
            self._mismatch(snapshot, f"removes {len(removed)} files, among them {removed[0].path}")

    def _doubtful(self, snapshot: Snapshot) -> tuple[list[ManifestFile], list[ManifestFile]]:
        """List the delete and data manifests whose counts do not prove that they only add rows."""
        own = self._commits.own(snapshot)
        # An append that merges manifests rewrites delete manifests with the same content.
        deletes = [
            manifest
            for manifest in own
            if is_delete_manifest(manifest)
            and (manifest.added_files_count != 0 or manifest.deleted_files_count != 0)
        ]
        rows = [
            manifest
            for manifest in own
            if not is_delete_manifest(manifest) and manifest.deleted_files_count != 0
        ]
        return deletes, rows

    def _mismatch(self, snapshot: Snapshot, found: str) -> None:
        raise SnapshotClassMismatch(
            source=self._source, snapshot=str(snapshot.snapshot_id), found=found
        )

    def _kind_by_content(self, snapshot: Snapshot) -> str:
        deletes, rows = self._doubtful(snapshot)
        removes = self._commits.by(
            snapshot, deletes, Status.ADDED, Status.DELETED
        ) or self._commits.by(snapshot, rows, Status.DELETED)
        if not removes:
            return APPEND
        data = [
            manifest for manifest in self._commits.own(snapshot) if not is_delete_manifest(manifest)
        ]
        return "overwrite" if self._commits.by(snapshot, data, Status.ADDED) else "delete"
