"""Rows are read only if all that were erased can be told among them, by one column or another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateFileLost
from tidegate.model.erasure import Erasure
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.plan import Window, WindowKind
from tidegate.model.wire import pretty
from tidegate.pipeline.state.erasures import came_after, erasures, not_told
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 6, 1, tzinfo=UTC)
COLUMNS = ("email", "mail", "phone")


def instant(number: int) -> Instant:
    return Instant(str(number), NOW + timedelta(hours=number))


def window(start: int | None, kind: WindowKind = WindowKind.LOAD) -> Window:
    after = None if start is None else instant(start)
    return Window(9, InstantRange(after, instant((start or 0) + 1)), kind, None, "run")


def erasure(number: int, column: str | None, *instead: int, since: int | None = None) -> Erasure:
    columns = () if column is None else (column,)
    after = None if since is None else instant(since)
    kinds = ("text",) * len(columns)
    return Erasure(number, columns, kinds, "5a17", (), "ada", NOW, "", after, instead or None)


def left(known: list[Erasure], read: Window, *columns: str) -> int | None:
    """Return the number of an erasure that columns do not tell."""
    untold = {item.number for item in known if not {*item.columns} <= {*columns}}
    found = not_told(known, read, untold)
    return None if found is None else found.number


def test_erasure_by_another_column_tells_the_same_rows() -> None:
    known = [erasure(1, "email"), erasure(2, "mail", 1)]

    assert [left(known, window(5), *it) for it in (["email"], ["mail"], [])] == [None, None, 1]


def test_erasure_is_told_by_the_last_of_several_that_stand_one_for_the_other() -> None:
    known = [erasure(1, "email"), erasure(2, "mail", 1), erasure(3, "phone", 2)]

    assert [left(known, window(5), it) for it in COLUMNS] == [None, None, None]
    assert left(known, window(5)) == 1


def test_erasure_of_several_is_told_by_all_of_them_together() -> None:
    known = [erasure(1, "email"), erasure(2, "phone"), erasure(3, "mail", 1, 2)]

    assert left(known, window(5), "email", "phone") is None
    assert left(known, window(5), "mail") is None
    assert left(known, window(5), "email") == 2
    assert left(known, window(5), "phone") == 1


def test_column_that_later_rows_lack_does_not_tell_them() -> None:
    known = [erasure(1, "email"), erasure(2, "mail", 1), erasure(3, None, 1, since=4)]

    assert left(known, window(5), "mail") is None
    assert left(known, window(5), "email") == 2
    assert left(known, window(3), "email") is None


def test_erasure_of_several_is_not_told_by_those_of_them_whose_columns_rows_still_have() -> None:
    known = [
        erasure(1, "email"),
        erasure(2, "phone"),
        erasure(3, "mail", 1, 2),
        # What comes has no `phone`, and may have the rows of 2 all the same: 3 tells them.
        erasure(4, None, 2, since=4),
    ]

    assert left(known, window(5), "email") == 3
    assert left(known, window(5), "mail") is None


@pytest.mark.parametrize(
    ("start", "kind", "expected"),
    [
        (4, WindowKind.LOAD, True),
        (5, WindowKind.LOAD, True),
        (3, WindowKind.LOAD, False),
        (None, WindowKind.LOAD, False),
        *((5, kind, False) for kind in WindowKind if kind is not WindowKind.LOAD),
    ],
)
def test_window_comes_after_an_instant_if_it_has_nothing_of_before(
    start: int | None, kind: WindowKind, expected: bool
) -> None:
    assert came_after(window(start, kind), instant(4)) is expected


def test_window_that_begins_with_another_change_of_the_same_time_may_have_earlier_ones() -> None:
    assert not came_after(window(4), replace(instant(4), id="another"))


@pytest.mark.parametrize("column", ["mail", None])
def test_erasure_that_is_gone_is_missed_unless_its_rows_are_named_by_another(
    tmp_path: Path, column: str | None
) -> None:
    storage, work = LocalStorage(), str(tmp_path)
    later = erasure(2, column, 1, since=4)
    storage.make_dirs(layout.erasures_root(work))
    storage.write_once(layout.erasure_file(work, 2), pretty(later.to_json()))

    if column is None:
        # It only says that later rows lack a column: those that came before are named no more.
        with pytest.raises(StateFileLost):
            erasures(storage, work)
        assert erasures(storage, work, without=[1]) == (later,)
    else:
        assert erasures(storage, work) == (later,)


@given(
    known=st.lists(st.tuples(st.sampled_from(COLUMNS), st.sets(st.integers(1, 6))), max_size=6),
    columns=st.sets(st.sampled_from(COLUMNS)),
)
def test_rows_that_pass_are_told_by_an_erasure_that_covers_them(
    known: list[tuple[str, set[int]]], columns: set[str]
) -> None:
    made = [
        erasure(number, column, *sorted(it for it in instead if it < number))
        for number, (column, instead) in enumerate(known, 1)
    ]
    of = {item.number: item for item in made}

    def people(number: int) -> set[int]:
        """Erasures that stand instead of none name one person each; the others, all of theirs."""
        named = of[number].instead
        return {number} if named is None else set().union(*map(people, named))

    told = [people(item.number) for item in made if {*item.columns} <= columns]

    if left(made, window(5), *columns) is None:
        assert {it for item in made for it in people(item.number)} == set().union(*told)
