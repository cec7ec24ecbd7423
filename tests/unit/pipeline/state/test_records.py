"""Files of the work directory tell announces, commits, verdicts and decisions, each as its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateFileDamaged
from tidegate.model.abandoned import AbandonedPlan
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import Window, WindowKind
from tidegate.model.publication import (
    CommitPlan,
    DecisionRecord,
    GateRecord,
    Outcome,
    Publication,
    Verdict,
)
from tidegate.model.sealed import SealedWindow
from tidegate.model.watermark import Evaluation, WatermarkStep
from tidegate.model.wire import Value, pretty
from tidegate.pipeline.state.abandoned import is_abandoned
from tidegate.pipeline.state.places import Roots
from tidegate.pipeline.state.records import Announced, Records
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Names that look like kinds of records, and one that begins like another.
PARTITIONS = [
    Partition((("dt", "2026-01-01"), ("region", name))) for name in ("a", "a.gate", "1-a.json")
]
VERDICT = Verdict(Outcome.PASS, (), 0, "none", NOW)


def _publication(partition: Partition, revision: int) -> Publication:
    return Publication(partition, revision - 1, (), (), (), {})


def _plan(partition: Partition, revision: int, number: int) -> CommitPlan:
    return CommitPlan(
        pipeline="orders",
        publication=_publication(partition, revision),
        policies=(),
        marker_name="_SUCCESS",
        marker="{}",
        watermark=None,
        source_range={},
        verdict=VERDICT,
        approval=None,
        owner="run",
        prepared_at=NOW,
        number=number,
    )


def _gate(partition: Partition, revision: int, number: int) -> GateRecord:
    return GateRecord(_publication(partition, revision), VERDICT, None, {}, None, number)


def _decision(partition: Partition, revision: int, number: int) -> DecisionRecord:
    why = Evaluation(True, None, f"revision {revision}", NOW)
    return DecisionRecord(partition, "digest", None, why, number)


KINDS: dict[str, tuple[Any, Any]] = {
    "commits": (_plan, layout.publication_file),
    "verdicts": (_gate, layout.gate_file),
    "decisions": (_decision, layout.decision_file),
}
WRITTEN = st.lists(
    st.tuples(
        st.sampled_from(sorted(KINDS)),
        st.sampled_from(PARTITIONS),
        st.integers(1, 12),
        st.integers(0, 120),
    ),
    max_size=8,
    unique_by=lambda it: it,
)


def _records(work: Path) -> Records:
    return Records(Roots(str(work / "target"), str(work)), LocalStorage())


def _put(work: Path, path: str, value: Value) -> None:
    LocalStorage().write_once(path, pretty(value.to_json()))


def _write(work: Path, kind: str, partition: Partition, revision: int, number: int) -> None:
    make, name = KINDS[kind]
    record = f"abc-{number}" if number else "abc"
    _put(work, name(str(work), partition, revision, record), make(partition, revision, number))


@given(written=WRITTEN)
def test_records_come_back_each_as_its_kind(
    written: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    work = tmp_path_factory.mktemp("work")
    for item in written:
        _write(work, *item)

    found = _records(work)

    def texts(kind: str) -> list[str]:
        made = [KINDS[kind][0](*item) for what, *item in written if what == kind]
        return sorted(value.to_text() for value in made)

    assert sorted(it.plan.to_text() for it in found.commits()) == texts("commits")
    assert sorted(it.to_text() for it in found.verdicts()) == texts("verdicts")
    assert sorted(it.to_text() for it in found.decisions()) == texts("decisions")


@given(written=WRITTEN, partition=st.sampled_from(PARTITIONS))
def test_newest_of_a_partition_is_by_number_and_not_by_name(
    written: list[Any], partition: Partition, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Revision 10 is written after 9, and number 100 after 99."""
    work = tmp_path_factory.mktemp("work")
    for item in written:
        _write(work, *item)

    commit = _records(work).newest_commit(partition)
    number, path = _records(work).newest_number(partition)

    own = [it for it in written if it[1] == partition]
    plans = [(revision, number) for kind, _, revision, number in own if kind == "commits"]
    assert (commit and (commit.publication.revision, commit.number)) == max(plans, default=None)
    assert number == max((number for *_, number in own), default=0)
    assert path.startswith("publications/") or not own


def _seal(work: Path, sequence: int, plan: str, number: int, *, again: bool = False) -> None:
    end = Instant(f"s{number}", NOW)
    window = Window(sequence, InstantRange(None, end), WindowKind.LOAD, None, "run")
    sealed = SealedWindow(
        pipeline="orders",
        ledger_id="id",
        window=window,
        plan_digest=plan,
        contributions=(),
        watermark=WatermarkStep(None, None, 0.0, 0, False, None),
        summary=RunSummary(),
        announced_at=NOW,
        first_start=None,
        source_identity="uuid",
        fingerprint={},
        number=number,
    )
    root = layout.plan_root(str(work), sequence, plan)
    _put(work, layout.sealed_file(root, number if again else None), sealed)


def test_announces_of_a_window_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    _seal(tmp_path, 3, "p-b", 9)
    _seal(tmp_path, 3, "p-a", 10)
    _seal(tmp_path, 3, "p-b", 100, again=True)
    _seal(tmp_path, 4, "p-c", 11)

    found = _records(tmp_path).sealed(3)

    assert [(it.sealed.number, it.plan_uri.rpartition("/")[2]) for it in found] == [
        *((9, "p-b"), (10, "p-a"), (100, "p-b"))
    ]
    assert _records(tmp_path).newest_announced(3) == Announced(3, "p-b", 100)


@pytest.mark.parametrize(
    ("abandoned", "announced", "counts"),
    [
        pytest.param([3], [], False, id="not announced"),
        pytest.param([3], [2], False, id="announced late by a process that had lost it"),
        pytest.param([3], [4], True, id="taken over and announced since"),
        pytest.param([3, 5], [4], False, id="abandoned again"),
        pytest.param([3, 5], [2, 6], True, id="announced after the last time"),
        pytest.param([], [2], True, id="never abandoned"),
    ],
)
def test_plan_counts_if_it_was_announced_after_it_was_abandoned(
    tmp_path: Path, abandoned: list[int], announced: list[int], *, counts: bool
) -> None:
    root = layout.plan_root(str(tmp_path), 1, "p")
    window = Window(1, InstantRange(None, Instant("s1", NOW)), WindowKind.LOAD, None, "run")
    for index, number in enumerate(abandoned):
        record = AbandonedPlan("orders", window, "p", number, "me", "", NOW)
        _put(tmp_path, layout.abandoned_file(root, number if index else None), record)
    for index, number in enumerate(announced):
        _seal(tmp_path, 1, "p", number, again=index > 0)

    assert is_abandoned(LocalStorage(), root) is not counts


def test_windows_come_newest_first(tmp_path: Path) -> None:
    for sequence in (2, 1_000_000, 10, 999_999):
        _seal(tmp_path, sequence, "p", sequence)
    (tmp_path / "windows" / "notes").mkdir()

    assert list(_records(tmp_path).windows()) == [1_000_000, 999_999, 10, 2]


def test_window_that_was_never_announced_has_no_announce(tmp_path: Path) -> None:
    (tmp_path / "windows" / "000001" / "p").mkdir(parents=True)

    assert _records(tmp_path).sealed(1) == []
    assert _records(tmp_path).newest_announced(1) is None
    assert _records(tmp_path).newest_number(PARTITIONS[1]) == (0, "")


def test_record_that_was_cut_is_damaged(tmp_path: Path) -> None:
    _write(tmp_path, "commits", PARTITIONS[1], 1, 5)
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(file.read_bytes()[:-20])

    with pytest.raises(StateFileDamaged):
        list(_records(tmp_path).commits())


def test_newest_commit_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    partition = PARTITIONS[0]
    older, newest = _plan(partition, 1, 1), _plan(partition, 2, 5)
    for plan in (older, newest):
        made = plan.publication
        name = f"{made.digest}-{plan.number}"
        path = layout.publication_file(str(tmp_path), partition, made.revision, name)
        _put(tmp_path, path, plan)
    found = _records(tmp_path)

    assert found.newest_commit(partition, known=older) == newest
    assert found.newest_commit(partition, known=replace(newest, number=4)) == newest
    assert found.newest_commit(partition, known=newest) is newest
    # What was listed a moment ago is all there is.
    assert found.newest_commit(partition, []) is None
