"""A partition goes back to the content before its current revision, and forward again."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.test_late_data import check_restored, rebuild, replay
from small_lake import DAY, NOW, SmallLake, day, interval, load, publish
from tidegate.errors import NothingToUndo, PublicationLapsed, UndoImpossible
from tidegate.model.aside import Aside
from tidegate.model.publication import Approval

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.run import Committed
    from tidegate.pipeline import Pipeline

DAY_1 = "dt=2026-02-01"
ADA = Approval(approved=True, by="ada", at=NOW, comment="doubled")


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def published(lake: SmallLake, *rows: int) -> Pipeline:
    """Publish a revision of the first day for each number of rows."""
    opened = lake.pipeline()
    for number in rows:
        lake.commit({1: number, 2: 1})
        load(opened, interval(lake.commits))
        publish(opened)
    return opened


def undo(opened: Pipeline, revision: int) -> Committed:
    return opened.undo(day(1), revision, ADA, "cli", NOW)


def marker(lake: SmallLake) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lake.target / DAY_1 / "_SUCCESS").read_bytes())
    return found


def ids(lake: SmallLake) -> list[int]:
    return lake.ids()[DAY_1]


def test_undo_publishes_the_content_before_as_a_new_revision(lake: SmallLake) -> None:
    opened = published(lake, 2, 3)
    first = [1, 2]

    done = undo(opened, 2)

    assert (done.revision, done.rows, done.windows) == (3, 2, (1,))
    assert ids(lake) == first
    said = marker(lake)
    assert (said["revision"], said["restores"], said["approval"]) == (
        3,
        1,
        {"by": "ada", "comment": "doubled"},
    )
    assert opened.explain(day(1), NOW).report.rows_aside == {"undone": 3}
    assert opened.ledger.partitions.get(day(1)).pending == "none"
    check_restored(opened)


def test_rows_that_were_undone_stay_out_of_later_revisions(lake: SmallLake) -> None:
    opened = published(lake, 2, 3)
    undo(opened, 2)
    more = lake.commit({1: 1})
    load(opened, interval(3))

    publish(opened)

    assert ids(lake) == [1, 2, *more]
    check_restored(opened)


def test_reopen_brings_back_what_was_undone_even_after_gc(lake: SmallLake) -> None:
    opened = published(lake, 2, 3)
    undo(opened, 2)
    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))

    opened.reopen(day(1), NOW)
    publish(opened)

    assert ids(lake) == [1, 2, 4, 5, 6]
    assert opened.ledger.partitions.get(day(1)).revision == 4
    check_restored(opened)


def test_undo_twice_goes_back_two(lake: SmallLake) -> None:
    opened = published(lake, 1, 1, 1)

    undo(opened, 3)
    once = ids(lake)
    undo(opened, 4)

    assert (once, ids(lake)) == ([1, 3], [1])
    check_restored(opened)
    with pytest.raises(NothingToUndo, match="its content is that of revision 1, the first"):
        undo(opened, 5)


def test_undo_after_a_reopen_goes_back_again(lake: SmallLake) -> None:
    opened = published(lake, 1, 1, 1)
    undo(opened, 3)
    undo(opened, 4)
    opened.reopen(day(1), NOW)
    publish(opened)
    assert ids(lake) == [1, 3, 5]

    undo(opened, 6)

    assert ids(lake) == [1]
    check_restored(opened)


def test_undo_of_a_replay_brings_back_the_rows_of_the_earlier_plan(lake: SmallLake) -> None:
    published(lake, 3, 1)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id <> 2"}])
    replay(changed, 1)
    publish(changed)
    assert ids(lake) == [1, 3, 5]

    undo(changed, 3)
    lake.commit({1: 1})
    load(changed, interval(3))
    publish(changed)

    assert ids(lake) == [1, 2, 3, 5, 7]
    check_restored(changed)
    changed.reopen(day(1), NOW)
    publish(changed)
    assert ids(lake) == [1, 3, 5, 7]
    check_restored(changed)


def test_undo_of_a_replay_of_a_window_that_had_no_rows_sets_it_aside(lake: SmallLake) -> None:
    opened = published(lake, 2, 3)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id > 3"}])
    for without in (changed, opened):
        replay(without, 1)
        publish(without)
    assert ids(lake) == [1, 2, 4, 5, 6]

    undo(opened, 4)

    (first, _second) = opened.ledger.contributions.to(day(1))
    assert (first.aside, first.counts_as, first.rows) == (Aside.UNDONE, None, 2)
    more = lake.commit({1: 1})
    load(opened, interval(3))
    publish(opened)
    assert ids(lake) == [4, 5, 6, *more]
    check_restored(opened)
    opened.reopen(day(1), NOW)
    publish(opened)
    assert ids(lake) == [1, 2, 4, 5, 6, *more]
    check_restored(opened)


def test_undo_takes_the_place_of_half_a_file_that_a_death_left(lake: SmallLake) -> None:
    published(lake, 3, 1)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id <> 2"}])
    replay(changed, 1)
    publish(changed)
    (file,) = changed.undone(day(1)).adds
    staged = lake.work / file.staged
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.write_bytes(b"half")

    undo(changed, 3)

    assert ids(lake) == [1, 2, 3, 5]
    check_restored(changed)


def test_undo_of_a_rebuild_brings_back_what_it_replaced(lake: SmallLake) -> None:
    published(lake, 2, 1)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id <> 2"}])
    rebuild(changed, 1)
    publish(changed)
    assert ids(lake) == [1, 4]

    undo(changed, 3)
    lake.commit({1: 1})
    load(changed, interval(3))
    publish(changed)

    assert ids(lake) == [1, 2, 4, 6]
    check_restored(changed)
    changed.reopen(day(1), NOW)
    publish(changed)
    assert ids(lake) == [1, 4, 6]
    check_restored(changed)


def test_replay_of_an_undone_window_stays_out_until_it_is_reopened(lake: SmallLake) -> None:
    opened = published(lake, 2, 3)
    undo(opened, 2)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id <> 5"}])
    replay(changed, 2)

    publish(changed)
    out = ids(lake)
    check_restored(changed)
    changed.reopen(day(1), NOW)
    publish(changed)

    assert (out, ids(lake)) == ([1, 2], [1, 2, 4, 6])
    check_restored(changed)


def test_rebuild_after_an_undo_reads_everything_again(lake: SmallLake) -> None:
    opened = published(lake, 2, 3)
    undo(opened, 2)

    rebuild(opened, 1)
    publish(opened)

    assert ids(lake) == [1, 2, 4, 5, 6]
    assert opened.explain(day(1), NOW).report.rows_aside is None
    check_restored(opened)


@pytest.mark.follows("UndoImpossible")
def test_undo_with_files_swept_is_refused_and_a_rebuild_reads_them_again(lake: SmallLake) -> None:
    published(lake, 3, 1)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id <> 2"}])
    replay(changed, 1)
    publish(changed)
    changed.sweep(changed.garbage(NOW + 900 * DAY, timedelta(0)))
    before = lake.stamps()

    with pytest.raises(UndoImpossible, match="a file of revision 2, was deleted"):
        undo(changed, 3)

    assert lake.stamps() == before
    assert changed.ledger.partitions.get(day(1)).pending == "none"
    opened = lake.pipeline()
    rebuild(opened, 1)
    publish(opened)
    assert ids(lake) == [1, 2, 3, 5]


def test_undo_of_another_revision_than_the_one_seen_is_refused(lake: SmallLake) -> None:
    opened = published(lake, 1, 1, 1)

    with pytest.raises(PublicationLapsed, match="revision 3 stands since"):
        undo(opened, 2)

    assert ids(lake) == [1, 3, 5]


def test_undo_with_a_rebuild_pending_is_refused(lake: SmallLake) -> None:
    opened = published(lake, 1, 1)
    rebuild(opened, 1)

    with pytest.raises(PublicationLapsed, match="read again since"):
        undo(opened, 2)

    publish(opened)
    assert ids(lake) == [1, 3]


def test_undo_with_a_replay_of_what_stays_pending_is_refused(lake: SmallLake) -> None:
    published(lake, 2, 1)
    changed = lake.pipeline(rows=[{"name": "few", "where": "id <> 2"}])
    replay(changed, 1)

    with pytest.raises(PublicationLapsed, match="from window 1"):
        undo(changed, 2)

    publish(changed)
    assert ids(lake) == [1, 4]


def test_rows_that_wait_when_a_revision_is_undone_are_published_next(lake: SmallLake) -> None:
    opened = published(lake, 1, 1)
    more = lake.commit({1: 1})
    load(opened, interval(3))

    undo(opened, 2)
    alone = ids(lake)
    publish(opened)

    assert (alone, ids(lake)) == ([1], [1, *more])
    check_restored(opened)


@pytest.mark.follows("NothingToUndo")
def test_partition_without_a_revision_has_nothing_to_undo_and_explain_says_why(
    lake: SmallLake,
) -> None:
    lake.commit({1: 1})
    opened = lake.pipeline()
    load(opened)

    with pytest.raises(NothingToUndo, match="it has no revision"):
        undo(opened, 0)

    assert opened.explain(day(1), NOW).revisions == ()
