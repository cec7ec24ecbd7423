"""What an upsert merges into what: applied changes give the rows of a fold from nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.counting import counting
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.model.publication import Publication, PublishedFile
from tidegate.target.merging import merging

DAY = Partition((("dt", "2026-02-01"),))
LOAD, HISTORY, REBUILD = WindowKind.LOAD, WindowKind.HISTORY, WindowKind.REBUILD


@dataclass
class Life:
    """One partition whose content is the sequence of the plans that were merged into it."""

    contributions: list[Contribution] = field(default_factory=list)
    base: Publication | None = None
    content: tuple[str, ...] = ()
    plans: int = 0

    def _plan(self) -> str:
        self.plans += 1
        return f"p{self.plans}"

    def take(self, kind: WindowKind) -> None:
        window = len(self.contributions) + 1
        self.contributions.append(
            Contribution(window, DAY, self._plan(), (), 1, 1, EventTimes(), kind=kind)
        )

    def replay(self, place: int) -> None:
        if self.contributions:
            place %= len(self.contributions)
            item = self.contributions[place]
            self.contributions[place] = replace(item, plan_digest=self._plan())

    def publish(self) -> bool:
        """Publish; whether anything was merged."""
        found = merging(self.base, self.contributions)
        if found is None:
            return False
        assert not (found.standing and found.going)
        merged = tuple(item.plan_digest for item in found.changes)
        self.content = (*(self.content if found.standing else ()), *merged)
        stands = (PublishedFile("f", 1, "", 1, 1, "", ""),)
        told = {str(item.window): item.plan_digest for item in self.contributions}
        self.base = Publication(DAY, 0, (), (), stands, told)
        return True


@given(
    st.lists(
        st.one_of(
            st.sampled_from([LOAD, LOAD, HISTORY, REBUILD]).map(lambda kind: ("take", kind)),
            st.integers(0, 9).map(lambda place: ("replay", place)),
            st.just(("publish", None)),
        ),
        max_size=14,
    )
)
def test_content_is_that_of_all_counting_changes_in_order(
    steps: list[tuple[str, WindowKind | int | None]],
) -> None:
    life = Life()
    for _, value in [*steps, ("publish", None)]:
        if isinstance(value, WindowKind):
            life.take(value)
        elif isinstance(value, int):
            life.replay(value)
        else:
            life.publish()

    assert life.content == tuple(item.plan_digest for item in counting(life.contributions))
    assert not life.publish()


@pytest.mark.parametrize(
    ("kinds", "then", "standing"),
    [
        pytest.param([LOAD], LOAD, True, id="what follows is applied"),
        pytest.param([LOAD], REBUILD, False, id="a rebuild begins anew"),
        pytest.param([LOAD], HISTORY, False, id="history comes before"),
        pytest.param([LOAD, REBUILD], LOAD, True, id="after a rebuild it goes on"),
        pytest.param([LOAD, REBUILD], HISTORY, None, id="a rebuild has read history"),
    ],
)
def test_changes_are_applied_only_after_all_that_was_merged(
    kinds: list[WindowKind], then: WindowKind, standing: bool | None
) -> None:
    life = Life()
    for kind in kinds:
        life.take(kind)
    life.publish()
    life.take(then)

    found = merging(life.base, life.contributions)

    assert (found and bool(found.standing)) == standing


def test_contribution_that_no_longer_counts_is_taken_out() -> None:
    life = Life()
    life.take(LOAD)
    life.take(LOAD)
    life.publish()

    found = merging(life.base, life.contributions[:1])

    assert found is not None
    assert not found.standing
    assert found.changes == tuple(life.contributions[:1])


def test_replay_of_a_window_after_a_rebuild_merges_what_the_rebuild_had_anew() -> None:
    life = Life()
    life.take(REBUILD)
    life.take(LOAD)
    life.publish()

    life.replay(1)
    life.publish()

    assert life.content == ("p1", "p3")


@pytest.mark.parametrize(
    ("kinds", "left", "is_made_anew"),
    [
        pytest.param([LOAD, REBUILD], slice(1, None), False, id="before the rebuild"),
        pytest.param([REBUILD, LOAD], slice(1), True, id="after the rebuild"),
    ],
)
def test_window_that_is_gone_is_taken_out_unless_a_rebuild_replaced_it(
    kinds: list[WindowKind], left: slice, is_made_anew: bool
) -> None:
    life = Life()
    for kind in kinds:
        life.take(kind)
    life.publish()
    rebuilt = life.contributions[left]

    found = merging(life.base, rebuilt)

    assert (found is not None) is is_made_anew
    assert found is None or (found.standing, found.changes) == ((), tuple(rebuilt))
