"""`status` and `publish` do the same work for each partition, however many there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from small_lake import NOW, SmallLake, day, decide, known, load, publish
from tidegate.cli.status_view import partition_table
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.on_disk

HOLDING = {"rows": [{"name": "few", "where": "amount < 5", "on_failure": "hold"}]}


class CountingStorage(LocalStorage):
    """A local storage that counts which files are read."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "read", Counter())

    read: Counter[str]

    def read_bytes(self, path: str) -> bytes:
        self.read[path.rpartition("/windows/")[2]] += 1
        return super().read_bytes(path)


class Died(BaseException):
    """The process ends here."""


class WithoutMarker(LocalStorage):
    """A local storage of a process that dies before it writes a marker."""

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        if path.endswith("_SUCCESS"):
            raise Died
        return super().write_once(path, content, scratch)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, keys=HOLDING)


def _statements(pipeline: Pipeline) -> list[str]:
    """Return the statements of `status`, after it stored its answers."""
    pipeline.status(NOW)
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found.append(statement)

    event.listen(pipeline.ledger.engine, "before_cursor_execute", note)
    pipeline.status(NOW)
    event.remove(pipeline.ledger.engine, "before_cursor_execute", note)
    return found


@pytest.fixture
def every_state(lake: SmallLake) -> Pipeline:
    """A pipeline with a partition in each state."""
    pipeline = lake.pipeline()
    lake.commit({1: 2, 2: 1, 3: 3})
    load(pipeline)
    publish(pipeline, now=known(60))
    # Late; held; held and approved; held, approved and no longer as it was shown; rejected.
    lake.commit({1: 1})
    lake.commit({4: 1, 5: 2, 6: 1, 7: 1, 20: 1}, amount=9)
    for _ in range(2):
        load(pipeline)
    for number in (4, 5, 6, 7):
        pipeline.publish(day(number), "cli", known(60))
    decide(pipeline, day(5))
    decide(pipeline, day(6))
    decide(pipeline, day(7), approved=False)
    lake.commit({6: 1, 8: 2})
    load(pipeline)
    # Its commit is begun and ends before the marker.
    lake.commit({3: 2})
    load(pipeline)
    with pytest.raises(Died):
        lake.pipeline(WithoutMarker()).publish(day(3), "cli", known(60))
    return pipeline


def test_status_says_of_each_partition_what_explain_says(every_state: Pipeline) -> None:
    every_state.status(NOW)

    report = every_state.status(NOW)

    assert report is not None
    assert {item.name for item in report.partitions} == {"committed", "held", "late", "pending"}
    whys = [item.why.detail for item in report.partitions if item.why]
    assert any("a commit was begun" in why for why in whys)
    for item in report.partitions:
        assert item == every_state.explain(item.state.partition, NOW).report


def _whys(pipeline: Pipeline) -> dict[str, str]:
    """Return what `status` prints as the reason of each partition."""
    report = pipeline.status(NOW)
    assert report is not None
    table = partition_table(report.partitions)
    columns = {str(column.header): list(map(str, column.cells)) for column in table.columns}
    return dict(zip(columns["partition"], columns["why not yet"], strict=True))


def test_status_says_that_a_commit_has_begun(every_state: Pipeline) -> None:
    whys = _whys(every_state)
    begun = {name: why for name, why in whys.items() if "commit begun" in why}
    assert begun == {str(day(3)): "commit begun: the next publish finishes it"}

    publish(every_state, now=known(60))

    assert not any("commit begun" in why for why in _whys(every_state).values())


def test_evaluation_that_status_keeps_is_that_of_each_partition(every_state: Pipeline) -> None:
    pipeline = every_state
    known_before = pipeline.ledger.known_partitions()
    publications = pipeline.ledger.publications
    for item in known_before:
        target = item.state.partition
        assert item.state == pipeline.ledger.partitions.get(target)
        assert item.contributions == pipeline.ledger.contributions.to(target)
        assert item.newest == next(reversed(publications.revisions(target)), None)
        assert item.begun == publications.unrecorded(target)
        assert item.proposed == publications.proposed(target)
        assert item.approved == publications.approved(target)
    assert {
        name for item in known_before for name in ("begun", "approved") if getattr(item, name)
    } == {"begun", "approved"}

    pipeline.status(known(60))
    kept = {state.partition: state.why for state in pipeline.ledger.partitions.all()}

    for item in known_before:
        target = item.state.partition
        found = pipeline.evaluate(target, known(60))
        if item.state.pending == "pending" and item.begun is None and item.approved is None:
            assert found is not None
            stored = kept[target]
            assert stored is not None
            # The same answer is not written anew: the load gave some of them.
            assert replace(stored, evaluated_at=known(60)) == found
        else:
            assert kept[target] == item.state.why


def test_statements_of_status_do_not_grow_with_partitions(lake: SmallLake) -> None:
    pipeline = lake.pipeline()
    lake.commit({1: 1, 2: 1})
    load(pipeline)
    publish(pipeline, now=known(1.5))
    few = _statements(pipeline)

    lake.commit(dict.fromkeys(range(1, 25), 1))
    load(pipeline)
    publish(pipeline, now=known(9))

    report = pipeline.status(NOW)
    assert report is not None
    assert {item.name for item in report.partitions} >= {"committed", "pending"}
    many = _statements(pipeline)
    # Windows are compared with their files one by one: there is one more that has pending rows.
    assert len(many) <= len(few) + 2, Counter(many)


def test_message_and_announce_are_read_once_for_all_partitions(lake: SmallLake) -> None:
    lake.commit(dict.fromkeys(range(1, 14), 1))
    load(lake.pipeline())
    storage = CountingStorage()

    publish(lake.pipeline(storage), now=known(60))

    assert len(lake.ids()) == 12
    of_plan = {path: count for path, count in storage.read.items() if path.startswith("000001/")}
    assert {
        path.rpartition("/")[2]: count for path, count in of_plan.items() if "messages" not in path
    } == {"sealed.json": 1}
    assert {count for path, count in of_plan.items() if "messages" in path} == {1}
