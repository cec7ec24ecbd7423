"""A pipeline ends: what it published stays, its DAGs vanish, and its target may get a new owner."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import tidegate as library
from dying import DyingCalls, Killed, deaths, each_death
from small_lake import NOW, SmallLake, day, load, publish
from tidegate.cli import output
from tidegate.cli.app import app
from tidegate.config import load_pipelines
from tidegate.errors import (
    CommitUnfinished,
    PartitionBusy,
    PartitionStands,
    PipelineRetired,
    ResetUnfinished,
    RetireUnfinished,
    TidegateError,
)
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tidegate.pipeline import Pipeline

FIRST, SECOND, THIRD = (f"dt=2026-02-0{number}" for number in (1, 2, 3))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """A lake with two published days, and a third that is not over."""
    made = SmallLake(tmp_path / "lake")
    made.found_by_name(monkeypatch)
    made.commit({1: 3, 2: 1, 3: 1})
    pipeline = made.pipeline()
    load(pipeline)
    publish(pipeline)
    return made


def tidegate(*arguments: str, answers: str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=answers, catch_exceptions=False)


def successor(lake: SmallLake, **keys: Any) -> Pipeline:
    return lake.pipeline(name="successor", **keys)


def read(lake: SmallLake) -> list[int]:
    return sorted(library.read_committed(str(lake.target)).to_table()["id"].to_pylist())


def test_what_it_published_stays_and_its_file_is_put_aside(lake: SmallLake) -> None:
    before = {name: stamp for name, stamp in lake.stamps().items() if "/." not in f"/{name}"}

    ended = tidegate("retire", "orders", "--yes")

    assert ended.exit_code == 0
    assert f"{lake.root / 'orders.yaml.retired'}" in ended.stdout
    after = {name: stamp for name, stamp in lake.stamps().items() if "/." not in f"/{name}"}
    assert after == before
    assert read(lake) == [1, 2, 3, 4]
    assert list(load_pipelines(lake.root)) == []
    assert not (lake.work / "windows").exists()
    assert tidegate("status").exit_code == 3
    assert "2 partitions with 4 rows" in ended.stdout
    assert "1 partition had rows that were not published" in ended.stdout
    told = " ".join(ended.stdout.split())
    assert "open runs of orders_load, orders_publish and orders_reconcile" in told
    assert "publishes to one of these partitions only after its files were moved away" in told
    assert f"It was retired: its file is {lake.root}" in " ".join(
        tidegate("status", "orders").output.split()
    )


def test_it_is_asked_with_numbers(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "at_terminal", lambda: True)

    asked = tidegate("retire", "orders", answers="n\n")

    assert asked.exit_code == 3
    assert "2 partitions with 4 rows (4 files" in asked.stdout
    assert " KiB) in " in asked.stdout
    assert "1 partition with rows that are not published" in asked.stdout
    assert lake.ids() == {FIRST: [1, 2, 3], SECOND: [4]}
    assert (lake.root / "orders.yaml").exists()


@pytest.mark.follows("PipelineRetired")
def test_file_that_comes_back_is_refused_and_goes_on_under_another_name(lake: SmallLake) -> None:
    tidegate("retire", "orders", "--yes")
    lake.commit({4: 1, 9: 1})

    for step in (load, publish):
        with pytest.raises(PipelineRetired, match="give it a new name"):
            step(lake.pipeline())
    (lake.root / "orders.yaml").unlink()
    again = successor(lake, source={"start": {"after": "2026-02-01T23:00:00Z"}})
    load(again)
    publish(again)

    assert read(lake) == [1, 2, 3, 4, 6]
    assert list(again.findings()) == []


@pytest.mark.follows("PartitionStands")
def test_partition_that_was_left_is_published_only_in_its_place(lake: SmallLake) -> None:
    tidegate("retire", "orders", "--yes")
    ids = lake.commit({1: 1, 9: 1})
    again = successor(lake)
    load(again)
    outcomes = {str(item.partition): item for item in again.publish_all("cli", NOW)}

    assert outcomes[FIRST].state == "failed"
    assert "was published by 'orders', which was retired" in str(outcomes[FIRST].error)
    told = again.explain(day(1), NOW).evaluation
    assert told is not None
    assert "was published by 'orders', which was retired" in str(told.failed)
    assert list(again.findings()) == []
    assert outcomes[THIRD].state == "committed"
    assert read(lake) == [1, 2, 3, 4, 5]

    # What the message says to do.
    (lake.target / FIRST).rename(lake.root / "away")
    list(again.publish_all("cli", NOW))
    more = lake.commit({1: 1})
    load(again)
    list(again.publish_all("cli", NOW))

    assert read(lake) == [1, 2, 3, 4, 5, ids[0], *more]
    assert again.explain(day(1), NOW).report.state.revision == 2
    report = again.status(NOW)
    assert report is not None
    assert any("was retired" in note for note in report.notes)  # the second day still stands


@pytest.mark.on_disk
@pytest.mark.follows("PartitionStands")
def test_publish_names_the_move_that_lets_a_left_partition_be_published(lake: SmallLake) -> None:
    tidegate("retire", "orders", "--yes")
    ids = lake.commit({1: 1, 9: 1})
    load(successor(lake))

    moves = []
    while (refused := tidegate("publish", "successor")).exit_code == 1:
        (said,) = re.findall("^Next: (.*)$", refused.output, re.MULTILINE)
        moves.append(said)
        aside = str(lake.root / f"away{len(moves)}")
        subprocess.run(shlex.split(said.replace("ELSEWHERE", aside)), check=True)

    assert moves[0] == f"mv {lake.target / FIRST} ELSEWHERE"
    assert FIRST not in "".join(moves[1:])
    assert read(lake) == [1, 2, 3, 4, 5, ids[0]]


def test_publish_says_for_how_many_more_partitions_the_move_is_needed(lake: SmallLake) -> None:
    tidegate("retire", "orders", "--yes")
    lake.commit({1: 1, 2: 1, 9: 1})
    load(successor(lake))

    said = tidegate("publish", "successor").output

    assert f"Next: mv {lake.target / FIRST} ELSEWHERE" in said
    assert "The same for 1 more partition, whose directories are named above." in said


def test_objects_are_moved_by_the_command_line_of_a_store() -> None:
    """A shell cannot move them."""
    path = "s3://pub/orders/dt=2026-02-01"

    stands = PartitionStands(pipeline="b", partition="dt=2026-02-01", owner="a", folder=path)

    moved = "aws s3 mv --recursive s3://pub/orders/dt=2026-02-01/ s3://ELSEWHERE/dt=2026-02-01/"
    assert stands.way_out == moved


def test_partition_that_was_left_without_a_marker_is_known_too(lake: SmallLake) -> None:
    tidegate("retire", "orders", "--yes")
    (lake.target / FIRST / "_SUCCESS").unlink()
    again = successor(lake)
    load(again)

    with pytest.raises(PartitionStands):
        again.propose(day(1), "cli", NOW)


@pytest.mark.on_disk
@pytest.mark.follows("CommitUnfinished")
def test_commit_that_was_begun_is_finished_first(lake: SmallLake) -> None:
    ids = lake.commit({1: 1})
    load(lake.pipeline())
    for steps in itertools.count():
        with contextlib.suppress(Killed):
            publish(lake.pipeline(LocalStorage(calls=DyingCalls([steps]))))
        if lake.pipeline().ledger.publications.unrecorded(day(1)) is not None:
            break

    with pytest.raises(CommitUnfinished):
        lake.pipeline().retire("me", "cli", NOW)
    assert tidegate("publish", "orders", FIRST).exit_code == 0
    lake.pipeline().retire("me", "cli", NOW)

    assert read(lake) == sorted([1, 2, 3, 4, *ids])


@pytest.mark.on_disk
@each_death
@pytest.mark.follows("ResetUnfinished")
def test_reset_that_was_killed_is_finished_first(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    refused = 0
    for storage in deaths(lake, tmp_path / "before", every):
        with contextlib.suppress(Killed):
            lake.pipeline(storage).drop("cli", NOW)

        if (lake.work / "reset.json").exists():
            before = lake.stamps()
            with pytest.raises(ResetUnfinished, match="finish it with"):
                lake.pipeline().retire("me", "cli", NOW)
            assert lake.stamps() == before
            refused += 1
            lake.pipeline().drop("cli", NOW)
        lake.pipeline().retire("me", "cli", NOW)

        # A reset that the retired pipeline left behind would refuse whoever follows it for ever.
        load(successor(lake, source={"start": "latest"}))
    assert refused * every > 3


def test_file_of_a_retired_pipeline_is_put_aside_although_its_target_has_a_new_owner(
    lake: SmallLake,
) -> None:
    # It was killed before the file got its ending.
    lake.pipeline().retire("me", "cli", NOW)
    file = (lake.root / "orders.yaml").read_text()
    lake.commit({4: 1, 9: 1})
    again = successor(lake, source={"start": {"after": "2026-02-01T23:00:00Z"}})
    (lake.root / "orders.yaml").write_text(file)
    load(again)
    publish(again)

    ended = tidegate("retire", "orders", "--yes")

    assert ended.exit_code == 0
    assert (lake.root / "orders.yaml.retired").exists()
    assert read(lake) == [1, 2, 3, 4, 6]
    assert list(again.findings()) == []


@pytest.mark.on_disk
@each_death
@pytest.mark.follows("PipelineRetired")
@pytest.mark.follows("RetireUnfinished")
def test_retirement_killed_at_any_step_is_finished(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    refused = []
    for storage in deaths(lake, tmp_path / "before", every):
        with contextlib.suppress(Killed):
            lake.pipeline(storage).retire("me", "cli", NOW)
        refused.append(refusal(lake.pipeline()))
        if refused[-1] is None:
            assert lake.ids() == {FIRST: [1, 2, 3], SECOND: [4]}
            load(lake.pipeline())
        lake.pipeline().retire("me", "cli", NOW)
        again = successor(lake, source={"start": "latest"})
        load(again)
        assert read(lake) == [1, 2, 3, 4]
        assert list(again.findings()) == []
    assert refused[0] is None
    assert refused[-1] is not None


@pytest.mark.on_disk
@each_death
def test_commit_that_begins_at_any_step_of_a_retirement_is_whole_or_nothing(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    lake.commit({9: 1})
    load(lake.pipeline())
    proposal = lake.pipeline().propose(day(3), "cli", NOW)
    assert proposal is not None
    lake.pipeline().gate(day(3), proposal.digest, "cli", NOW)
    found = []
    for storage in deaths(lake, tmp_path / "before", every):
        with contextlib.suppress(Killed):
            lake.pipeline(storage).retire("me", "cli", NOW)
        # It looked whether the pipeline is its own before the retirement began.
        with contextlib.suppress(TidegateError):
            lake.pipeline()._committer.commit(day(3), proposal.digest, "cli", NOW)

        try:
            lake.pipeline().retire("me", "cli", NOW)
        except CommitUnfinished:
            publish(lake.pipeline())
            lake.pipeline().retire("me", "cli", NOW)

        again = successor(lake, source={"start": "latest"})
        load(again)
        found.append(read(lake))
        assert list(again.findings()) == []
        assert sorted(itertools.chain(*lake.ids().values())) == found[-1]
    assert {tuple(item) for item in found} == {(1, 2, 3, 4), (1, 2, 3, 4, 5)}


@pytest.mark.on_disk
def test_process_that_moves_files_is_left_to_end(lake: SmallLake) -> None:
    before = lake.stamps()
    pipeline = lake.pipeline()

    lock = layout.lock_file(pipeline.roots.work, day(1))
    with LocalStorage().lock(lock, "the other"), pytest.raises(PartitionBusy, match="the other"):
        pipeline.retire("me", "cli", NOW)

    assert lake.stamps() == before
    assert refusal(pipeline) is None
    pipeline.retire("me", "cli", NOW)
    assert refusal(lake.pipeline()) is not None


def refusal(pipeline: Pipeline) -> str | None:
    try:
        pipeline.adopt(NOW)
    except (PipelineRetired, RetireUnfinished) as told:
        return str(told)
    return None


def test_pipeline_that_never_loaded_is_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.file()
    lake.found_by_name(monkeypatch)

    ended = tidegate("retire", "orders", "--yes", "--json")

    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["left"] is None
    assert (lake.root / "orders.yaml.retired").exists()


def test_reset_of_the_successor_leaves_what_the_retired_pipeline_published(lake: SmallLake) -> None:
    tidegate("retire", "orders", "--yes")
    lake.commit({9: 1})
    again = successor(lake, source={"start": {"after": "2026-02-01T23:00:00Z"}})
    load(again)
    publish(again)
    before = lake.ids()

    again.drop("cli", NOW)

    assert before[FIRST] == [1, 2, 3]
    assert lake.ids() == {FIRST: [1, 2, 3], SECOND: [4]}


@pytest.mark.on_disk
@pytest.mark.follows("WorkGone", "LedgerLost")
@pytest.mark.parametrize("published", [False, True], ids=["nothing published", "published"])
def test_successor_that_lost_its_state_begins_anew_beside_what_was_left(
    lake: SmallLake, *, published: bool
) -> None:
    tidegate("retire", "orders", "--yes")
    lake.file("successor", name="successor", source={"start": "latest"})
    tidegate("load", "successor")
    if published:
        (lake.target / FIRST).rename(lake.root / "away")
        lake.commit({1: 1, 3: 1, 9: 1})
        assert tidegate("load", "successor").exit_code == 0
        assert tidegate("publish", "successor").exit_code == 0
    shutil.rmtree(lake.work)
    (lake.root / "ledger.db").unlink()

    assert "LedgerLost" in tidegate("load", "successor").output
    restored = tidegate("fsck", "successor", "--rebuild", "--json")
    if published:
        told = json.loads(restored.stdout)["error"]["message"]
        owner = lake.target / ".tidegate.owner"
        folders = f"{FIRST}, {THIRD}"
        named = f"remove {lake.work}, {owner} and, in {lake.target}, {folders}, but nothing that"
        assert f"{named} orders left: the next load then begins anew" in told
        # What the message says to do.
        owner.unlink()
        for name in (FIRST, THIRD):
            shutil.rmtree(lake.target / name)
    else:
        assert restored.exit_code == 0
    assert tidegate("load", "successor").exit_code == 3
    lake.commit({3: 1, 9: 1})
    assert tidegate("load", "successor").exit_code == 0
    assert tidegate("publish", "successor").exit_code == 0
    days = lake.ids()
    first = {} if published else {FIRST: [1, 2, 3]}
    assert days == {**first, SECOND: [4], THIRD: [lake.made - 1]}
    assert tidegate("fsck", "successor").exit_code == 0


@pytest.mark.follows("PipelineRetired")
def test_retirement_that_was_killed_is_not_turned_into_a_reset(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_given: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("tidegate.pipeline.upkeep.retiring.remove_rows", killed)
        with pytest.raises(Killed):
            lake.pipeline().retire("me", "cli", NOW)

    with pytest.raises(PipelineRetired):
        lake.pipeline().drop("cli", NOW)
    lake.pipeline().retire("me", "cli", NOW)

    assert read(lake) == [1, 2, 3, 4]
