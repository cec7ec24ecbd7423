"""Columns that are gone, new, or of another type are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.errors import ColumnsDrifted, KindsMixed
from tidegate.model.plan import Pin
from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.pipeline.load.changed_columns import check_columns, check_kinds, notes_on_columns


def pin(*names: str) -> Pin:
    return Pin("table", None, tuple((name, "int64") for name in names))


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("ab", "ab", None),
        ("ab", "ba", None),
        ("a", "ab", "window has column b, which earlier ones had not: what was published before"),
        ("a", "abc", "has columns b, c, which earlier ones had not: what was published before la"),
        ("ab", "a", "had column b, this one has not: what was published before keeps it. "),
        ("ab", "ac", "before keeps it; this window has column c, which earlier ones had not"),
        ("abc", "de", "had columns a, b, c, this one has not: what was published before keeps th"),
    ],
)
def test_columns_that_are_gone_or_new_are_named(before: str, now: str, said: str | None) -> None:
    found = list(notes_on_columns(pin(*before), pin(*now)))

    assert len(found) == (said is not None)
    assert all(said in note for note in found if said)


def test_columns_of_other_types_are_named_with_both() -> None:
    (found,) = notes_on_columns(
        Pin("table", None, (("a", "int32"), ("b", "float"), ("c", "string"))),
        Pin("table", None, (("c", "string"), ("b", "double"), ("a", "int64"))),
    )

    assert "has column a as int64 (before: int32), column b as double (before: float)" in found


@pytest.mark.parametrize("kinds", ["", "both"])
def test_rows_come_with_kinds_always_or_never(kinds: str) -> None:
    columns = ["a", CHANGE_TYPE] if kinds else ["a"]
    config: Any = SimpleNamespace(name="orders")

    check_kinds(config, pin(*columns), columns)
    for before, now in ((["a"], ["a", CHANGE_TYPE]), (["a", CHANGE_TYPE], ["b"])):
        with pytest.raises(KindsMixed):
            check_kinds(config, pin(*before), now)


def config_of(evolve: str, *, may_widen: bool = True) -> Any:
    part_format = SimpleNamespace(kind=SimpleNamespace(may_widen=may_widen))
    target = SimpleNamespace(evolution=evolve, part_format=part_format)
    return SimpleNamespace(name="orders", target=target)


@pytest.mark.parametrize(
    ("evolve", "before", "now", "said"),
    [
        ("widen", "ab", "c", None),
        ("add_columns", "ab", "ab", None),
        ("add_columns", "ab", "cba", None),
        ("add_columns", "ab", "a", "column 'b' is gone"),
        ("none", "ab", "ab", None),
        ("none", "ab", "abc", "column 'c' (int64) is new"),
        ("none", "ab", "ba", "the columns stand in another order"),
        ("none", "ab", "bc", "column 'a' is gone; column 'c' (int64) is new"),
    ],
)
def test_columns_may_change_as_far_as_evolve_says(
    evolve: str, before: str, now: str, said: str | None
) -> None:
    if said is None:
        check_columns(config_of(evolve), pin(*before), pin(*now))
        return
    with pytest.raises(ColumnsDrifted) as refused:
        check_columns(config_of(evolve), pin(*before), pin(*now))
    assert refused.value.values["problem"] == said


@pytest.mark.parametrize("evolve", ["none", "add_columns"])
@pytest.mark.parametrize("may_widen", [True, False])
def test_column_of_another_type_is_refused_with_both_and_a_way_out(
    evolve: str, *, may_widen: bool
) -> None:
    before, now = (Pin("table", None, (("a", kind),)) for kind in ("int32", "int64"))

    with pytest.raises(ColumnsDrifted, match="column 'a' is int64 now, and was int32") as refused:
        check_columns(config_of(evolve, may_widen=may_widen), before, now)

    assert ("`target.evolve: widen`" in str(refused.value)) == may_widen
    assert "`tidegate reset orders`" in str(refused.value)
