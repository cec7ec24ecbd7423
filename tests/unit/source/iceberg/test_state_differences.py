"""Reading fewer manifests never changes a difference, whatever the history and its manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile, PartitionFieldSummary
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, StringType

from iceberg_states import entry_of
from tidegate.errors import AmbiguousPath
from tidegate.source.iceberg.changes import live_manifests
from tidegate.source.iceberg.changes.states import State, StateReader
from tidegate.source.iceberg.deletes.index import DeleteIndex
from tidegate.source.iceberg.deletes.rules import DeleteRules, KeyField
from tidegate.source.iceberg.manifests.decode import ManifestReader
from tidegate.source.iceberg.manifests.entries import Content, Entry, Status
from tidegate.source.iceberg.manifests.pruning import Pruning

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.model.file_slice import Delta
    from tidegate.source.iceberg.deletes.entries import FoundDelete

WHOLE, BY_REGION = 0, 1
REGIONS = ["de", "fr", "us", None]
RULES = DeleteRules(
    source="lake.orders",
    global_specs=frozenset({WHOLE}),
    key_fields={1: KeyField(LongType(), required=False)},
    partition_types={WHOLE: (), BY_REGION: (StringType(),)},
    exact_paths=False,
)
NUMBERS = count()


@dataclass(frozen=True)
class Commit:
    """A snapshot as far as the manifests of one are asked for."""

    manifests: tuple[tuple[ManifestFile, tuple[Entry, ...]], ...]


class Written(ManifestReader):
    """Manifests that stand in memory; counts which are read."""

    def __init__(self) -> None:
        super().__init__(PyArrowFileIO(), "lake.orders")
        self.content: dict[str, tuple[Entry, ...]] = {}
        self.read: list[str] = []

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        commit = cast("Commit", snapshot)
        self.content.update({file.manifest_path: found for file, found in commit.manifests})
        return tuple(file for file, _ in commit.manifests)

    def entries(
        self, manifests: Iterable[ManifestFile], metric_ids: Collection[int] = ()
    ) -> list[list[Entry]]:
        del metric_ids
        paths = [manifest.manifest_path for manifest in manifests]
        self.read += paths
        return [list(self.content[path]) for path in paths]


def _manifest(entries: Sequence[Entry], sequence: int) -> tuple[ManifestFile, tuple[Entry, ...]]:
    live = [entry for entry in entries if entry.status != Status.DELETED]
    values = [entry.partition[0] for entry in entries if entry.partition]
    known = sorted(value.encode() for value in values if value is not None)
    summary = PartitionFieldSummary(
        None in values, None, known[0] if known else None, known[-1] if known else None
    )
    file = ManifestFile(
        f"m{next(NUMBERS)}",
        100,
        entries[0].spec_id,
        0 if entries[0].content == Content.ROWS else 1,
        sequence,
        min((entry.sequence_number for entry in live), default=sequence),
        sequence,
        *(sum(entry.status == status for entry in entries) for status in (1, 0, 2)),
        *(None, None, None),
        [summary] if values else None,
        None,
        None,
    )
    return file, tuple(entries)


@dataclass
class History:
    """Commits of which each takes over the manifests that it leaves alone."""

    commits: list[Commit] = field(default_factory=list)

    @property
    def last(self) -> list[tuple[ManifestFile, tuple[Entry, ...]]]:
        return list(self.commits[-1].manifests) if self.commits else []

    @property
    def sequence(self) -> int:
        return len(self.commits) + 1

    def live(self, *contents: Content) -> list[Entry]:
        return [
            entry
            for _, entries in self.last
            for entry in entries
            if entry.status != Status.DELETED and entry.content in contents
        ]

    def commit(self, added: Sequence[Entry], removed: set[str], merge: bool) -> None:
        kept = []
        for file, entries in self.last:
            live = [entry for entry in entries if entry.status != Status.DELETED]
            if merge or any(entry.path in removed for entry in live):
                rewritten = [
                    entry._replace(status=Status.DELETED if entry.path in removed else 0)
                    for entry in live
                ]
                kept += [_manifest(rewritten, self.sequence)] if rewritten else []
            else:
                kept.append((file, entries))
        groups: dict[tuple[int, bool], list[Entry]] = {}
        for entry in added:
            groups.setdefault((entry.spec_id, entry.content == Content.ROWS), []).append(entry)
        self.commits.append(
            Commit((*kept, *(_manifest(group, self.sequence) for group in groups.values())))
        )


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A few commits of every kind, also ones that only write manifests anew."""
    history = History()
    for _ in range(draw(st.integers(1, 6))):
        added = [_new(draw, history, Content.ROWS) for _ in range(draw(st.integers(0, 2)))]
        added += [
            _new(draw, history, Content(draw(st.integers(1, 2))))
            for _ in range(draw(st.integers(0, 2)))
        ]
        removed: set[str] = set()
        everything = history.live(Content.ROWS, Content.POSITION_DELETES, Content.EQUALITY_DELETES)
        if everything and draw(st.booleans()):
            removed = {draw(st.sampled_from(everything)).path}
        rows = [entry for entry in history.live(Content.ROWS) if entry.path not in removed]
        if rows and draw(st.booleans()):
            vector, replaced = _vector(history, draw(st.sampled_from(rows)))
            added.append(vector)
            removed |= replaced
        history.commit(added, removed, merge=draw(st.booleans()))
    return history


def _new(draw: st.DrawFn, history: History, content: Content) -> Entry:
    spec = draw(st.sampled_from([WHOLE, BY_REGION]))
    return entry_of(
        content=content,
        sequence_number=history.sequence,
        spec_id=spec,
        partition=(draw(st.sampled_from(REGIONS)),) if spec == BY_REGION else (),
        equality_ids=(1,) if content == Content.EQUALITY_DELETES else (),
    )


def _vector(history: History, rows: Entry) -> tuple[Entry, set[str]]:
    old = {
        entry.path
        for entry in history.live(Content.POSITION_DELETES)
        if entry.referenced == rows.path
    }
    vector = entry_of(
        path=f"s3://lake/data/{next(NUMBERS)}.puffin",
        content=Content.POSITION_DELETES,
        file_format="puffin",
        sequence_number=history.sequence,
        spec_id=rows.spec_id,
        partition=rows.partition,
        referenced=rows.path,
        content_offset=4,
        content_size=40,
    )
    return vector, old


def _reader(rules: DeleteRules = RULES) -> tuple[StateReader, Written]:
    written = Written()
    return StateReader(written, Pruning(Schema(), {}, None), rules), written


def _snapshot(commit: Commit) -> Snapshot:
    return cast("Snapshot", commit)


def _content(state: State) -> dict[str, Any]:
    return {it.entry.path: frozenset(each.key for each in it.deletes) for it in state.files}


@given(histories())
@settings(max_examples=150)
def test_difference_of_any_two_commits_is_that_of_their_states(history: History) -> None:
    states = [_content(_reader()[0].state(_snapshot(it))) for it in history.commits]
    reader, _ = _reader()

    for before, old in [(None, {}), *zip(history.commits, states, strict=True)]:
        for after, new in zip(history.commits, states, strict=True):
            found = reader.difference(before and _snapshot(before), _snapshot(after)).files

            expected = {
                path: (old.get(path), new.get(path))
                for path in {*old, *new}
                if old.get(path) != new.get(path)
            }
            assert {
                it.entry.path: tuple(
                    None if side is None else frozenset(each.key for each in side)
                    for side in (it.before, it.after)
                )
                for it in found
            } == expected
            assert len(found) == len(expected)


def _two_regions() -> History:
    history = History()
    for region in ("de", "us"):
        rows = entry_of(sequence_number=history.sequence, spec_id=BY_REGION, partition=(region,))
        history.commit([rows], set(), merge=False)
    return history


@pytest.mark.parametrize(
    ("spec", "partition", "content", "manifests"),
    [
        (BY_REGION, ("us",), Content.POSITION_DELETES, 2),
        (BY_REGION, ("us",), Content.EQUALITY_DELETES, 2),
        (BY_REGION, ("fr",), Content.POSITION_DELETES, 1),
        (BY_REGION, (None,), Content.EQUALITY_DELETES, 1),
        (WHOLE, (), Content.EQUALITY_DELETES, 3),
        (WHOLE, (), Content.POSITION_DELETES, 1),
    ],
    ids=[
        "positions-of-one-partition",
        "keys-of-one-partition",
        "partition-without-files",
        "null-partition-without-files",
        "global-keys",
        "positions-of-another-spec",
    ],
)
def test_only_manifests_that_a_new_delete_can_touch_are_read(
    spec: int, partition: tuple[Any, ...], content: Content, manifests: int
) -> None:
    history = _two_regions()
    ids = (1,) if content == Content.EQUALITY_DELETES else ()
    delete = entry_of(
        content=content, sequence_number=3, spec_id=spec, partition=partition, equality_ids=ids
    )
    history.commit([delete], set(), merge=False)
    reader, written = _reader()

    reader.difference(_snapshot(history.commits[1]), _snapshot(history.commits[2]))

    assert len(written.read) == manifests


def test_manifests_of_several_differences_are_read_once() -> None:
    history = _two_regions()
    for _ in range(3):
        delete = entry_of(
            content=Content.EQUALITY_DELETES,
            sequence_number=history.sequence,
            equality_ids=(1,),
        )
        history.commit([delete], set(), merge=False)
    reader, written = _reader()

    deleting = history.commits[1:]
    for before, after in pairwise(deleting):
        reader.difference(_snapshot(before), _snapshot(after))

    assert len(written.read) == len(set(written.read))


def test_commit_asks_only_for_the_deletes_of_files_that_it_may_touch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History()
    rows = [entry_of() for _ in range(9)]
    history.commit(rows, set(), merge=False)
    for entry in rows:
        history.commit([_vector(history, entry)[0]], set(), merge=False)
    asked: list[str] = []
    described: list[str] = []
    applying, found_delete = DeleteIndex.applying, live_manifests.found_delete

    def count(index: DeleteIndex, entry: Entry, rivals: Collection[str]) -> tuple[Delta, ...]:
        asked.append(entry.path)
        return applying(index, entry, rivals)

    def describe(entry: Entry, rules: DeleteRules) -> FoundDelete:
        described.append(entry.path)
        return found_delete(entry, rules)

    monkeypatch.setattr(DeleteIndex, "applying", count)
    monkeypatch.setattr(live_manifests, "found_delete", describe)
    reader, _ = _reader()

    for before, after in pairwise(history.commits):
        reader.difference(_snapshot(before), _snapshot(after))

    assert asked == [path for entry in rows for path in (entry.path, entry.path)]
    assert len(described) == len(set(described)) == len(rows)


def test_delete_leaves_a_file_for_a_rival_that_it_names_exactly() -> None:
    history = History()
    rows = entry_of(path="s3://one/data/a.parquet")
    history.commit([rows], set(), merge=False)
    delete = entry_of(
        content=Content.POSITION_DELETES,
        sequence_number=history.sequence,
        referenced="s3a://one/data/a.parquet",
    )
    history.commit([delete], set(), merge=False)
    rival = entry_of(path="s3a://one/data/a.parquet", sequence_number=history.sequence)
    # Both in one manifest, as rewriting it leaves them.
    history.commit([rival], set(), merge=True)

    found = _reader()[0].difference(_snapshot(history.commits[1]), _snapshot(history.commits[2]))

    deletes = {
        it.entry.path: [side and [each.path for each in side] for side in (it.before, it.after)]
        for it in found.files
    }
    assert deletes == {rows.path: [[delete.path], ()], rival.path: [None, ()]}


def test_files_that_only_the_scheme_tells_apart_are_rivals() -> None:
    history = History()
    rows = [entry_of(path=f"s3://{bucket}/data/a.parquet") for bucket in ("one", "two")]
    history.commit(rows, set(), merge=False)
    vectors = [_vector(history, entry)[0] for entry in rows]
    history.commit(vectors, set(), merge=False)

    state = _reader()[0].state(_snapshot(history.commits[-1]))

    assert [(it.rivals, [each.path for each in it.deletes]) for it in state.files] == [
        ((rows[1].path,), [vectors[0].path]),
        ((rows[0].path,), [vectors[1].path]),
    ]


def test_delete_that_fits_neither_of_two_rivals_is_ambiguous() -> None:
    history = History()
    rows = [entry_of(path=f"s3://{bucket}/data/a.parquet") for bucket in ("one", "two")]
    history.commit(rows, set(), merge=False)
    vector, _ = _vector(history, rows[0])
    history.commit([vector._replace(referenced="oss://three/data/a.parquet")], set(), merge=False)

    with pytest.raises(AmbiguousPath, match="oss://three"):
        _reader()[0].state(_snapshot(history.commits[-1]))
