"""Which commits a partition went through is told from its plans and from what stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.partition import Partition
from tidegate.model.publication import (
    CommitPlan,
    Outcome,
    Publication,
    PublishedFile,
    Verdict,
)
from tidegate.model.revision_folder import revision_folder
from tidegate.pipeline.state.places import Roots
from tidegate.pipeline.state.records import CommitFile
from tidegate.pipeline.upkeep.commit_chain import Chain, chain_of
from tidegate.storage import LocalStorage
from tidegate.target.content import with_content
from tidegate.target.layouts import LAYOUTS

if TYPE_CHECKING:
    import pytest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Partition((("dt", "2026-01-01"),))
MARKER = "_SUCCESS"


def _file(name: str) -> PublishedFile:
    return PublishedFile(name, 1, "00", 1, 1, "p1", f"staged/{name}")


@dataclass
class Life:
    """One partition: its plans in any order, and the files that stand."""

    folder: Path
    names: Any = field(default_factory=count)
    plans: list[CommitFile] = field(default_factory=list)
    recorded: list[CommitFile] = field(default_factory=list)
    content: tuple[PublishedFile, ...] = ()

    before: tuple[PublishedFile, ...] = ()
    """The content of the last revision but one."""

    def plan(self, adds: int, removes: int, *, is_stale: bool = False) -> CommitFile:
        """Write a plan from what stands, or stood before the last commit; nothing moves yet."""
        coming = tuple(_file(f"f{next(self.names)}") for _ in range(adds))
        content = self.before if is_stale else self.content
        base = len(self.recorded) - is_stale
        publication = with_content(
            Publication(DAY, base, coming, content[:removes], (), {"1": "p1"}), content
        )
        number = next(self.names)
        made = CommitPlan(
            pipeline="orders",
            publication=publication,
            policies=(),
            marker_name=MARKER,
            marker=f"marker {number}",
            watermark=None,
            source_range={},
            verdict=Verdict(Outcome.PASS, (), 0, "none", NOW),
            approval=None,
            owner="run",
            prepared_at=NOW,
            number=number,
        )
        self.plans.append(CommitFile(f"publications/{number}.json", made))
        return self.plans[-1]

    def begin(self, plan: CommitFile, moves: int | None = None) -> None:
        """Retract the marker and move files, all of them or the first few."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MARKER).unlink(missing_ok=True)
        publication = plan.plan.publication
        steps = [
            *((True, it) for it in publication.adds),
            *((False, it) for it in publication.removes),
        ]
        for comes, file in steps[:moves]:
            place = self.folder / file.name
            if comes:
                place.write_text("x")
            else:
                place.unlink()

    def commit(self, adds: int, removes: int) -> None:
        plan = self.plan(adds, removes)
        self.begin(plan)
        (self.folder / MARKER).write_text(plan.plan.marker)
        self.recorded.append(plan)
        self.before, self.content = self.content, plan.plan.publication.content

    def chain(self, order: Any = None) -> Chain:
        plans = self.plans if order is None else order(self.plans)
        roots = Roots(str(self.folder.parent), str(self.folder.parent / "work"))
        return chain_of(plans, roots, LocalStorage())


class Apart(Life):
    """One whose revisions have a directory each."""

    def home(self, plan: CommitFile) -> Path:
        made = plan.plan.publication
        return Path(revision_folder(str(self.folder), made.revision, made.digest))

    def begin(self, plan: CommitFile, moves: int | None = None) -> None:
        """Fill the directory of the plan, or begin to."""
        home = self.home(plan)
        home.mkdir(parents=True, exist_ok=True)
        for file in plan.plan.publication.content[:moves]:
            (home / file.name).write_text("x")

    def commit(self, adds: int, removes: int) -> None:
        plan = self.plan(adds, removes)
        self.begin(plan)
        (self.home(plan) / MARKER).write_text(plan.plan.marker)
        self.recorded.append(plan)
        self.before, self.content = self.content, plan.plan.publication.content

    def chain(self, order: Any = None) -> Chain:
        plans = self.plans if order is None else order(self.plans)
        work = str(self.folder.parent / "work")
        roots = Roots(str(self.folder.parent), work, layout=LAYOUTS["revisions"])
        return chain_of(plans, roots, LocalStorage())


STEPS = st.lists(
    st.tuples(st.sampled_from(["commit", "lapsed", "stale"]), st.integers(0, 2), st.integers(0, 2)),
    max_size=6,
)


def _lived(folder: Path, steps: list[tuple[str, int, int]], kind: type[Life] = Life) -> Life:
    life = kind(folder)
    for what, adds, removes in steps:
        # A commit without a file would change nothing, and is never written.
        if what == "commit":
            life.commit(adds + 1, removes)
        elif what == "lapsed" or life.recorded:
            life.plan(adds + 1, removes, is_stale=what == "stale")
    return life


@given(steps=STEPS, data=st.data(), kind=st.sampled_from([Life, Apart]))
def test_commits_are_found_among_plans_that_never_began(
    steps: list[tuple[str, int, int]],
    data: st.DataObject,
    kind: type[Life],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    life = _lived(tmp_path_factory.mktemp("target") / DAY.path, steps, kind)

    found = life.chain(lambda plans: data.draw(st.permutations(plans)))

    assert found == Chain(tuple(life.recorded), None)


@given(steps=STEPS, moves=st.integers(1, 4), kind=st.sampled_from([Life, Apart]))
def test_commit_that_died_half_way_is_finished_next(
    steps: list[tuple[str, int, int]],
    moves: int,
    kind: type[Life],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    life = _lived(tmp_path_factory.mktemp("target") / DAY.path, steps, kind)
    begun = life.plan(2, 2)
    life.begin(begun, moves)
    if life.recorded:
        # Whoever lost its fence may still write what it had worked out.
        life.plan(1, 2, is_stale=True)

    assert life.chain() == Chain(tuple(life.recorded), begun)


def test_partition_without_a_plan_has_no_commit(tmp_path: Path) -> None:
    assert Life(tmp_path / DAY.path).chain() == Chain((), None)


def test_plan_that_never_began_is_no_commit(tmp_path: Path) -> None:
    life = Life(tmp_path / DAY.path)
    life.plan(1, 0)

    assert life.chain() == Chain((), None)
