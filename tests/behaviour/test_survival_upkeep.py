"""gc takes only what nobody needs; fsck says where files, markers and ledger disagree."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from small_lake import NOW, SmallLake, day, decide, later, load, local, publish
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

AT_ONCE = timedelta(0)
NARROW = {"source": {"read": {"filter": "id <= 2"}}}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def published(lake: SmallLake) -> Pipeline:
    lake.commit({1: 4, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    return pipeline


def replay(pipeline: Pipeline, sequence: int = 1) -> None:
    planned = pipeline.replay(sequence, Run("replay", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def sweep(pipeline: Pipeline, older_than: timedelta = AT_ONCE) -> list[str]:
    garbage = pipeline.garbage(datetime.now(UTC), older_than)
    pipeline.sweep(garbage)
    return [item.path for item in garbage]


def parts(lake: SmallLake, below: str) -> list[Path]:
    return sorted((lake.work / below).rglob("*.parquet"))


def test_sweep_with_everything_published_takes_nothing(lake: SmallLake) -> None:
    assert sweep(published(lake)) == []


def test_sweep_takes_retired_files(lake: SmallLake) -> None:
    published(lake)
    changed = lake.pipeline(**NARROW)
    replay(changed)
    publish(changed)
    assert len(parts(lake, "retired")) == 1

    sweep(changed)

    assert parts(lake, "retired") == []
    assert lake.ids() == {"dt=2026-02-01": [1, 2]}


def test_sweep_takes_nothing_younger_than_asked(lake: SmallLake) -> None:
    published(lake)
    changed = lake.pipeline(**NARROW)
    replay(changed)
    publish(changed, now=datetime.now(UTC))

    assert sweep(changed, timedelta(hours=1)) == []


@pytest.mark.on_disk
@pytest.mark.parametrize("began", [timedelta(0), timedelta(hours=5)], ids=["now", "long before"])
def test_age_of_what_is_retired_counts_from_when_it_was_replaced(
    lake: SmallLake, began: timedelta
) -> None:
    """A reader may have begun with the old revision just before, whose files were old."""
    published(lake)
    for path in parts(lake, "../orders"):
        os.utime(path, (0, 0))
    changed = lake.pipeline(**NARROW)
    replay(changed)
    replaced = datetime.now(UTC)
    publish(changed, now=replaced - began)
    hour, minute = timedelta(hours=1), timedelta(minutes=1)

    early = changed.garbage(replaced + hour - minute, hour)
    late = changed.garbage(replaced + hour + minute, hour)

    assert [item.path for item in early if "/retired/" in item.path] == []
    assert [item.path for item in late if "/retired/" in item.path] == [
        str(path) for path in parts(lake, "retired")
    ]
    assert len(parts(lake, "retired")) == 1


@pytest.mark.parametrize(
    ("revisions", "kept"),
    [
        pytest.param(1, [], id="the newest"),
        pytest.param(2, [3], id="two"),
        pytest.param(3, [2, 3], id="all"),
    ],
)
def test_newest_revisions_keep_their_files_however_old_these_are(
    lake: SmallLake, revisions: int, kept: list[int]
) -> None:
    published(lake)
    for changed in (lake.pipeline(**NARROW), lake.pipeline()):
        replay(changed)
        publish(changed)
    retired = lake.work / "retired" / "dt=2026-02-01"

    keeping = lake.pipeline(retention={"revisions": revisions})
    sweep(keeping)

    assert [number for number in (2, 3) if list((retired / f"{number}").glob("*"))] == kept
    # The oldest kept revision has all of its files, and so has each one after it.
    oldest = 4 - revisions
    assert keeping.difference(day(1), oldest, 3).new_rows == 4
    assert sweep(keeping) == []


RULED: dict[str, Any] = {"rows": [{"name": "few", "where": "id <> 3"}]}


@pytest.mark.on_disk
def test_rows_that_were_put_aside_go_when_they_are_as_old_as_is_said(lake: SmallLake) -> None:
    lake.commit({1: 4})
    load(lake.pipeline(**RULED))
    lake.commit({2: 1})
    load(lake.pipeline(**RULED))
    publish(lake.pipeline(**RULED))
    (aside,) = [path for path in parts(lake, "windows") if "quarantine" in path.parts]
    ending = lake.pipeline(retention={"quarantine": "10d"}, **RULED)
    staged = datetime.now(UTC)

    for_ever = lake.pipeline(**RULED).garbage(staged + timedelta(days=999), AT_ONCE)
    early = ending.garbage(staged + timedelta(days=9), AT_ONCE)
    late = ending.garbage(staged + timedelta(days=11), AT_ONCE)
    ending.sweep(late)

    assert for_ever == early == ()
    assert [item.path for item in late] == [str(aside)]
    assert not aside.exists()
    # A replay finds everything done, and a restoration gives the same ledger.
    before = lake.stamps()
    replay(ending)
    publish(ending)
    assert lake.stamps() == before
    assert list(ending.findings()) == []


def test_rows_that_were_put_aside_stay_while_others_of_their_window_wait(lake: SmallLake) -> None:
    lake.commit({1: 4})
    ending = lake.pipeline(retention={"quarantine": "0s"}, **RULED)
    load(ending)

    assert ending.garbage(datetime.now(UTC) + timedelta(days=999), AT_ONCE) == ()


@pytest.mark.on_disk
def test_sweep_takes_the_attempts_that_lost(lake: SmallLake) -> None:
    pipeline = published(lake)
    staged = next((lake.work / "windows").rglob("staged"))
    loser = staged / "0123456789ab" / "w1.t0.lost" / "part-x-0.zstd.parquet"
    loser.parent.mkdir(parents=True)
    loser.write_bytes(b"half")

    assert sweep(pipeline) == [str(loser)]


@pytest.mark.on_disk
def test_sweep_takes_old_temporary_files_only(lake: SmallLake) -> None:
    pipeline = published(lake)
    messages = next((lake.work / "windows").rglob("messages"))
    old, young = messages / ".a.json.1-00", messages / ".b.json.1-00"
    for path in (old, young):
        path.write_bytes(b'{"ha')
    os.utime(old, (0, 0))

    assert sweep(pipeline) == [str(old)]


@pytest.mark.parametrize("moment", ["open", "staged", "sealed", "held", "reopened"])
def test_sweep_leaves_what_is_still_to_be_published(lake: SmallLake, moment: str) -> None:
    lake.keys = {"rows": [{"name": "sane", "where": "amount < 9", "on_failure": "hold"}]}
    ids = lake.commit({1: 4, 2: 1}, amount=10 if moment in {"held", "reopened"} else 1)
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("a", "cli"), NOW)
    if moment != "open":
        with local("local") as executor:
            pipeline.stage(planned[0], executor)
    if moment in {"sealed", "held", "reopened"}:
        pipeline.announce(planned, NOW)
    if moment in {"held", "reopened"}:
        publish(pipeline)
    if moment == "reopened":
        pipeline.reopen(day(1), NOW)

    assert sweep(pipeline) == []

    load(pipeline)
    publish(pipeline)
    if moment in {"held", "reopened"}:
        decide(pipeline, day(1))
        publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


def test_sweep_after_an_abandoned_replay_lets_it_be_done_again(lake: SmallLake) -> None:
    """Its messages stood, its files went: the replay would have believed them."""
    pipeline = published(lake)
    changed = lake.pipeline(**NARROW)
    planned = changed.replay(1, Run("dies", "dead"), NOW)
    with local("local") as executor:
        changed.stage(planned[0], executor)
    heir = later(pipeline, timedelta(days=1))
    heir.finish_load(heir.replay(1, Run("b", "cli"), NOW), NOW, local)

    assert sweep(pipeline) != []
    replay(changed)
    publish(changed)

    assert lake.ids() == {"dt=2026-02-01": [1, 2]}


def test_findings_of_a_sound_table_are_none(lake: SmallLake) -> None:
    assert list(published(lake).findings()) == []


def test_findings_name_a_file_that_nobody_knows(lake: SmallLake) -> None:
    pipeline = published(lake)
    (lake.target / "dt=2026-02-01" / "stray.parquet").write_bytes(b"x")

    assert [text for text in pipeline.findings() if "stray.parquet" in text] == list(
        pipeline.findings()
    )


def one_part(lake: SmallLake) -> Path:
    return next(lake.target.rglob("part-*"))


@pytest.mark.parametrize(
    "name", [".DS_Store", "_spark_metadata", "dt=2026-02-01/.part.parquet.crc", "_temporary/0/part"]
)
def test_findings_say_nothing_of_a_hidden_file_of_another_tool(lake: SmallLake, name: str) -> None:
    pipeline = published(lake)
    (lake.target / name).parent.mkdir(parents=True, exist_ok=True)
    (lake.target / name).write_text("theirs")

    assert list(pipeline.findings()) == []


def test_findings_name_a_hidden_file_that_says_what_markers_say(lake: SmallLake) -> None:
    pipeline = published(lake)
    marker = lake.target / "dt=2026-02-01" / "_SUCCESS"
    (lake.target / "dt=2026-02-01" / "_DONE").write_bytes(marker.read_bytes())

    (found,) = pipeline.findings()

    assert "dt=2026-02-01/_DONE" in found


def test_findings_name_a_missing_file(lake: SmallLake) -> None:
    pipeline = published(lake)
    part = one_part(lake)
    part.unlink()

    (found,) = pipeline.findings()

    assert (part.name in found, "missing" in found) == (True, True)


@dataclass(frozen=True)
class Beside(LocalStorage):
    """A disk on which a commit comes between two looks at one file."""

    comes: list[Callable[[], object]] = field(default_factory=list, hash=False)

    def sha256(self, path: str) -> str:
        if self.comes:
            self.comes.pop()()
        return super().sha256(path)


@pytest.mark.on_disk
def test_findings_beside_a_commit_that_takes_a_file_away_are_none(lake: SmallLake) -> None:
    published(lake)
    replay(lake.pipeline(**NARROW))
    beside = Beside(comes=[lambda: publish(lake.pipeline(**NARROW))])

    assert list(lake.pipeline(beside, **NARROW).findings()) == []

    assert beside.comes == []


def test_findings_name_a_file_of_another_length(lake: SmallLake) -> None:
    pipeline = published(lake)
    part = one_part(lake)
    length = part.stat().st_size
    part.write_bytes(part.read_bytes()[:-3])

    (found,) = pipeline.findings()

    assert f"expected {length} bytes, found {length - 3}" in found


def test_findings_name_a_file_with_other_bytes(lake: SmallLake) -> None:
    pipeline = published(lake)
    part = one_part(lake)
    content = bytearray(part.read_bytes())
    content[10] ^= 1
    part.write_bytes(content)

    (found,) = pipeline.findings()

    assert (part.name in found, "not the bytes" in found) == (True, True)


def test_findings_name_a_revision_without_marker(lake: SmallLake) -> None:
    pipeline = published(lake)
    (lake.target / "dt=2026-02-01" / "_SUCCESS").unlink()

    (found,) = pipeline.findings()

    assert "revision 1 is recorded, but its marker is missing" in found


def test_findings_name_a_marker_without_revision(lake: SmallLake) -> None:
    pipeline = published(lake)
    folder = lake.target / "dt=2026-02-02"
    folder.mkdir()
    (folder / "_SUCCESS").write_bytes((lake.target / "dt=2026-02-01" / "_SUCCESS").read_bytes())

    assert any("dt=2026-02-02" in text and "no revision" in text for text in pipeline.findings())


def test_findings_name_a_marker_of_another_revision(lake: SmallLake) -> None:
    pipeline = published(lake)
    marker = lake.target / "dt=2026-02-01" / "_SUCCESS"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "revision": 7}))

    (found,) = pipeline.findings()

    assert "revision 7" in found


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 9}'])
def test_findings_name_a_marker_that_is_none_of_ours(lake: SmallLake, content: str) -> None:
    pipeline = published(lake)
    (lake.target / "dt=2026-02-01" / "_SUCCESS").write_text(content)

    (found,) = pipeline.findings()

    assert "expected a marker of Tidegate" in found


def test_findings_change_nothing(lake: SmallLake) -> None:
    pipeline = published(lake)
    one_part(lake).unlink()
    before = lake.stamps()

    list(pipeline.findings())

    assert lake.stamps() == before
