"""What `tidegate fsck` finds, and what it says to do, typed as it stands: then it finds nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, load, local, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.cli.output import NOTHING
from tidegate.errors import CommittedFileMissing
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.on_disk

FIRST = "dt=2026-02-01"
NARROW = {"source": {"read": {"filter": "id <> 2"}}}
Damage = Callable[[SmallLake], None]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    return lake


def typed(line: str, *codes: int) -> str:
    program, *arguments = shlex.split(line)
    assert program == "tidegate"
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code in (codes or (0,)), result.output
    return result.output


def fsck(code: int = 0) -> list[str]:
    found: list[str] = json.loads(typed("tidegate fsck orders --json", code))["findings"]
    return found


def follow(lake: SmallLake, finding: str) -> None:
    """Do what a finding says: move a file away where it says so, then type its commands."""
    away = re.search(r"move (\S+) (?:away|out of the table)", finding)
    if away is not None:
        named = finding.partition(": ")[0] if away[1] == "it" else away[1]
        (lake.target / named).rename(lake.root / "moved-away")
    for line in re.findall("`(tidegate [^`]*)`", finding):
        typed(line)


def check_ends_well(lake: SmallLake, ids: list[int]) -> None:
    """Find nothing, and the rows by marker and by listing, now and after the next commit."""
    assert fsck() == []
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    ids = ids + lake.commit({1: 1, 4: 1})[:1]
    load(lake.pipeline(), owner=process_owner("cli"))
    publish(lake.pipeline(), owner=process_owner("cli"))
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    assert fsck() == []


def published(lake: SmallLake) -> list[int]:
    """Publish two revisions of a day; its ids."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 2, 3: 1})[:2]
    load(lake.pipeline())
    publish(lake.pipeline())
    return ids


def part(lake: SmallLake) -> Path:
    return sorted((lake.target / FIRST).glob("part-*"))[0]


def marker(lake: SmallLake) -> Path:
    return lake.target / FIRST / "_SUCCESS"


def lose_part(lake: SmallLake) -> None:
    part(lake).unlink()


def cut_part(lake: SmallLake) -> None:
    part(lake).write_bytes(part(lake).read_bytes()[:-3])


def spoil_part(lake: SmallLake) -> None:
    part(lake).write_bytes(bytes(part(lake).stat().st_size))


def lose_marker(lake: SmallLake) -> None:
    marker(lake).unlink()


def spoil_marker(lake: SmallLake) -> None:
    marker(lake).write_text("{")


def said(revision: int) -> Damage:
    def damage(lake: SmallLake) -> None:
        content = json.loads(marker(lake).read_text())
        marker(lake).write_text(json.dumps({**content, "revision": revision}))

    return damage


def shorten_marker(lake: SmallLake) -> None:
    """Leave a file out of the marker's list, so that readers by marker miss its rows."""
    content = json.loads(marker(lake).read_text())
    marker(lake).write_text(json.dumps({**content, "files": content["files"][1:]}))


def marker_before(lake: SmallLake) -> None:
    """Put the marker of the revision before in its place, as a restored copy of the table does."""
    (plan,) = (lake.work / "publications" / FIRST).glob("1-*[0-9].json")
    marker(lake).write_text(json.loads(plan.read_text())["marker"])


def stray(lake: SmallLake) -> None:
    (lake.target / FIRST / "stray.parquet").write_bytes(b"x")


def stray_marker(lake: SmallLake) -> None:
    other = lake.target / "dt=2026-02-20"
    other.mkdir()
    (other / "_SUCCESS").write_bytes(marker(lake).read_bytes())


def marker_of_pending(lake: SmallLake) -> None:
    """Put a marker where the ledger knows a partition that is not out yet."""
    other = lake.target / "dt=2026-02-03"
    other.mkdir()
    (other / "_SUCCESS").write_bytes(marker(lake).read_bytes())


def lose_partition(lake: SmallLake) -> None:
    shutil.rmtree(lake.target / FIRST)


def lose_part_and_marker(lake: SmallLake) -> None:
    lose_part(lake)
    lose_marker(lake)


DAMAGES: list[tuple[Damage, str]] = [
    (lose_part, "listed, but missing"),
    (cut_part, "bytes, found"),
    (spoil_part, "not the bytes"),
    (lose_marker, "its marker is missing"),
    (spoil_marker, "expected a marker"),
    (said(7), "marker says revision 7"),
    (said(1), "marker says revision 1"),
    (shorten_marker, "is not as it was written"),
    (marker_before, "marker says revision 1"),
    (stray, "stands in the table"),
    (stray_marker, "stands in the table"),
    (marker_of_pending, "has no revision"),
]


@pytest.mark.parametrize(
    ("damage", "told"), DAMAGES, ids=[f"{made.__name__}-{told}" for made, told in DAMAGES]
)
def test_damage_that_is_found_is_mended_as_the_finding_says(
    lake: SmallLake, damage: Damage, told: str
) -> None:
    ids = published(lake)
    damage(lake)

    (found,) = fsck(1)
    assert told in found
    follow(lake, found)

    check_ends_well(lake, ids)


KINDS = {
    "lose_part": "file-lost",
    "spoil_part": "file-changed",
    "lose_marker": "marker-lost",
    "spoil_marker": "marker-changed",
    "stray": "file-unknown",
    "marker_of_pending": "marker-unknown",
}


@pytest.mark.parametrize("damage", [lose_part, lose_marker, stray])
def test_machines_are_told_what_is_wrong_where_and_what_helps(
    lake: SmallLake, damage: Damage
) -> None:
    published(lake)
    damage(lake)

    (told,) = json.loads(typed("tidegate fsck orders --json", 1))["details"]

    assert told["kind"] == KINDS[damage.__name__]
    assert told["where"].startswith(str(lake.target / FIRST))
    assert told["commands"] == re.findall("`(tidegate [^`]*)`", told["text"])


def test_quick_look_compares_lengths_only(lake: SmallLake) -> None:
    published(lake)
    spoil_part(lake)

    assert "agree" in typed("tidegate fsck orders --quick")
    lose_part(lake)
    assert "listed, but missing" in typed("tidegate fsck orders --quick", 1)


def test_lost_file_of_a_revision_that_is_to_be_kept_is_named_until_fewer_are(
    lake: SmallLake,
) -> None:
    published(lake)
    narrow = lake.pipeline(**NARROW)
    narrow.finish_load(narrow.replay(1, Run("replay", "cli"), NOW), NOW, local)
    publish(narrow)
    lake.file(retention={"revisions": 2}, **NARROW)
    (retired,) = (lake.work / "retired").rglob("part-*")
    assert fsck() == []
    retired.unlink()

    (found,) = fsck(1)

    assert found.startswith(f"{retired}: expected, because revision 2 of {FIRST} is one of 2")
    (fewer,) = re.findall(r"set `retention.revisions: (\d+)`", found)
    lake.file(retention={"revisions": int(fewer)}, **NARROW)
    assert fsck() == []


@pytest.mark.follows("CommittedFileMissing")
def test_reader_who_misses_a_file_is_helped_by_what_is_found(lake: SmallLake) -> None:
    ids = published(lake)
    lose_part(lake)
    with pytest.raises(CommittedFileMissing, match=FIRST):
        read_committed(lake.target)

    (found,) = fsck(1)
    follow(lake, found)

    rows = read_committed(lake.target).to_table(filter=ds.field("dt") == "2026-02-01")
    assert sorted(rows["id"].to_pylist()) == ids
    check_ends_well(lake, ids)


@pytest.mark.parametrize("damage", [lose_partition, lose_part_and_marker])
def test_partition_that_lost_its_marker_and_files_is_mended_as_each_finding_says(
    lake: SmallLake, damage: Damage
) -> None:
    ids = published(lake)
    damage(lake)

    found, *others = fsck(1)
    follow(lake, found)

    typed_lines = re.findall("`[^`]*`", found)
    assert all(re.findall("`[^`]*`", other) == typed_lines for other in others)
    check_ends_well(lake, ids)


def test_lost_partition_whose_next_revision_is_held_is_decided_on_once(lake: SmallLake) -> None:
    ids = published(lake)
    lake.keys = {"rows": [{"name": "sane", "where": f"id <= {ids[-1] + 1}", "on_failure": "hold"}]}
    ids += lake.commit({1: 1, 4: 1})[:1]
    load(lake.pipeline())
    publish(lake.pipeline())
    shutil.rmtree(lake.target / FIRST)

    found, *_ = fsck(1)
    for line in re.findall("`(tidegate [^`]*)`", found):
        typed(line, 0, NOTHING)
    found, *_ = fsck(1)

    assert "decide on the next revision" in found
    (explain,) = re.findall("`(tidegate [^`]*)`", found)
    (approve,) = re.findall(r"tidegate approve orders \S+ --digest \S+", typed(explain))
    typed(approve)
    typed(f"tidegate publish orders {FIRST}", 0, NOTHING)
    assert fsck() == []
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids


@pytest.mark.parametrize("left", [None, -3], ids=["lost", "cut"])
def test_staged_file_of_the_next_revision_is_mended_as_the_finding_says(
    lake: SmallLake, left: int | None
) -> None:
    ids = published(lake)
    ids += lake.commit({1: 2, 4: 1})[:2]
    load(lake.pipeline())
    (staged,) = lake.work.glob(f"windows/000003/*/staged/*/*/{FIRST}/*.parquet")
    content = staged.read_bytes()
    staged.unlink()
    if left is not None:
        staged.write_bytes(content[:left])

    (found,) = fsck(1)
    assert f"of {FIRST}, found" in found
    follow(lake, found)

    typed(f"tidegate publish orders {FIRST}")
    check_ends_well(lake, ids)


class KilledCalls(OsCalls):
    """System calls of a process that is killed once it has moved so many files of a commit."""

    moves = 0

    def link(self, source: str, target: str) -> None:
        if target.endswith(".parquet") and ".tidegate" not in target:
            if self.moves == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.moves -= 1
        super().link(source, target)


def in_a_process_that_dies(act: Callable[[], object]) -> None:
    """Act in another process, which ends without giving anything back."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            # Whatever becomes of it, it must not go on as a second process of tests.
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def publish_and_die(lake: SmallLake, moves: int = 0) -> None:
    calls = KilledCalls()
    calls.moves = moves
    lake.pipeline(LocalStorage(calls)).publish(day(1), process_owner("cli"), NOW)


def test_commit_of_a_dead_process_is_finished_as_the_finding_says(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    in_a_process_that_dies(lambda: publish_and_die(lake))

    (found,) = fsck(1)
    assert "a commit is under way" in found
    follow(lake, found)

    check_ends_well(lake, ids)


@pytest.mark.parametrize("what", ["window", "claim", "commit"])
def test_ledger_whose_holder_is_dead_is_written_again_at_once(lake: SmallLake, what: str) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    acts: dict[str, Callable[[], object]] = {
        "window": lambda: lake.pipeline().plan(Run("dead", process_owner("cli")), NOW),
        "claim": lambda: lake.pipeline().propose(day(1), process_owner("cli"), NOW),
        "commit": lambda: publish_and_die(lake),
    }
    if what == "window":
        ids += lake.commit({1: 2, 3: 1})[:2]
    in_a_process_that_dies(acts[what])

    assert "Restored 1 window" in typed("tidegate fsck orders --rebuild")

    typed("tidegate load orders", 0, 3)
    typed(f"tidegate publish orders {FIRST}")
    check_ends_well(lake, ids)


def save(lake: SmallLake) -> None:
    shutil.copy(lake.root / "ledger.db", lake.root / "before.db")


def put_back(lake: SmallLake) -> None:
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    shutil.copy(lake.root / "before.db", lake.root / "ledger.db")


@pytest.mark.parametrize("moment", ["window", "revision", "partition", "replaced"])
def test_ledger_that_is_behind_is_brought_up_to_date_as_each_finding_says(
    lake: SmallLake, moment: str
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    if moment != "partition":
        publish(lake.pipeline())
        ids += lake.commit({1: 2, 3: 1})[:2]
    if moment == "revision":
        load(lake.pipeline())
    save(lake)
    if moment == "window":
        load(lake.pipeline())
    if moment == "replaced":
        narrow = lake.pipeline(**NARROW)
        load(narrow)
        narrow.finish_load(narrow.replay(1, Run("again", "cli"), NOW), NOW, local)
        ids.remove(2)
    publish(lake.pipeline())
    put_back(lake)

    found = fsck(1)
    assert all("`tidegate fsck orders --rebuild`" in finding for finding in found), found
    follow(lake, found[0])

    check_ends_well(lake, ids)


@pytest.mark.follows("PathEscapes")
def test_partition_that_a_link_leads_out_of_the_table_is_told_and_published_once_it_is_replaced(
    lake: SmallLake,
) -> None:
    ids = published(lake)
    folder, outside = lake.target / FIRST, lake.root / "outside"
    shutil.move(folder, outside)
    folder.symlink_to(outside)
    ids += lake.commit({1: 1})
    load(lake.pipeline())

    (finding,) = fsck(1)

    assert finding in typed(f"tidegate publish orders {FIRST} --json", 1)
    assert f"{folder}: expected a path below {lake.target}" in finding
    assert "Put the directory that the symbolic link leads to in its place" in finding
    folder.unlink()
    shutil.move(outside, folder)
    typed(f"tidegate publish orders {FIRST}")
    check_ends_well(lake, ids)


@pytest.mark.parametrize("name", [FIRST, "dt=2026-02-03"], ids=["published", "never published"])
def test_file_in_place_of_a_partition_is_told_beside_what_is_wrong_with_others(
    lake: SmallLake, name: str
) -> None:
    lake.keys = {"commit": {"trigger": "process-time"}}
    ids = lake.commit({1: 2, 2: 1})[:2]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 1, 3: 1})[:1]
    load(lake.pipeline())
    (lake.target / "dt=2026-02-02" / "_SUCCESS").unlink()
    place = lake.target / name
    if place.exists():
        place.rename(lake.root / "kept")
    place.write_bytes(b"a file")

    found = fsck(1)

    assert sum(str(place) in finding for finding in found) == 1
    assert any(
        f"{place}: access denied: Not a directory" in finding and "move away whatever" in finding
        for finding in found
    )
    (marker,) = (finding for finding in found if "dt=2026-02-02" in finding)
    place.unlink()
    if (lake.root / "kept").exists():
        (lake.root / "kept").rename(place)
    follow(lake, marker)
    publish(lake.pipeline())
    check_ends_well(lake, ids)


def test_pipeline_without_markers_is_not_found_to_lack_them(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lake.root / "silent.py").write_text(
        "class Silent:\n    def commit(self, context):\n        pass\n"
    )
    monkeypatch.syspath_prepend(lake.root)
    lake.keys = {"commit": {"policies": [{"custom": "silent:Silent"}]}}
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())

    assert fsck() == []
    assert lake.listed_ids() == {FIRST: ids}


def test_finding_of_a_partition_whose_name_has_to_be_quoted_is_typed(lake: SmallLake) -> None:
    lake.keys = {"target": {"partition_by": {"dt": None, "a b": "day(at)"}}}
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    typed("tidegate publish orders 'a b=2026-02-01'")
    next((lake.target / "a b=2026-02-01").glob("part-*")).unlink()

    (found,) = fsck(1)
    follow(lake, found)

    assert fsck() == []
    assert lake.ids()["a b=2026-02-01"] == ids


def test_partition_that_is_published_while_it_is_looked_at_is_no_finding(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 2, 2: 1, 3: 1})[:2]
    load(lake.pipeline())
    looking = []

    class WhileReading(LocalStorage):
        def sha256(self, path: str) -> str:
            if not looking:
                looking.append(path)
                publish(lake.pipeline())
            return super().sha256(path)

    found = list(lake.pipeline(WhileReading()).findings())

    assert found == []
    assert looking
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
