"""What a commit did is read from the manifests it wrote, and from its own entries in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from iceberg_states import entry_of
from tidegate.source.iceberg.changes.commit_entries import CommitEntries
from tidegate.source.iceberg.manifests.entries import Entry, Status


@dataclass(frozen=True)
class Written:
    """One manifest."""

    added_snapshot_id: int
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Commit:
    """One snapshot."""

    snapshot_id: int


@dataclass
class Table:
    """Reads manifests as the manifest reader does."""

    listed: list[Written]
    asked: list[object] = field(default_factory=list)

    def manifests(self, snapshot: Commit) -> list[Written]:
        return self.listed

    def entries(self, manifests: list[Written], metric_ids: object) -> list[tuple[Entry, ...]]:
        self.asked.append(metric_ids)
        return [manifest.entries for manifest in manifests]


ENTRIES = st.builds(
    lambda status, commit: entry_of(status=status, snapshot_id=commit),
    st.sampled_from(Status),
    st.integers(1, 2),
)
MANIFESTS = st.builds(Written, st.integers(1, 2), st.lists(ENTRIES, max_size=3).map(tuple))


@given(listed=st.lists(MANIFESTS, max_size=4), wanted=st.sets(st.sampled_from(Status), min_size=1))
def test_entries_are_those_that_the_commit_itself_gave_the_status(
    listed: list[Written], wanted: set[Status]
) -> None:
    """A merged manifest keeps the entries of older commits (ICE-3.3)."""
    table, commit = Table(listed), Commit(1)
    commits = CommitEntries(table)

    found = commits.by(commit, commits.own(commit), *wanted, metric_ids=(5,))

    assert found == [
        entry
        for manifest in listed
        if manifest.added_snapshot_id == 1
        for entry in manifest.entries
        if entry.snapshot_id == 1 and entry.status in wanted
    ]
    assert table.asked == [(5,)]
