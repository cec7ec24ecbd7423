"""Items in threads: results in order, a bound on what is begun, and an end that leaves nothing."""

from __future__ import annotations

import threading
import time

import pytest

from tidegate.pipeline.publish.side_by_side import side_by_side


def test_results_come_in_the_order_of_the_items_and_no_more_are_at_work_than_said() -> None:
    guard, at_work, most = threading.Lock(), [0], [0]

    def work(item: int) -> int:
        with guard:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        time.sleep(0.002 * (item % 3))
        with guard:
            at_work[0] -= 1
        return -item

    assert list(side_by_side(work, range(50), 4)) == [-item for item in range(50)]
    assert 1 < most[0] <= 4


def test_one_at_once_is_done_when_it_is_asked_for() -> None:
    done: list[int] = []

    found = side_by_side(lambda item: done.append(item) or item, [1, 2, 3], 1)

    assert done == []
    assert next(found) == 1
    assert done == [1]


def test_who_takes_no_more_waits_for_what_was_begun_and_nothing_else_begins() -> None:
    begun, done = list[int](), list[int]()

    def work(item: int) -> int:
        begun.append(item)
        time.sleep(0.01)
        done.append(item)
        return item

    found = side_by_side(work, range(1000), 4)
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]

    assert sorted(begun) == sorted(done)
    assert len(done) < 40


def test_error_ends_everything() -> None:
    def work(item: int) -> int:
        if item == 3:
            msg = "no"
            raise ValueError(msg)
        return item

    found = side_by_side(work, range(1000), 2)

    with pytest.raises(ValueError, match="no"):
        list(found)


def test_what_has_not_begun_when_one_fails_never_begins() -> None:
    begun, is_told = list[int](), threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            threading.Timer(0.3, is_told.set).start()
            msg = "no"
            raise ValueError(msg)
        # One thread is here; the other may come from the item that failed, before it is told.
        is_told.wait(30)

    with pytest.raises(ValueError, match="no"):
        list(side_by_side(work, range(1000), 2))

    assert set(begun) <= {0, 1, 2}


def test_no_more_than_a_few_are_ahead_of_the_first_that_is_not_done() -> None:
    begun, last, seen = list[int](), threading.Event(), list[int]()

    def work(item: int) -> int:
        begun.append(item)
        if item == 4:
            last.set()
        if item == 0:
            assert last.wait(30)
            time.sleep(0.1)
            seen.extend(begun)
        return item

    assert list(side_by_side(work, range(100), 2)) == list(range(100))
    assert sorted(seen) == [0, 1, 2, 3, 4]
