"""Which contributions count: an obvious fold over the windows, and no window counts twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.aside import OF_POLICY, Aside
from tidegate.model.counting import counting, effective, marks_of, plans_of, set_aside
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind

KINDS = st.sampled_from([WindowKind.LOAD, WindowKind.HISTORY, WindowKind.REBUILD])
MARKS = st.sampled_from([(None, None), *((why, None) for why in Aside), (Aside.UNDONE, "earlier")])


def brought(window: int, kind: WindowKind, mark: tuple[Aside | None, str | None]) -> Contribution:
    return Contribution(
        window=window,
        partition=Partition(()),
        plan_digest=f"plan{window}",
        messages=(),
        rows=1,
        bytes=0,
        event_times=EventTimes(),
        kind=kind,
        aside=mark[0],
        counts_as=mark[1],
    )


LISTS = st.lists(st.tuples(KINDS, MARKS), max_size=7).map(
    lambda items: [brought(number, *item) for number, item in enumerate(items, 1)]
)


def obvious(items: list[Contribution]) -> dict[int, str]:
    """Take window after window: a rebuild forgets all before it, and history for good."""
    content: dict[int, str] = {}
    was_rebuilt = False
    for item in items:
        if item.aside is not None and item.counts_as is None:
            continue
        if item.kind is WindowKind.REBUILD:
            content, was_rebuilt = {}, True
        if item.kind is not WindowKind.HISTORY or not was_rebuilt:
            content[item.window] = item.counts_as or item.plan_digest
    return content


@given(items=LISTS, turned=st.booleans())
def test_what_counts_is_the_obvious_fold_in_any_order(
    items: list[Contribution], *, turned: bool
) -> None:
    found = {item.window: item.plan_digest for item in counting(items[::-1] if turned else items)}

    assert found == obvious(items)


@given(items=LISTS)
def test_every_window_counts_or_is_set_aside_or_was_reset(items: list[Contribution]) -> None:
    counted = {item.window for item in counting(items)}
    aside = {item.window for item in set_aside(items) if item.counts_as is None}
    resets = [item.window for item in effective(items) if item.kind.replaces]

    assert not counted & aside
    left = {item.window for item in items} - counted - aside
    assert all(
        resets and (window < resets[-1] or items[window - 1].kind is WindowKind.HISTORY)
        for window in left
    )


@given(items=LISTS)
def test_plans_and_marks_tell_any_difference(items: list[Contribution]) -> None:
    assert set(plans_of(items)) | set(marks_of(items)) == {str(item.window) for item in items}


def test_policies_that_keep_rows_apart_have_reasons_of_their_own() -> None:
    assert len(set(OF_POLICY.values())) == len(OF_POLICY)
    assert not any(why.is_settled for why in OF_POLICY.values())
