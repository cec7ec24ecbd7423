"""Windows over Hudi timelines join without gap or overlap, in whatever order writes are done."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_hudi import NOW, RANDOM, Golden, texts
from tidegate.config import read_source
from tidegate.config.reading import LimitsConfig
from tidegate.errors import HudiChangesLost, HudiFilesCleaned
from tidegate.model.instant import InstantRange
from tidegate.pipeline.load import window_choice
from tidegate.pipeline.load.scanning import volumes_of
from tidegate.plan.limits import limited
from tidegate.source.hudi import HudiSource
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.model.instant import Instant

KEY, FOLDER = "_hoodie_record_key", "_hoodie_partition_path"
START = 20260101000000000
LAST = 90
"""The time at which everything is done, in the small numbers of the examples."""


@dataclass(frozen=True)
class Act:
    """What a writer does: requested at one time, done at another, or never."""

    requested: int
    done: int
    kind: str
    files: int

    @property
    def is_write(self) -> bool:
        return self.kind in {"commit", "overwrite"}


KINDS = ("commit", "commit", "commit", "overwrite", "clustering", "clean", "rollback")


@st.composite
def histories(draw: st.DrawFn) -> list[Act]:
    """Writers and services side by side; requested times differ, times of completion need not."""
    requested = draw(st.lists(st.integers(1, 40), min_size=1, max_size=9, unique=True))
    return [
        Act(
            at,
            at + draw(st.integers(1, 30)),
            draw(st.sampled_from(KINDS)),
            draw(st.integers(0, 3)),
        )
        for at in sorted(requested)
    ]


limits = st.builds(
    LimitsConfig,
    snapshots=st.none() | st.integers(1, 4),
    files=st.none() | st.integers(1, 5),
    rows=st.none() | st.integers(1, 40),
)


def text(time: int) -> str:
    return str(START + time)


class Lake:
    """A table of which only the timeline is there."""

    def __init__(self, root: Path, layout: int) -> None:
        self.root, self.layout = root, layout
        self.folder = root / ".hoodie" / ("timeline" if layout == 2 else "")
        self.folder.mkdir(parents=True)
        version = {1: 6, 2: 9}[layout]
        (root / ".hoodie" / "hoodie.properties").write_text(
            f"hoodie.table.name=t\nhoodie.table.version={version}\n"
            "hoodie.table.type=COPY_ON_WRITE\nhoodie.table.recordkey.fields=k\n"
            "hoodie.table.timeline.timezone=UTC\n"
            'hoodie.table.create.schema={"type":"record","name":"r","fields":'
            '[{"name":"k","type":"string"}]}\n'
        )
        self.source = HudiSource(
            read_source({"kind": "hudi", "path": str(root), "read": {"mode": "complete"}})
        )

    def show(self, history: Sequence[Act], now: int) -> None:
        """Write the files that the timeline has at a time."""
        for act in history:
            if act.requested > now:
                continue
            name = {"overwrite": "replacecommit", "clustering": "replacecommit"}.get(
                act.kind, act.kind
            )
            pending = "clustering" if act.kind == "clustering" and self.layout == 2 else name
            plan = b"Obj\x01" if act.kind == "clustering" else b""
            requested = self.folder / f"{text(act.requested)}.{pending}.requested"
            if not requested.exists():
                requested.write_bytes(plan)
            if act.done <= now:
                joined = f"_{text(act.done)}" if self.layout == 2 else ""
                done = self.folder / f"{text(act.requested)}{joined}.{name}"
                done.write_text(json.dumps(_metadata(act)))

    def load(self, checkpoint: Instant, limit: LimitsConfig) -> InstantRange | None:
        """The window that a load takes now."""
        timeline = self.source.timeline
        pin = timeline.pin(NOW)
        if pin.head is None:
            return None
        following = timeline.following(pin, checkpoint)
        found = window_choice.ahead(following.instants, following.start, None)
        if found is None:
            return None
        return limited(found, following.instants, volumes_of(self.source, pin), limit)

    def taken(self, window: InstantRange) -> list[tuple[str, str]]:
        """The writes of a window, as planning reads them."""
        timeline = self.source.timeline
        pin = timeline.at(timeline.pin(NOW), window.end_inclusive)
        return [order_of(it) for it in timeline.instants(pin, window.start_exclusive)]


def _metadata(act: Act) -> dict[str, Any]:
    operation = {"overwrite": "INSERT_OVERWRITE", "clustering": "CLUSTER"}.get(act.kind, "UPSERT")
    stats = [
        {"fileId": f"f{number}", "path": f"p/f{number}", "fileSizeInBytes": 10, "numWrites": 10}
        for number in range(act.files)
    ]
    replaced = {"p": ["f0"]} if act.kind in {"overwrite", "clustering"} else {}
    return {
        "operationType": operation,
        "partitionToWriteStats": {"p": stats},
        "partitionToReplaceFileIds": replaced,
    }


def windows(
    lake: Lake, history: Sequence[Act], looks: Sequence[int], limit: LimitsConfig
) -> Iterator[InstantRange]:
    """Load at some times, and in the end until nothing is left."""
    lake.show([Act(0, 0, "commit", 0)], 0)
    first = lake.source.timeline.pin(NOW).head
    assert first is not None
    checkpoint = first
    for now in sorted(looks):
        lake.show(history, now)
        if window := lake.load(checkpoint, limit):
            yield window
            checkpoint = window.end_inclusive
    lake.show(history, LAST)
    while window := lake.load(checkpoint, limit):
        yield window
        checkpoint = window.end_inclusive


@pytest.mark.parametrize("layout", [1, 2])
@hypothesis.settings(max_examples=60, deadline=None)
@given(histories(), st.lists(st.integers(1, 70), max_size=5), limits)
def test_each_write_is_in_exactly_one_window_whenever_it_is_done(
    layout: int, history: list[Act], looks: list[int], limit: LimitsConfig
) -> None:
    """A write that is done after later ones is passed over by no limit."""
    with tempfile.TemporaryDirectory() as root:
        lake = Lake(Path(root), layout)
        found = list(windows(lake, history, looks, limit))
        taken = [lake.taken(window) for window in found]

    writes = {text(act.requested) for act in history if act.is_write}
    assert Counter(it[1] for each in taken for it in each) == Counter(writes)
    assert all(taken), "a window without a write"
    for one, other in pairwise(found):
        assert one.end_inclusive == other.start_exclusive


@hypothesis.settings(max_examples=60, deadline=None)
@given(histories(), st.integers(1, 70), st.integers(0, 3), limits)
def test_each_write_is_in_exactly_one_window_across_an_upgrade_of_the_table(
    history: list[Act], upgraded: int, loads: int, limit: LimitsConfig
) -> None:
    """The checkpoint has a requested time only; the upgraded timeline is ordered by completion."""
    # What is pending is rolled back by an upgrade.
    kept = [act for act in history if act.requested > upgraded or act.done <= upgraded]
    first = Act(0, 0, "commit", 0)
    taken = []
    with tempfile.TemporaryDirectory() as root:
        old, new = Lake(Path(root) / "old", 1), Lake(Path(root) / "new", 2)
        old.show([first, *kept], upgraded)
        checkpoint = old.source.timeline.named(old.source.timeline.pin(NOW), text(0))
        assert checkpoint is not None
        for _ in range(loads):
            if window := old.load(checkpoint, limit):
                taken += old.taken(window)
                checkpoint = window.end_inclusive
        new.show([first, *kept], LAST)
        while window := new.load(checkpoint, limit):
            taken += new.taken(window)
            checkpoint = window.end_inclusive

    writes = {text(act.requested) for act in kept if act.is_write}
    assert Counter(it[1] for it in taken) == Counter(writes)


@hypothesis.settings(max_examples=60, deadline=None)
@given(histories(), limits)
def test_window_never_ends_between_writes_that_were_done_at_one_time(
    history: list[Act], limit: LimitsConfig
) -> None:
    together = [Act(act.requested, 50 + act.done % 3, act.kind, act.files) for act in history]
    with tempfile.TemporaryDirectory() as root:
        lake = Lake(Path(root), 2)
        found = list(windows(lake, together, [], limit))
        taken = [lake.taken(window) for window in found]

    ends = [{completed for completed, _ in each} for each in taken]
    assert all(one.isdisjoint(other) for one, other in pairwise(ends))
    assert sum(map(len, taken)) == sum(act.is_write for act in together)


# ── Two windows in a row are one long window ──


def opened(case: str, mode: str, *columns: str) -> Golden:
    known = Golden(case, "snapshot")
    names = known.source.reading.schema(known.pin).names
    return Golden(case, mode, read={"columns": [*names, *columns, KEY, FOLDER]})


JOINED = [*RANDOM, "v9_mor_nbcc_commit", "v8_cow_occ", "v6_mor_many_blocks", "v9_mor_replace"]


def cuts(table: Golden) -> Iterator[tuple[InstantRange, InstantRange, InstantRange]]:
    """A long window, and its two parts, for some ways to cut it."""
    first, *between, last = table.writes[-7:]
    for middle in between[:: max(1, len(between) // 2)]:
        whole = InstantRange(first, last)
        yield whole, InstantRange(first, middle), InstantRange(middle, last)


@pytest.mark.parametrize("case", JOINED)
def test_changelogs_of_two_windows_are_that_of_one(case: str) -> None:
    table = opened(case, "changelog", "_change_type", "_change_ordinal")
    compared = 0
    for whole, one, other in cuts(table):
        try:
            rows = [table.rows(window) for window in (whole, one, other)]
        except (HudiChangesLost, HudiFilesCleaned):
            continue
        long, before, after = rows
        count = len(
            table.source.timeline.instants(
                table.source.timeline.at(table.pin, one.end_inclusive), one.start_exclusive
            )
        )
        moved = [{**row, "_change_ordinal": row["_change_ordinal"] + count} for row in after]
        assert texts([*before, *moved]) == texts(long), str(one)
        compared += 1
    assert compared


@pytest.mark.parametrize("case", JOINED)
def test_rows_of_two_complete_windows_end_as_those_of_one(case: str) -> None:
    """Of each key that is there at the end, the later window's row is the long one's."""
    table = opened(case, "complete")
    state = opened(case, "snapshot")
    compared = 0
    for whole, one, other in cuts(table):
        try:
            long, before, after = (by_key(table.rows(it)) for it in (whole, one, other))
            ends, starts = (
                by_key(state.rows(InstantRange(None, it)))
                for it in (whole.end_inclusive, whole.start_exclusive)
                if it is not None
            )
        except HudiFilesCleaned:
            continue
        joined = before | after
        for key, row in ends.items():
            if row == starts.get(key):
                continue  # A row that did not change may be repeated or not (HUDI-R5).
            assert texts([joined[key]]) == texts([long[key]]) == texts([row]), (key, str(one))
        compared += 1
    assert compared


def by_key(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row[FOLDER], row[KEY]): row for row in rows}
