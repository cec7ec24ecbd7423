"""The fold of contributions equals an oracle that only counts rows, whatever came in between."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.counting import counting
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.model.publication import Publication, PublishedFile
from tidegate.target.content import propose

DAY = Partition((("dt", "2026-02-01"),))
LOAD, HISTORY, REBUILD = WindowKind.LOAD, WindowKind.HISTORY, WindowKind.REBUILD

Rows = tuple[int, ...]
Files = tuple[Rows, ...]

rows_of_files = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=2).map(tuple), max_size=3
).map(tuple)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(WindowKind), rows_of_files),
        st.tuples(st.just("replay"), st.integers(0, 9), rows_of_files),
        st.just(("publish",)),
    ),
    max_size=12,
)


@dataclass
class Life:
    """One partition: its contributions, what was published, and what each window holds now."""

    windows: list[tuple[WindowKind, str, Files]] = field(default_factory=list)
    plans: int = 0
    standing: Publication | None = None
    revision: int = 0
    table: set[str] = field(default_factory=set)
    """Names of the files that stand."""

    def step(self, step: tuple[object, ...]) -> None:
        match step:
            case ("publish",):
                self.publish()
            case ("replay", int(position), tuple(files)):
                if self.windows:
                    position %= len(self.windows)
                    self.windows[position] = (self.windows[position][0], self._plan(), files)
            case (WindowKind() as kind, tuple(files)):
                self.windows.append((kind, self._plan(), files))

    def contributions(self) -> list[Contribution]:
        return [
            Contribution(
                window=number,
                partition=DAY,
                plan_digest=plan,
                messages=("s",) if files else (),
                rows=sum(map(len, files)),
                bytes=0,
                event_times=EventTimes(),
                kind=kind,
            )
            for number, (kind, plan, files) in enumerate(self.windows, 1)
        ]

    def parts(self, contribution: Contribution) -> list[PublishedFile]:
        _, plan, files = self.windows[contribution.window - 1]
        return [
            PublishedFile(
                name=f"part-{plan}-{number}",
                length=len(rows),
                sha256=hashlib.sha256(repr(rows).encode()).hexdigest(),
                rows=len(rows),
                window=contribution.window,
                plan_digest=plan,
                staged=",".join(map(str, rows)),
            )
            for number, rows in enumerate(files)
        ]

    def following(self, contributions: list[Contribution] | None = None) -> Publication:
        found = self.contributions() if contributions is None else contributions
        return propose(DAY, self.standing, self.revision, found, self.parts, lambda _: False)

    def publish(self) -> Publication:
        following = self.following()
        if following.is_empty:
            return following
        assert not self.table & {file.name for file in following.adds}
        assert self.table >= {file.name for file in following.removes}
        self.table |= {file.name for file in following.adds}
        self.table -= {file.name for file in following.removes}
        assert self.table == {file.name for file in following.content}
        self.standing, self.revision = following, following.revision
        return following

    def _plan(self) -> str:
        """Return a new digest, of which later ones come first: no order of names hides another."""
        self.plans += 1
        return f"plan{99 - self.plans}"


def expected(life: Life) -> Counter[tuple[int, Rows]]:
    """Walk through the windows as they were taken; some begin anew, and know all history."""
    content: list[tuple[int, Rows]] = []
    anew = {REBUILD, WindowKind.RELOAD, WindowKind.RESTART, WindowKind.REPLACE}
    rebuilt = any(kind in anew for kind, _, _ in life.windows)
    for number, (kind, _, files) in enumerate(life.windows, 1):
        if kind in anew:
            content = []
        if kind is not HISTORY or not rebuilt:
            content += [(number, rows) for rows in files]
    return Counter(content)


def published(life: Life) -> Counter[tuple[int, Rows]]:
    files = life.standing.content if life.standing else ()
    return Counter((file.window, tuple(map(int, file.staged.split(",")))) for file in files)


@given(steps)
def test_fold_of_any_life_equals_the_oracle(life_steps: list[tuple[object, ...]]) -> None:
    life = Life()

    for step in life_steps:
        life.step(step)
    life.publish()

    assert published(life) == expected(life)


@given(steps)
def test_publishing_twice_equals_once(life_steps: list[tuple[object, ...]]) -> None:
    life = Life()
    for step in life_steps:
        life.step(step)
    life.publish()
    before = life.revision, life.table

    again = life.publish()

    assert again.is_empty
    assert (life.revision, life.table) == before


@given(steps, st.randoms())
def test_order_of_contributions_does_not_matter(
    life_steps: list[tuple[object, ...]], chance: object
) -> None:
    life = Life()
    for step in life_steps:
        life.step(step)
    shuffled = life.contributions()
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    assert life.following(shuffled).digest == life.following().digest
    assert life.following(shuffled).content == life.following().content


@given(steps)
def test_content_is_in_window_order_then_by_name(life_steps: list[tuple[object, ...]]) -> None:
    life = Life()
    for step in life_steps:
        life.step(step)

    keys = [(file.window, file.name) for file in life.following().content]

    assert keys == sorted(keys)


def test_what_a_replay_brings_to_one_of_two_windows_is_put_in_that_order_too() -> None:
    life = Life()
    life.step((LOAD, ((1,), (2,))))
    life.step((LOAD, ((3,),)))
    life.publish()
    life.step(("replay", 0, ((1,), (4,))))

    last = life.publish()

    assert [file.staged for file in last.content] == ["4", "1", "3"]


def test_replay_that_changes_one_of_two_files_keeps_the_other_for_good() -> None:
    """The kept file has the name of the plan before; a later window must not drop it."""
    life = Life()
    life.step((LOAD, ((1,), (2,))))
    life.publish()
    life.step(("replay", 0, ((1,), (3,))))
    life.publish()

    life.step((LOAD, ((4,),)))
    last = life.publish()

    assert published(life) == Counter([(1, (1,)), (1, (3,)), (2, (4,))])
    assert [len(last.adds), len(last.removes)] == [1, 0]


def test_replay_with_equal_bytes_makes_no_revision() -> None:
    life = Life()
    life.step((LOAD, ((1,), (2,))))
    life.publish()

    life.step(("replay", 0, ((2,), (1,))))

    assert life.publish().is_empty


@pytest.mark.parametrize(
    ("before", "after"), [(1, 2), (2, 1), (2, 3)], ids=["one-more", "one-less", "a-third"]
)
def test_replay_with_another_number_of_equal_files_changes_only_what_is_beyond(
    before: int, after: int
) -> None:
    """As many of the equal files stand on as both plans have; the bytes alone do not tell which."""
    life = Life()
    life.step((LOAD, ((1,),) * before))
    life.publish()
    life.step(("replay", 0, ((1,),) * after))

    last = life.publish()

    assert published(life) == Counter({(1, (1,)): after})
    assert len(last.adds) - len(last.removes) == after - before
    assert min(len(last.adds), len(last.removes)) == 0


def test_replay_that_leaves_no_rows_empties_the_partition() -> None:
    life = Life()
    life.step((LOAD, ((1,),)))
    life.publish()
    life.step(("replay", 0, ()))

    last = life.publish()

    assert (last.partition, last.revision, last.rows, last.content) == (DAY, 2, 0, ())


def test_messages_are_read_only_for_what_does_not_stand_yet() -> None:
    life = Life()
    life.step((LOAD, ((1,),)))
    life.publish()
    life.step((LOAD, ((2,),)))
    read: list[int] = []

    def parts(contribution: Contribution) -> list[PublishedFile]:
        read.append(contribution.window)
        return life.parts(contribution)

    propose(DAY, life.standing, life.revision, life.contributions(), parts, lambda _: False)

    assert read == [2]


@pytest.mark.parametrize(
    ("kinds", "left"),
    [
        pytest.param([LOAD, LOAD], [1, 2], id="loads alone"),
        pytest.param([LOAD, REBUILD, LOAD], [2, 3], id="rebuild resets what came before"),
        pytest.param([REBUILD, LOAD, REBUILD], [3], id="the newest rebuild counts"),
        pytest.param([HISTORY, LOAD, HISTORY], [1, 3, 2], id="history adds, and comes first"),
        pytest.param([LOAD, REBUILD, HISTORY], [2], id="a rebuild has read history taken later"),
    ],
)
def test_counting_leaves_out_what_a_rebuild_stands_in_for(
    kinds: list[WindowKind], left: list[int]
) -> None:
    life = Life()
    for kind in kinds:
        life.step((kind, ((1,),)))

    assert [item.window for item in counting(life.contributions())] == left


def test_rows_count_again_once_the_window_that_replaced_them_is_gone() -> None:
    life = Life()
    life.step((LOAD, ((1,),)))
    life.step((REBUILD, ((2,),)))
    life.publish()

    found = life.following(life.contributions()[:1])

    assert [file.staged for file in found.content] == ["1"]


@pytest.mark.parametrize("files", [((1,), (2,)), ((1,), (1,))], ids=["alone", "with an equal one"])
@pytest.mark.parametrize("place", [0, 1], ids=["first", "second"])
def test_file_that_is_gone_from_the_table_is_replaced_by_its_replay(
    files: Files, place: int
) -> None:
    life = Life()
    life.step((LOAD, files))
    lost = life.publish().content[place].name
    life.step(("replay", 0, files))

    found = propose(
        DAY,
        life.standing,
        life.revision,
        life.contributions(),
        life.parts,
        lambda file: file.name == lost,
    )

    assert [file.name for file in found.removes] == [lost]
    assert [file.plan_digest for file in found.adds] == [life.windows[0][1]]
    assert Counter(file.staged for file in found.content) == Counter(f"{key}" for (key,) in files)
