"""A pipeline that reads by markers takes each row of another one once, whatever that one does.

That one joins its files, takes revisions back, erases and replaces rows; how often the reader looks
is up to it (PC-R09).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shlex
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.test_erase import erase
from behaviour.test_upsert import CHANGES, UPSERT, ChangingLake
from small_lake import (
    NOW,
    SmallLake,
    day,
    interval,
    known,
    load,
    local,
    merged,
    publish,
)
from tidegate import read_committed
from tidegate.cli.first_file import draft_pipeline
from tidegate.errors import (
    MarkedFilesReplaced,
    NothingToUndo,
    RebuildTooNarrow,
    SourceRewritten,
    UndoImpossible,
)
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.source.files import walk
from tidegate.target.compaction import CompactionRule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

PROCESS_TIME: dict[str, Any] = {"commit": {"trigger": "process-time"}}
RULE = CompactionRule(small_file=1 << 20, target_size=128 << 20)
JOINING: dict[str, Any] = {"target": {"compaction": {"small_file": "1MiB"}}}
ADA = Approval(approved=True, by="ada", at=NOW, comment="by mistake")
DAY_1 = "dt=2026-02-01"
BY_DAY: dict[str, Any] = {"partition_by": {"dt": "dt"}}
BY_AMOUNT: dict[str, Any] = {"partition_by": {"dt": "dt", "amount": "amount"}}


class Chain:
    """A pipeline and one that reads what it publishes."""

    def __init__(self, above: SmallLake, root: Path, target: dict[str, Any], **keys: Any) -> None:
        self.above = above
        self.below = SmallLake(root, keys=merged(PROCESS_TIME, {"target": target}))
        self.below.keys = merged(self.below.keys, keys)
        self.below.source = {
            "kind": "files",
            "path": str(above.target),
            "partition_by": {"dt": "date"},
            "require_marker": True,
        } | keys.get("source", {})
        self.opened = self.below.pipeline()

    def bring(self, days: dict[int, int], amount: int = 1, **keys: Any) -> Pipeline:
        """Publish a revision of some days above."""
        opened = self.above.pipeline(**keys)
        self.above.commit(days, amount)
        load(opened)
        publish(opened)
        return opened

    def take(self) -> list[str]:
        """Load and publish below; what is refused is read again as it is told."""
        followed = []
        while True:
            try:
                load(self.opened)
                break
            except (MarkedFilesReplaced, SourceRewritten) as refused:
                followed.append(type(refused).__name__)
                before = rows(self.below)
                self.rebuild(*told(refused))
                publish(self.opened)
                # Nothing is missing for as long as a load takes.
                assert before & rows(self.above) <= rows(self.below)
        publish(self.opened)
        return followed

    def rebuild(self, *partitions: str) -> None:
        wanted = [self.opened.parse_partition(partition) for partition in partitions]
        planned = self.opened.rebuild(wanted, Run("again", "cli"), NOW)
        self.opened.finish_load(planned, NOW, local)


def told(refused: Exception) -> list[str]:
    """Return the partitions of the command that an error prints."""
    found = re.search(r"`tidegate rebuild orders ([^`]+)`", str(refused))
    assert found, refused
    return shlex.split(found[1])


def rows(lake: SmallLake) -> Counter[tuple[int, int]]:
    dataset = read_committed(lake.target)
    if "id" not in dataset.schema.names:
        # No partition has a file.
        return Counter()
    found = dataset.to_table(columns=["id", "amount"])
    return Counter(zip(found["id"].to_pylist(), map(int, found["amount"].to_pylist()), strict=True))


@pytest.mark.parametrize("layout", ["in_place", "revisions"])
def test_drafted_file_for_a_published_table_reads_what_is_committed(
    tmp_path: Path, layout: str
) -> None:
    above = SmallLake(tmp_path / "above", keys=merged(PROCESS_TIME, {"target": {"layout": layout}}))
    ids = above.commit({1: 3, 2: 1})
    load(above.pipeline())
    publish(above.pipeline())
    ids += above.commit({1: 2, 3: 1})[:2]
    load(above.pipeline())
    above.pipeline().publish(day(1), "cli", NOW, by_command=True)
    where = str(tmp_path / "below")

    draft = draft_pipeline(str(above.target), NOW, name="below", target=where)
    file = tmp_path / "below.yaml"
    file.write_text(draft.text)
    opened = open_pipeline(file, ledger=f"sqlite:///{tmp_path}/below.db")
    load(opened)
    publish(opened)

    found = read_committed(where).to_table(columns=["id"])["id"].to_pylist()
    assert sorted(found) == ids


def plain(root: Path) -> SmallLake:
    return SmallLake(root, keys=PROCESS_TIME)


@pytest.mark.parametrize(
    ("seed", "target", "layout"),
    [
        pytest.param(1, BY_DAY, "in_place", id="by day"),
        pytest.param(2, BY_AMOUNT, "revisions", id="by amount"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in itertools.product(
                range(3, 8), (BY_DAY, BY_AMOUNT), ("in_place", "revisions")
            )
        ),
    ],
)
def test_each_row_is_taken_once_whatever_the_pipeline_above_does(
    tmp_path: Path, seed: int, target: dict[str, Any], layout: str
) -> None:
    """Random histories; the oracle is what the pipeline above publishes."""
    chance = random.Random(seed)
    above = SmallLake(tmp_path / "up", keys=merged(PROCESS_TIME, {"target": {"layout": layout}}))
    chain = Chain(above, tmp_path / "below", target)

    def bring(**keys: Any) -> None:
        chain.bring({chance.choice((1, 2)): 2}, chance.choice((1, 2)), **keys)

    def undo() -> None:
        opened = above.pipeline()
        with contextlib.suppress(UndoImpossible, NothingToUndo):
            opened.undo(day(1), opened.ledger.partitions.get(day(1)).revision, ADA, "cli", NOW)

    acts: list[Callable[[], object]] = [
        bring,
        bring,
        partial(bring, **JOINING),
        lambda: above.pipeline().compact(day(1), RULE, "cli", NOW),
        undo,
        lambda: erase(above.pipeline(), chance.randint(1, above.made)),
        chain.take,
        chain.take,
    ]
    chain.bring({1: 1, 2: 1})
    for act in chance.choices(acts, k=12):
        act()
    chain.take()

    assert rows(chain.below) == rows(above)
    assert list(chain.opened.findings()) == []


def test_file_that_was_joined_from_what_was_taken_in_is_not_read_again(tmp_path: Path) -> None:
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", BY_DAY)
    for _ in range(3):
        chain.bring({1: 2})
    assert chain.take() == []
    before = chain.below.stamps()

    chain.above.pipeline().compact(day(1), RULE, "cli", NOW)

    assert chain.take() == []
    assert chain.below.stamps() == before
    # What comes beside it, and is joined to it at once, is read.
    chain.bring({1: 1})
    chain.above.pipeline().compact(day(1), RULE, "cli", NOW)
    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == rows(chain.above)


@pytest.mark.follows("MarkedFilesReplaced")
@pytest.mark.parametrize("late_data", ["revise", "reject"])
@pytest.mark.parametrize("on_changed_file", ["fail", "ignore"])
def test_rows_that_were_joined_to_others_before_they_were_read_are_published_once(
    tmp_path: Path, late_data: str, on_changed_file: str
) -> None:
    chain = Chain(
        plain(tmp_path / "up"),
        tmp_path / "below",
        BY_AMOUNT,
        commit={"late_data": late_data},
        source={"on_changed_file": on_changed_file},
    )
    chain.bring({1: 2})
    chain.take()
    before = chain.below.stamps()
    chain.bring({1: 2}, amount=2)
    chain.above.pipeline().compact(day(1), RULE, "cli", NOW)

    with pytest.raises(MarkedFilesReplaced) as refused:
        load(chain.opened)

    assert chain.below.stamps() == before
    assert sorted(told(refused.value)) == [f"{DAY_1}/amount=1", f"{DAY_1}/amount=2"]
    # One of them would leave the rows of the other behind, for good.
    for partition in (f"{DAY_1}/amount=1", f"{DAY_1}/amount=2"):
        with pytest.raises(RebuildTooNarrow):
            chain.rebuild(partition)
    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == rows(chain.above)
    assert not list((chain.below.root / "published").rglob("rejected*"))


def test_rows_that_are_replaced_by_key_above_are_replaced_below(tmp_path: Path) -> None:
    above = ChangingLake(tmp_path / "up", keys=UPSERT)
    chain = Chain(above, tmp_path / "below", BY_DAY)
    above.write({1: (1, 10), 2: (1, 20), 3: (2, 30)})
    publish(above.loaded(source=CHANGES))
    chain.take()

    above.write({2: (1, 21), 4: (1, 40)})
    publish(above.loaded(source=CHANGES))

    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == Counter([(1, 10), (2, 21), (3, 30), (4, 40)])


def test_pipeline_above_may_begin_again(tmp_path: Path) -> None:
    above = plain(tmp_path / "up")
    chain = Chain(above, tmp_path / "below", BY_DAY)
    chain.bring({1: 2, 2: 1})
    chain.take()
    opened = above.pipeline()
    opened.drop(Run("drop", "cli"), NOW)
    above.commit({1: 1})
    load(opened)
    publish(opened)

    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == rows(above)


def test_rebuild_finds_rows_that_were_joined_since_they_were_read(tmp_path: Path) -> None:
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", BY_DAY)
    chain.bring({1: 2, 2: 1})
    chain.bring({1: 2})
    chain.take()
    chain.above.pipeline().compact(day(1), RULE, "cli", NOW)

    chain.rebuild(DAY_1)
    publish(chain.opened)

    assert rows(chain.below) == rows(chain.above)
    assert chain.take() == []
    assert rows(chain.below) == rows(chain.above)


def test_rebuild_while_a_marker_above_is_retracted_keeps_what_was_read(tmp_path: Path) -> None:
    """As in the middle of a commit above: nothing is gone."""
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", BY_DAY)
    chain.bring({1: 2, 2: 1})
    chain.take()
    before = rows(chain.below)
    marker = chain.above.target / DAY_1 / "_SUCCESS"
    kept = marker.read_bytes()
    marker.unlink()

    chain.rebuild(DAY_1)
    publish(chain.opened)

    assert rows(chain.below) == before
    marker.write_bytes(kept)
    assert chain.take() == []
    assert rows(chain.below) == before


def undo(lake: SmallLake) -> None:
    opened = lake.pipeline()
    opened.undo(day(1), opened.ledger.partitions.get(day(1)).revision, ADA, "cli", NOW)


def replay(lake: SmallLake, window: int, filter: str) -> None:
    """Read a window above again with another filter."""
    opened = lake.pipeline(source={"read": {"filter": filter}})
    opened.finish_load(opened.replay(window, Run("again", "cli"), NOW), NOW, local)
    publish(opened)


def undo_two(lake: SmallLake) -> None:
    undo(lake)
    undo(lake)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(undo_two, id="undo"),
        pytest.param(lambda lake: erase(lake.pipeline(), 3, 4), id="erase"),
        pytest.param(lambda lake: replay(lake, 2, "amount = 1"), id="replay"),
    ],
)
def test_rows_of_what_was_joined_are_found_under_the_names_that_were_read(
    tmp_path: Path, act: Callable[[SmallLake], object]
) -> None:
    """The joined file was not read, and no plan names it."""
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", BY_AMOUNT)
    chain.bring({1: 2}, amount=1)
    chain.bring({1: 2}, amount=2)
    chain.take()
    chain.above.pipeline().compact(day(1), RULE, "cli", NOW)
    assert chain.take() == []

    act(chain.above)

    assert len(chain.take()) == 1
    assert rows(chain.below) == rows(chain.above)


def test_rows_that_were_read_from_a_joined_file_are_found_once_it_was_joined_again(
    tmp_path: Path,
) -> None:
    target = {"partition_by": {"dt": "dt", "file": "_file_name"}}
    source = {"metadata_columns": ["file.name"]}
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", target, source=source)
    for _ in range(2):
        chain.bring({1: 1})
        chain.bring({1: 1})
        chain.above.pipeline().compact(day(1), RULE, "cli", NOW)
        chain.take()

    # Each row has the partition of the file that it stands in.
    assert rows(chain.below) == rows(chain.above)
    assert len(list(chain.below.target.glob("dt=*/*/*.parquet"))) == 1


@pytest.mark.parametrize("beside", ["alone", "with others", "joined to others"])
def test_file_that_comes_back_after_a_rebuild_without_it_is_read(
    tmp_path: Path, beside: str
) -> None:
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", BY_DAY)
    chain.bring({1: 2})
    chain.bring({1: 2})
    chain.take()
    undo(chain.above)
    assert chain.take() == ["SourceRewritten"]
    assert rows(chain.below) == rows(chain.above)

    opened = chain.above.pipeline()
    opened.reopen(day(1), NOW)
    if beside != "alone":
        chain.above.commit({1: 1})
        load(opened)
    publish(opened)
    if beside == "joined to others":
        opened.compact(day(1), RULE, "cli", NOW)

    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == rows(chain.above)


def test_file_that_has_a_part_of_the_joined_rows_stands_for_no_other(tmp_path: Path) -> None:
    small = {"target": {"rolling": {"file_size": "1KiB"}, "row_group": {"rows": 40}}}
    above = ChangingLake(tmp_path / "up", keys=merged(UPSERT, small))
    chain = Chain(above, tmp_path / "below", BY_DAY)
    chance = random.Random(1)
    for start in (0, 150):
        above.write({start + it: (1, chance.randrange(10**9)) for it in range(150)})
        publish(above.loaded(source=CHANGES))
    chain.take()
    above.pipeline(source=CHANGES).compact(day(1), RULE, "cli", NOW)
    chain.take()
    assert len(list(above.target.rglob("*.parquet"))) > 2

    above.write({2: (1, 99)})
    publish(above.loaded(source=CHANGES))

    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == rows(above)


@pytest.mark.parametrize("on_changed_file", ["fail", "ignore"])
def test_listing_of_an_earlier_version_is_compared_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_changed_file: str
) -> None:
    above = ChangingLake(tmp_path / "up", keys=UPSERT)
    source = {"on_changed_file": on_changed_file}
    chain = Chain(above, tmp_path / "below", BY_DAY, source=source, commit={"late_data": "reject"})
    above.write({1: (1, 10), 2: (1, 20)})
    publish(above.loaded(source=CHANGES))
    with monkeypatch.context() as patched:
        really = walk._listed
        patched.setattr(walk, "_listed", lambda *said: really(*said)._replace(made_of=None))
        chain.take()
    chain.opened = chain.below.pipeline()

    above.write({2: (1, 21)})
    publish(above.loaded(source=CHANGES))

    assert chain.take() == ["MarkedFilesReplaced"]
    assert rows(chain.below) == rows(above)


def test_partition_without_a_row_left_is_rebuilt_as_its_marker_stands(tmp_path: Path) -> None:
    chain = Chain(plain(tmp_path / "up"), tmp_path / "below", BY_DAY)
    chain.bring({1: 2})
    chain.take()

    replay(chain.above, 1, "amount = 7")

    assert chain.take() == ["SourceRewritten"]
    assert rows(chain.below) == rows(chain.above) == Counter()


def test_overwriting_reader_is_told_to_begin_again(tmp_path: Path) -> None:
    chain = Chain(
        plain(tmp_path / "up"), tmp_path / "below", merged(BY_DAY, {"write": "overwrite"})
    )
    chain.bring({1: 2})
    chain.take()
    chain.bring({1: 2})
    chain.above.pipeline().compact(day(1), RULE, "cli", NOW)

    with pytest.raises(MarkedFilesReplaced) as refused:
        load(chain.opened)

    assert "run `tidegate reset orders`, after which" in str(refused.value)
    assert "said below" not in str(refused.value)
    chain.opened.finish_load(chain.opened.reset(Run("reset", "cli"), NOW), NOW, local)
    publish(chain.opened)
    assert rows(chain.below) == rows(chain.above)


def test_interval_before_a_revision_that_a_rebuild_took_in_has_nothing_to_read(
    tmp_path: Path,
) -> None:
    above = ChangingLake(tmp_path / "up", keys=merged(UPSERT, {"target": {"layout": "revisions"}}))
    chain = Chain(above, tmp_path / "below", BY_DAY)

    def bring(rows: dict[int, tuple[int, int]], staged: float, marked: float) -> None:
        above.write(rows)
        publish(above.loaded(source=CHANGES))
        newest = max(above.target.glob("dt=*/_revisions/*"))
        for path in newest.iterdir():
            moment = known(marked if path.name == "_SUCCESS" else staged).timestamp()
            os.utime(path, (moment, moment))

    bring({1: (1, 10), 2: (1, 20)}, 0.4, 0.5)
    load(chain.opened, interval(1))
    bring({2: (1, 21)}, 1.4, 1.5)
    bring({3: (1, 30)}, 1.6, 3.5)
    with pytest.raises(MarkedFilesReplaced) as refused:
        load(chain.opened, interval(2))
    chain.rebuild(*told(refused.value))
    publish(chain.opened)
    assert rows(chain.below) == Counter([(1, 10), (2, 21), (3, 30)])

    assert load(chain.opened, interval(2)).windows == ()
    assert load(chain.opened, interval(3, 2)).windows == ()
    assert rows(chain.below) == rows(above)
