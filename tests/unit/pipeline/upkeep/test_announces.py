"""Which announces were, in which order, and which one is lost: told from the files that stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.model.instant import Instant, InstantRange
from tidegate.model.plan import Window, WindowKind
from tidegate.pipeline.upkeep.announces import tell

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def instant(number: int | None) -> Instant | None:
    return None if number is None else Instant(f"s{number}", NOW + timedelta(hours=number))


def file(
    sequence: int,
    number: int,
    start: int | None,
    end: int,
    kind: WindowKind = WindowKind.LOAD,
    plan: str = "p1",
) -> Any:
    """Make a sealed file; the first window of its pipeline began at the beginning."""
    taken = Window(sequence, InstantRange(instant(start), instant(end)), kind, None, "run")  # type: ignore[arg-type]
    sealed = SimpleNamespace(
        window=taken, number=number, announced_at=NOW, plan_digest=plan, first_start=None
    )
    return SimpleNamespace(plan_uri=plan, sealed=sealed)


def commit(number: int, *windows: int, plan: str = "p1") -> Any:
    publication = SimpleNamespace(contributions={str(window): plan for window in windows})
    made = SimpleNamespace(number=number, prepared_at=NOW, publication=publication)
    return SimpleNamespace(plan=made)


def told(*files: Any) -> list[tuple[int, int]]:
    return [(item.sealed.window.sequence, item.sealed.number) for item in tell(files).files]


FIRST, SECOND, THIRD = file(1, 1, None, 1), file(2, 2, 1, 2), file(3, 3, 2, 3)


def test_windows_that_join_on_lack_nothing() -> None:
    announces = tell([THIRD, FIRST, SECOND])

    assert announces.missing is None
    assert told(THIRD, FIRST, SECOND) == [(1, 1), (2, 2), (3, 3)]
    assert tell([]).missing is None


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        pytest.param([FIRST, THIRD], 2, id="in the middle"),
        pytest.param([SECOND, THIRD], 1, id="the first"),
        pytest.param([THIRD], 2, id="two of them, the newer one"),
        pytest.param([FIRST, file(3, 3, None, 2, WindowKind.REBUILD)], 2, id="before a rebuild"),
        pytest.param(
            [FIRST, file(3, 3, 2, 3, WindowKind.REBUILD)], 2, id="before a rebuild of changed files"
        ),
        pytest.param(
            [FIRST, file(2, 2, 1, 3, WindowKind.REBUILD), file(3, 3, 3, 4)],
            None,
            id="beside a rebuild of changed files",
        ),
        pytest.param([FIRST, file(3, 3, 5, 6, WindowKind.HISTORY)], None, id="before history"),
        pytest.param([FIRST, file(3, 3, None, 3, WindowKind.RELOAD)], None, id="before a reload"),
        pytest.param([FIRST, SECOND], None, id="the last"),
        pytest.param([FIRST, file(3, 3, 1, 2)], None, id="given back"),
    ],
)
def test_window_without_which_the_others_do_not_join_on_is_missing(
    files: list[Any], missing: int | None
) -> None:
    assert tell(files).missing == missing


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([file(2, 9, 1, 3)], id="longer"),
        pytest.param([file(2, 9, None, 1, WindowKind.REBUILD)], id="rebuild"),
        pytest.param([file(2, 9, 1, 3, WindowKind.REBUILD)], id="rebuild of changed files"),
        pytest.param([file(2, 9, None, 3, WindowKind.RELOAD)], id="reload"),
        pytest.param([file(3, 9, 1, 3)], id="under the next number"),
    ],
)
def test_window_that_a_later_one_contradicts_never_was(later: list[Any]) -> None:
    files = [FIRST, SECOND, *later]

    assert told(*files) == [(1, 1), (later[0].sealed.window.sequence, 9)]
    assert tell(files).missing is None


def test_announces_of_one_window_are_all_told() -> None:
    assert told(FIRST, SECOND, file(1, 5, None, 1, plan="p2")) == [(1, 1), (2, 2), (1, 5)]


def test_plan_that_the_ledger_knows_and_no_file_tells_of_is_lacking() -> None:
    announces = tell([FIRST, SECOND])

    assert announces.lacks({1: "p1", 2: "p1"}, []) is None
    assert announces.lacks({1: "p1", 3: "p1", 2: "p2"}, []) == (2, "p2")


def test_plan_that_was_counted_last_and_no_file_tells_of_is_lacking() -> None:
    announces = tell([FIRST, SECOND])

    assert announces.lacks({}, [commit(4, 1, 2)]) is None
    assert announces.lacks({}, [commit(4, 1, 2, 3)]) == (3, "p1")
    assert announces.lacks({}, [commit(4, 1, 2, plan="p2")]) == (1, "p2")
    assert announces.lacks({}, [commit(4, 1, 2, plan="p2"), commit(5, 1, 2)]) is None


def test_plan_that_was_counted_before_its_window_was_announced_anew_is_not_wanted() -> None:
    announces = tell([FIRST, file(2, 9, 1, 2, plan="p2")])

    assert announces.lacks({2: "p2"}, [commit(4, 2)]) is None
    assert announces.lacks({2: "p2"}, [commit(10, 2)]) == (2, "p1")


def test_window_was_announced_before_later_windows_and_before_commits_that_count_it() -> None:
    announces = tell([FIRST, THIRD, file(2, 9, 1, 2), file(3, 11, 2, 3, plan="p2")])

    assert announces.turns([]) == {1: (1, NOW), 2: (3, NOW), 3: (3, NOW)}
    assert announces.turns([commit(2, 1, 2)]) == {1: (1, NOW), 2: (2, NOW), 3: (3, NOW)}
    assert announces.turns([commit(2, 1, 7)]) == {1: (1, NOW), 2: (3, NOW), 3: (3, NOW)}


def knows(item: Any, plan: str = "p1") -> Any:
    """Make what a ledger knows of a window."""
    window, number = item.sealed.window, item.sealed.number
    return SimpleNamespace(window=window, number=number, plan_digest=plan)


def test_ledger_that_lacks_a_replay_is_believed() -> None:
    """What it knows beside may be lost, and has to be asked for."""
    replayed = file(1, 9, None, 1, plan="p2")

    assert not tell([replayed, SECOND]).overtook([knows(FIRST), knows(SECOND), knows(THIRD)])
    assert not tell([FIRST, SECOND, THIRD]).overtook([knows(FIRST), knows(SECOND)])


def test_ledger_that_knows_another_window_by_a_number_was_replaced() -> None:
    other = file(2, 9, None, 1, WindowKind.REBUILD, plan="p2")

    assert tell([FIRST, other]).overtook([knows(FIRST), knows(SECOND)])
    # The newer one of the two is the ledger's.
    assert not tell([FIRST, other]).overtook([knows(FIRST), knows(file(2, 12, 1, 2))])


def test_ledger_that_knows_windows_before_a_new_beginning_is_of_before_a_reset() -> None:
    anew = file(4, 9, None, 5)

    assert tell([anew]).overtook([knows(FIRST), knows(SECOND)])
    assert not tell([anew]).overtook([knows(file(3, 3, 0, 1, WindowKind.HISTORY))])
    assert not tell([anew]).overtook([knows(file(3, 3, None, 1, WindowKind.REBUILD))])
    assert not tell([THIRD]).overtook([knows(FIRST), knows(SECOND)])
