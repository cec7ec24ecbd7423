"""A plan tells what was done with each class of a window's snapshots (ICE-5.18)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from tidegate.model.instant import Instant, InstantRange
from tidegate.model.plan_record import InstantAction, Listed
from tidegate.source.iceberg.changes.listed import instant_actions, listed
from tidegate.source.iceberg.manifests.tally import DELETES_DANGLING, FILES_BY_METRICS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHANGES: Any = SimpleNamespace(mode="changelog", net_changes=False)


def _window(start: int | None) -> InstantRange:
    return InstantRange(None if start is None else Instant(str(start), NOW), Instant("9", NOW))


def _history(kinds: list[Operation]) -> Any:
    ancestors = [
        Snapshot(snapshot_id=number, timestamp_ms=0, manifest_list="m", summary=Summary(kind))
        for number, kind in enumerate(kinds)
    ]
    places = {number: number for number in range(len(kinds))}
    return SimpleNamespace(ancestors=ancestors, position=places.get)


@given(kinds=st.lists(st.sampled_from(Operation), min_size=1, max_size=6), data=st.data())
def test_each_snapshot_of_the_window_was_read_or_skipped(
    kinds: list[Operation], data: st.DataObject
) -> None:
    start = data.draw(st.none() | st.integers(0, len(kinds) - 1))
    inside = Counter(kind.value for kind in (kinds if start is None else kinds[start + 1 :]))
    skipped = {
        kind: data.draw(st.integers(1, count), kind)
        for kind, count in inside.items()
        if data.draw(st.booleans(), kind)
    }

    found = instant_actions(_history(kinds), _window(start), CHANGES, skipped)

    told = {(it.kind, it.action): it.count for it in found}
    assert len(told) == len(found)
    assert all(it.count > 0 for it in found)
    for kind, count in inside.items():
        assert told.get((kind, "skipped"), 0) == skipped.get(kind, 0)
        assert told.get((kind, "read"), 0) == count - skipped.get(kind, 0)


def test_window_whose_start_is_gone_has_all_that_is_kept() -> None:
    found = instant_actions(_history([Operation.APPEND] * 3), _window(7), CHANGES, {})

    assert found == (InstantAction("append", "read", 3),)


@pytest.mark.parametrize(
    "read", [{"mode": "snapshot_diff", "net_changes": False}, {"mode": "x", "net_changes": True}]
)
@pytest.mark.parametrize(("start", "states"), [(1, 2), (None, 1)])
def test_net_difference_compares_states(
    read: dict[str, Any], start: int | None, states: int
) -> None:
    asked: Any = SimpleNamespace(**read)

    found = instant_actions(_history([Operation.APPEND] * 3), _window(start), asked, {})

    assert found == (InstantAction("state", "compared", states),)


def test_what_was_left_out_is_told_without_what_never_happened() -> None:
    tally = {FILES_BY_METRICS: 3, DELETES_DANGLING: 0}
    planned: Any = SimpleNamespace(tally=tally, removed=())
    manifests: Any = SimpleNamespace(manifests_read=5)

    assert listed(planned, manifests, []) == Listed(
        (), 5, {"the filter ruled out files by metrics": 3}
    )
