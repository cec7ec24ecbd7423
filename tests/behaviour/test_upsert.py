"""A target of `write: upsert` has the last state of each key, whatever was loaded when."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import In

from small_lake import (
    DAY,
    DAY_1,
    NOW,
    SCHEMA,
    SmallLake,
    day,
    decide,
    interval,
    known,
    load,
    local,
)
from small_lake import publish as publish_all
from tidegate import read_committed
from tidegate.errors import (
    ChangesGone,
    ConfigInvalid,
    KeyMissing,
    KeyUnusable,
    PipelineChanged,
    StandingFileUnreadable,
    UnitLost,
)
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidegate.pipeline import Pipeline

Rows = dict[int, tuple[int, int]]
"""id → (day, amount)."""
UPSERT: dict[str, Any] = {
    "commit": {"trigger": "process-time"},
    "target": {"write": "upsert", "keys": ["id"]},
}
CHANGES = {"read": {"mode": "changelog"}}


@dataclass
class ChangingLake(SmallLake):
    """A table whose rows are written, changed, moved to other days and deleted."""

    keys: dict[str, Any] = field(default_factory=lambda: UPSERT)

    def write(self, rows: Mapping[int, tuple[int, int]], deleted: tuple[int, ...] = ()) -> None:
        """Replace or add rows by id, and delete others, in one commit of the table."""
        self.commits += 1
        moment = {"known-at": known(self.commits - 0.5).isoformat()}
        added = pa.table(
            {
                "id": list(rows),
                "at": [DAY_1 + DAY * (number - 1) for number, _ in rows.values()],
                "amount": [amount for _, amount in rows.values()],
            },
            SCHEMA,
        )
        standing = set(self.state())
        if not standing.intersection((*rows, *deleted)):
            self.table.append(added, snapshot_properties=moment)
            return
        with self.table.transaction() as change:
            change.overwrite(
                added,
                overwrite_filter=In("id", (*rows, *deleted)),
                snapshot_properties=moment,
            )

    def state(self) -> Rows:
        """Read the table as it is, by its own library."""
        return _by_id(self.table.refresh().scan().to_arrow())

    def published(self) -> Rows:
        """Read what is published; every row is in the partition of its day, and once."""
        found: Rows = {}
        for marker in self.target.rglob("_SUCCESS"):
            said = json.loads(marker.read_bytes())
            rows = [pq.read_table(marker.parent / it["name"]) for it in said["files"]]
            held = _by_id(pa.concat_tables(rows)) if rows else {}
            assert len(held) == said["rows"] == sum(map(len, rows))
            assert not found.keys() & held.keys()
            assert all(f"dt={_day(number)}" == marker.parent.name for number, _ in held.values())
            assert not rows or rows[0].column_names == ["id", "at", "amount"]
            found |= held
        return found

    def loaded(self, **keys: Any) -> Pipeline:
        """Load once."""
        pipeline = self.pipeline(**keys)
        load(pipeline)
        return pipeline


def _day(number: int) -> str:
    return (DAY_1 + DAY * (number - 1)).date().isoformat()


def _by_id(rows: pa.Table) -> Rows:
    days = [(at - DAY_1) // DAY + 1 for at in rows["at"].to_pylist()]
    amounts = rows["amount"].to_pylist()
    return dict(zip(rows["id"].to_pylist(), zip(days, amounts, strict=True), strict=True))


@pytest.fixture
def lake(tmp_path: Path) -> ChangingLake:
    return ChangingLake(tmp_path / "lake")


def replay(pipeline: Pipeline, window: int) -> None:
    pipeline.finish_load(pipeline.replay(window, Run("again", "cli"), NOW), NOW, local)


def test_rows_are_replaced_added_and_removed_by_their_key(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20), 3: (2, 30)})
    publish_all(lake.loaded(source=CHANGES))
    assert lake.published() == {1: (1, 10), 2: (1, 20), 3: (2, 30)}

    lake.write({2: (1, 21), 4: (1, 40)}, deleted=(1,))
    pipeline = lake.loaded(source=CHANGES)
    publish_all(pipeline)

    assert lake.published() == lake.state() == {2: (1, 21), 3: (2, 30), 4: (1, 40)}
    revisions = {it.partition: it.revision for it in pipeline.ledger.partitions.all()}
    assert revisions == {day(1): 2, day(2): 1}


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_other_formats_that_say_their_columns_are_merged_too(lake: ChangingLake, form: str) -> None:
    keys = {"source": CHANGES, "target": {"format": form}}
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(**keys))
    lake.write({1: (1, 11), 3: (1, 30)}, deleted=(2,))
    publish_all(lake.loaded(**keys))

    rows = read_committed(lake.target).to_table(columns=["id", "amount"]).to_pylist()
    assert sorted((it["id"], it["amount"]) for it in rows) == [(1, 11), (3, 30)]


def test_rows_are_sorted_where_the_table_is(lake: ChangingLake) -> None:
    keys = {"source": CHANGES, "target": {"sort_by": ["-amount"]}}
    lake.write({1: (1, 10), 2: (1, 20), 3: (1, 5)})
    publish_all(lake.loaded(**keys))
    lake.write({1: (1, 30), 4: (1, 15)})
    publish_all(lake.loaded(**keys))

    (only,) = lake.target.rglob("*.parquet")
    assert pq.read_table(only)["id"].to_pylist() == [1, 2, 4, 3]
    assert lake.published() == lake.state()


def test_row_that_moves_leaves_its_old_partition(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({1: (3, 10)})
    publish_all(lake.loaded(source=CHANGES))
    assert lake.published() == {1: (3, 10), 2: (1, 20)}

    lake.write({1: (1, 11)}, deleted=(2,))
    publish_all(lake.loaded(source=CHANGES))

    assert lake.published() == lake.state() == {1: (1, 11)}


def test_files_without_a_change_stay_and_small_ones_do_not_pile_up(lake: ChangingLake) -> None:
    rolling = {"rolling": {"file_size": "1KiB"}}
    lake.write({number: (1, number) for number in range(1, 6)})
    publish_all(lake.loaded(source=CHANGES, target=rolling))
    before = set(lake.stamps())
    lake.write({9: (1, 9)})
    publish_all(lake.loaded(source=CHANGES, target=rolling))
    # The file is not small, and has no change.
    assert before <= set(lake.stamps()) | {"dt=2026-02-01/_SUCCESS"}

    for number in range(10, 16):
        lake.write({number: (1, number)})
        publish_all(lake.loaded(source=CHANGES))

    assert lake.published() == lake.state()
    assert len(list(lake.target.rglob("*.parquet"))) <= 2


def test_changes_of_several_windows_are_one_revision(lake: ChangingLake) -> None:
    lake.write({1: (1, 10)})
    lake.loaded(source=CHANGES)
    lake.write({1: (1, 11), 2: (1, 20)})
    lake.loaded(source=CHANGES)
    lake.write({1: (1, 12)}, deleted=(2,))
    pipeline = lake.loaded(source=CHANGES)
    publish_all(pipeline)

    assert lake.published() == {1: (1, 12)}
    assert pipeline.ledger.partitions.get(day(1)).revision == 1


def test_appended_rows_are_upserts_in_the_order_of_their_commits(lake: ChangingLake) -> None:
    stay = {"keys_stay": True}
    for amount in (3, 1, 2):
        lake.commits += 1
        rows = pa.table({"id": [1, amount + 10], "at": [DAY_1] * 2, "amount": [amount] * 2}, SCHEMA)
        moment = known(lake.commits - 0.5).isoformat()
        lake.table.append(rows, snapshot_properties={"known-at": moment})
    publish_all(lake.loaded(target=stay))

    assert lake.published() == {1: (1, 2), 13: (1, 3), 11: (1, 1), 12: (1, 2)}


def test_last_change_of_a_commit_counts_after_what_it_removed(lake: ChangingLake) -> None:
    lake.write(dict.fromkeys(range(50), (1, 1)))
    publish_all(lake.loaded(source=CHANGES))
    lake.write(dict.fromkeys(range(50), (1, 2)))
    publish_all(lake.loaded(source={**CHANGES, "split": {"max_rows": 7}}))

    assert lake.published() == lake.state()


@pytest.mark.parametrize("window", [1, 2, 3])
def test_replay_of_any_window_ends_with_the_same_rows(lake: ChangingLake, window: int) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({1: (1, 11)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({2: (1, 22)}, deleted=(1,))
    publish_all(lake.loaded(source=CHANGES))
    stamps = lake.stamps()

    replay(lake.pipeline(source=CHANGES), window)
    publish_all(lake.pipeline(source=CHANGES))
    assert lake.stamps() == stamps

    # Other plans have other files with the same rows.
    pipeline = lake.pipeline(source={**CHANGES, "split": {"max_rows": 1}})
    replay(pipeline, window)
    publish_all(pipeline)
    assert lake.published() == lake.state()


def test_replay_with_another_filter_makes_the_partition_anew(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({3: (1, 30)})
    publish_all(lake.loaded(source=CHANGES))

    pipeline = lake.pipeline(source={"read": {"mode": "changelog", "filter": "id <> 1"}})
    replay(pipeline, 1)
    publish_all(pipeline)

    assert lake.published() == {2: (1, 20), 3: (1, 30)}


@pytest.mark.follows("ChangesGone")
def test_partition_that_cannot_be_made_anew_is_rebuilt(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({3: (1, 30)})
    publish_all(lake.loaded(source=CHANGES))
    (staged,) = (lake.work / "windows" / "000002").rglob("*.parquet")
    staged.unlink()
    pipeline = lake.pipeline(source={**CHANGES, "split": {"max_rows": 1}})
    replay(pipeline, 1)

    (refused,) = pipeline.publish_all("cli", NOW)
    assert refused.error is not None
    assert ChangesGone.__name__ in str(pipeline.ledger.partitions.get(day(1)).why)
    assert "`tidegate rebuild orders dt=2026-02-01`" in refused.error
    planned = pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish_all(pipeline)

    assert lake.published() == lake.state()


@pytest.mark.parametrize("effect", ["quarantine", "hold"])
def test_rules_judge_the_rows_that_changes_leave_and_no_delete(
    lake: ChangingLake, effect: str
) -> None:
    lake.write({1: (1, 10), 2: (1, 20), 3: (1, 30)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({1: (1, 11), 4: (1, -4)}, deleted=(2,))
    strict = {"rows": [{"name": "fits", "where": "amount > 100", "on_failure": effect}]}
    pipeline = lake.loaded(source=CHANGES, **strict)
    if effect == "hold":
        list(pipeline.publish_all("cli", NOW))
        decide(pipeline, day(1))
    publish_all(pipeline)

    # A row that is put aside leaves the one that stood out, as the source no longer has it.
    left = {1: (1, 11), 4: (1, -4)} if effect == "hold" else {}
    assert lake.published() == {3: (1, 30)} | left


@pytest.mark.on_disk
@pytest.mark.follows("StandingFileUnreadable")
def test_published_file_that_cannot_be_read_is_named_and_its_partition_rebuilt(
    lake: ChangingLake,
) -> None:
    lake.write({1: (1, 10), 2: (2, 20)})
    publish_all(lake.loaded(source=CHANGES))
    (part,) = (lake.target / "dt=2026-02-01").glob("*.parquet")
    part.write_bytes(b"x" * part.stat().st_size)
    lake.write({1: (1, 11), 2: (2, 21)})
    pipeline = lake.loaded(source=CHANGES)

    (refused,) = [it for it in pipeline.publish_all("cli", NOW) if it.error]

    assert refused.error is not None
    assert StandingFileUnreadable.__name__ in str(pipeline.ledger.partitions.get(day(1)).why)
    assert str(part) in refused.error
    assert "`tidegate rebuild orders dt=2026-02-01`" in refused.error
    planned = pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish_all(pipeline)
    assert lake.published() == lake.state()


def test_changes_of_another_length_are_not_merged(lake: ChangingLake) -> None:
    lake.write({1: (1, 10)})
    pipeline = lake.loaded(source=CHANGES)
    (staged,) = (lake.work / "windows").rglob("*.parquet")
    staged.write_bytes(staged.read_bytes() + b"x")

    (refused,) = pipeline.publish_all("cli", NOW)

    assert refused.error is not None
    assert "FileLengthWrong" in str(pipeline.ledger.partitions.get(day(1)).why)
    assert lake.published() == {}


def test_history_comes_before_everything_loaded(lake: ChangingLake) -> None:
    for amount in (1, 2, 3):
        lake.write({1: (1, amount), 10 + amount: (1, amount)})
    start = {"source": {**CHANGES, "start": {"after": known(2).isoformat()}}}
    load(lake.pipeline(**start), interval(3))
    publish_all(lake.pipeline(**start))
    for number in (2, 1):
        load(lake.pipeline(**start), interval(number))
        publish_all(lake.pipeline(**start))

    assert lake.published() == lake.state()


def test_rebuild_and_reset_replace_what_was_merged(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (2, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({1: (1, 11), 3: (1, 30)})
    pipeline = lake.loaded(source=CHANGES)
    publish_all(pipeline)

    pipeline.finish_load(pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW), NOW, local)
    publish_all(pipeline)
    assert lake.published() == lake.state()
    lake.write({1: (1, 12)}, deleted=(3,))
    publish_all(lake.loaded(source=CHANGES))
    assert lake.published() == lake.state()
    pipeline.finish_load(pipeline.reset(Run("reset", "cli"), NOW), NOW, local)
    publish_all(pipeline)

    assert lake.published() == lake.state()


def test_more_changes_than_memory_are_divided_over_files(lake: ChangingLake) -> None:
    small = {**CHANGES, "split": {"max_delete_memory": "4KiB"}}
    lake.write({number: (1, number) for number in range(2_000)})
    publish_all(lake.loaded(source=small))
    lake.write({number: (1, -number) for number in range(500, 1_500)}, deleted=(1, 2))
    publish_all(lake.loaded(source=small))

    assert lake.published() == lake.state()


def test_column_that_is_added_is_null_in_rows_that_stay(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    from pyiceberg.types import StringType

    with lake.table.update_schema() as change:
        change.add_column("note", StringType())
    lake.commits += 1
    rows = pa.table({"id": [3], "at": [DAY_1], "amount": [30], "note": ["new"]})
    rows = rows.cast(pa.schema([*SCHEMA, pa.field("note", pa.string())]))
    lake.table.append(rows, snapshot_properties={"known-at": known(1.5).isoformat()})
    publish_all(lake.loaded(source=CHANGES))

    (folder,) = (it.parent for it in lake.target.rglob("_SUCCESS"))
    found = pq.read_table(folder, columns=["id", "note"]).sort_by("id").to_pylist()
    assert [(it["id"], it["note"]) for it in found] == [(1, None), (2, None), (3, "new")]


def test_partition_whose_rows_are_all_deleted_is_empty(lake: ChangingLake) -> None:
    lake.write({1: (1, 10)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({}, deleted=(1,))
    pipeline = lake.loaded(source=CHANGES)
    publish_all(pipeline)

    assert lake.published() == {}
    assert pipeline.ledger.partitions.get(day(1)).rows == 0


def test_delete_of_a_key_that_is_not_there_is_no_revision(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    lake.write({}, deleted=(2,))
    publish_all(lake.loaded(source=CHANGES))
    other = {"start": {"after": known(1).isoformat()}}
    assert lake.published() == {1: (1, 10)}
    lake.target.parent.rename(lake.root / "first")
    (lake.root / "ledger.db").unlink()

    # From the second commit on, all that is known of the key is that it was deleted.
    publish_all(lake.loaded(source={**CHANGES, **other}))

    assert lake.published() == {}


def test_restored_ledger_goes_on_with_the_same_content(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({1: (1, 11)}, deleted=(2,))
    lake.loaded(source=CHANGES)
    (lake.root / "ledger.db").unlink()

    pipeline = lake.pipeline(source=CHANGES)
    pipeline.restore_ledger()
    publish_all(pipeline)
    assert lake.published() == lake.state()
    lake.write({3: (1, 30)})
    publish_all(lake.loaded(source=CHANGES))

    assert lake.published() == lake.state()


def test_unit_of_a_proposal_that_lapsed_is_swept(lake: ChangingLake) -> None:
    asked = {"commit": {"require": ["trigger", "approval"]}, "source": CHANGES}
    lake.write({1: (1, 10)})
    list(lake.loaded(**asked).publish_all("cli", NOW))
    lake.write({2: (1, 20)})
    pipeline = lake.loaded(**asked)
    list(pipeline.publish_all("cli", NOW))
    assert len(list((lake.work / "units").rglob("*.parquet"))) == 2

    # Somebody may be assembling files of the partition, however long that takes.
    claim = pipeline.ledger.partitions.claim(day(1), pipeline._holder("another", NOW))
    held = pipeline.garbage(NOW + DAY * 400, timedelta(0))
    assert not [item for item in held if "/units/" in item.path]
    pipeline.ledger.partitions.release(day(1), claim)
    swept = pipeline.sweep(pipeline.garbage(NOW + DAY * 400, timedelta(0)))

    assert "assembled for a revision that was not committed" in {item.reason for item in swept}
    assert len(list((lake.work / "units").rglob("*.parquet"))) == 1
    decide(pipeline, day(1))
    publish_all(pipeline)
    assert lake.published() == lake.state()


def test_file_of_a_unit_that_is_lost_is_made_again(lake: ChangingLake) -> None:
    lake.write({1: (1, 10)})
    pipeline = lake.loaded(source=CHANGES)
    pipeline.propose(day(1), "cli", NOW)
    (made,) = (lake.work / "units").rglob("*.parquet")
    bytes_before = made.read_bytes()
    made.unlink()

    pipeline.propose(day(1), "cli", NOW)

    (again,) = (lake.work / "units").rglob("*.parquet")
    assert (again.name, again.read_bytes()) == (made.name, bytes_before)
    publish_all(pipeline)
    assert lake.published() == lake.state()


def test_removal_that_waits_survives_a_lost_ledger(lake: ChangingLake) -> None:
    lake.write({1: (1, 10)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    narrow = {"source": {"read": {"mode": "changelog", "filter": "id <> 1"}}}
    replay(lake.pipeline(**narrow), 1)
    (lake.root / "ledger.db").unlink()

    pipeline = lake.pipeline(**narrow)
    pipeline.restore_ledger()
    publish_all(pipeline)

    assert lake.published() == {2: (1, 20)}


def test_other_keys_are_another_pipeline(lake: ChangingLake) -> None:
    lake.write({1: (1, 10)})
    both = {"target": {"keys": ["id", "amount"], "keys_stay": True}}
    publish_all(lake.loaded(source=CHANGES, **both))

    with pytest.raises(PipelineChanged, match=r"target\.keys"):
        lake.loaded(source=CHANGES)


@pytest.mark.follows("UnitLost")
def test_approved_revision_whose_file_is_lost_is_made_again_or_proposed_anew(
    lake: ChangingLake,
) -> None:
    asked = {"commit": {"require": ["trigger", "approval"]}, "source": CHANGES}
    lake.write({1: (1, 10)})
    pipeline = lake.loaded(**asked)
    list(pipeline.publish_all("cli", NOW))
    decide(pipeline, day(1))
    shutil.rmtree(lake.work / "units")
    publish_all(pipeline)
    assert lake.published() == {1: (1, 10)}

    lake.write({2: (1, 20)})
    load(pipeline)
    list(pipeline.publish_all("cli", NOW))
    decide(pipeline, day(1))
    lake.write({3: (1, 30)})
    load(pipeline)
    shutil.rmtree(lake.work / "units")
    (refused,) = pipeline.publish_all("cli", NOW)
    assert UnitLost.__name__ in str(pipeline.ledger.partitions.get(day(1)).why)
    assert "tidegate reopen orders dt=2026-02-01" in str(refused.error)
    pipeline.reopen(day(1), NOW)
    list(pipeline.publish_all("cli", NOW))
    decide(pipeline, day(1))
    publish_all(pipeline)

    assert lake.published() == lake.state()


def test_full_disk_of_temporary_files_is_told_and_stops_no_other_partition(
    lake: ChangingLake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = {**CHANGES, "split": {"max_delete_memory": "4KiB"}}
    lake.write({number: (1, number) for number in range(2_000)} | {2_001: (2, 1)})
    pipeline = lake.loaded(source=small)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        outcomes = list(pipeline.publish_all("cli", NOW))
    assert [item.state for item in outcomes] == ["failed", "committed"]
    assert str(tmp_path / "nowhere") in str(outcomes[0].error)

    publish_all(pipeline)
    assert lake.published() == lake.state()


def test_sweep_keeps_what_revisions_are_made_of(lake: ChangingLake) -> None:
    lake.write({1: (1, 10), 2: (1, 20)})
    publish_all(lake.loaded(source=CHANGES))
    lake.write({1: (1, 11)})
    pipeline = lake.loaded(source=CHANGES)
    publish_all(pipeline)

    pipeline.sweep(pipeline.garbage(NOW + DAY * 400, timedelta(0)))
    replay(lake.pipeline(source={**CHANGES, "split": {"max_rows": 1}}), 1)
    publish_all(lake.pipeline(source=CHANGES))

    assert lake.published() == lake.state()
    assert not list((lake.work / "units").rglob("*.parquet"))


class TestRefused:
    """Mistakes of an upsert, each by its name."""

    @pytest.mark.parametrize(
        ("target", "source", "said"),
        [
            ({"keys": None}, CHANGES, "target.keys`: is required for `write: upsert`"),
            ({"write": "append"}, {}, "belongs to `write: upsert`; the mode is 'append'"),
            ({"keys": ["dt"], "partition_by": {"dt": "id"}}, CHANGES, "would have one row"),
            ({}, {}, "set `target.keys_stay: true` if no key ever moves"),
            ({"keys": ["id", "id"]}, CHANGES, "twice"),
            (
                {"keys": ["idd"]},
                {"read": {"mode": "changelog", "columns": ["id", "at"]}},
                "'idd' is not among `source.read.columns`; did you mean 'id'",
            ),
        ],
        ids=["no keys", "append", "one row each", "moves unseen", "twice", "not read"],
    )
    def test_configuration(
        self, lake: ChangingLake, target: dict[str, Any], source: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(ConfigInvalid) as refused:
            lake.pipeline(target=target, source=source)
        assert said in str(refused.value)

    @pytest.mark.parametrize("mode", ["append", "snapshot"])
    @pytest.mark.parametrize(
        ("second", "way_out", "published"),
        [
            ("us", {"keys": ["id", "region"]}, {"region=eu": [1], "region=us": [1]}),
            ("eu", {"keys_stay": True}, {"region=eu": [1]}),
        ],
        ids=["partitioned by keys", "keys stay"],
    )
    def test_files_that_may_repeat_a_key_elsewhere_until_one_of_the_ways_out(
        self,
        lake: ChangingLake,
        tmp_path: Path,
        mode: str,
        second: str,
        way_out: dict[str, Any],
        published: dict[str, list[int]],
    ) -> None:
        folder = tmp_path / "files"
        folder.mkdir()
        (folder / "a.json").write_text('{"id": 1, "region": "eu"}\n')
        (folder / "b.json").write_text(f'{{"id": 1, "region": "{second}"}}\n')
        source = {
            "kind": "files",
            "path": str(folder),
            "format": "json",
            "read": {"mode": mode},
            "catalog": None,
            "table": None,
            "instant_time": None,
        }
        keys: dict[str, Any] = {"source": source, "event_time": None}
        target = {"partition_by": {"dt": None, "region": "region"}}
        with pytest.raises(ConfigInvalid) as refused:
            lake.pipeline(**keys, target=target)
        assert f"'{mode}' does not tell that a row moved" in str(refused.value)
        assert (
            "region may change. Partition by `target.keys`, or set `target.keys_stay: true`"
        ) in str(refused.value)

        pipeline = lake.pipeline(**keys, target={**target, **way_out})
        load(pipeline)
        publish_all(pipeline)

        assert lake.ids() == published

    def test_unknown_key_is_refused_before_a_window_is_taken(self, lake: ChangingLake) -> None:
        lake.write({1: (1, 10)})
        pipeline = lake.pipeline(target={"keys": ["idd"]}, source=CHANGES)

        with pytest.raises(Exception, match="no column 'idd'"):
            load(pipeline)

    @pytest.mark.follows("KeyMissing")
    def test_row_without_a_key_stops_the_load_until_it_is_put_aside(
        self, lake: ChangingLake
    ) -> None:
        lake.commits += 1
        rows = pa.table({"id": [1, None], "at": [DAY_1] * 2, "amount": [1, 2]}, SCHEMA)
        lake.table.append(rows, snapshot_properties={"known-at": known(0.5).isoformat()})
        with pytest.raises(KeyMissing, match="where: id is not null") as refused:
            lake.loaded(source=CHANGES)
        assert refused.value.column == "id"

        rule = {"name": "no_key", "where": "id is not null"}
        lake.pipeline(source=CHANGES).abandon(1, "cli", NOW, by="ada")
        publish_all(lake.loaded(source=CHANGES, rows=[rule]))

        assert lake.published() == {1: (1, 1)}

    @pytest.mark.follows("KeyUnusable")
    @pytest.mark.parametrize("kind", [pa.float64(), pa.decimal256(40, 2)])
    def test_key_of_fractions_is_refused(
        self, lake: ChangingLake, tmp_path: Path, kind: pa.DataType
    ) -> None:
        folder = tmp_path / "files"
        folder.mkdir()
        rows = pa.table({"id": pa.array([1.5]).cast(kind), "code": ["a"]})
        pq.write_table(rows, folder / "a.parquet")
        source = {
            "kind": "files",
            "path": str(folder),
            "catalog": None,
            "table": None,
            "instant_time": None,
        }
        keys: dict[str, Any] = {"source": source, "event_time": None}
        with pytest.raises(KeyUnusable, match=re.escape(f"'id' of type {kind}")):
            load(lake.pipeline(**keys, target={"partition_by": None}))

        pipeline = lake.pipeline(**keys, target={"partition_by": None, "keys": ["code"]})
        load(pipeline)
        publish_all(pipeline)
        assert pq.read_table(lake.target)["code"].to_pylist() == ["a"]


ROWS = st.dictionaries(
    st.integers(1, 6), st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=4
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), ROWS, st.lists(st.integers(1, 6), max_size=2)),
        st.tuples(st.just("load")),
        st.tuples(st.just("publish")),
        st.tuples(st.just("replay"), st.integers(1, 4)),
    ),
    min_size=3,
    max_size=14,
)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
@example([("write", {1: (1, 1)}, []), ("load",), ("write", {1: (2, 1)}, []), ("load",)])
def test_whatever_happened_the_published_rows_are_those_of_the_table(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    lake = ChangingLake(tmp_path_factory.mktemp("walk") / "lake")
    lake.write({100: (1, 0)})
    cut = 0
    for step in [*steps, ("load",), ("publish",)]:
        match step:
            case ("write", rows, deleted):
                if rows or set(deleted) & set(lake.state()):
                    lake.write(rows, tuple(set(deleted) - set(rows)))
            case ("load",):
                lake.loaded(source=CHANGES)
            case ("publish",):
                publish_all(lake.pipeline(source=CHANGES))
            case ("replay", window):
                known_windows = len(lake.pipeline(source=CHANGES).ledger.windows.all())
                if window <= known_windows:
                    cut += 1
                    pipeline = lake.pipeline(source={**CHANGES, "split": {"max_rows": cut}})
                    replay(pipeline, window)

    assert lake.published() == lake.state()
