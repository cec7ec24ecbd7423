"""A target of `write: overwrite` has the rows of the last window that brought any (PC-F30)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crash.faults import Stopper, stopping_storage
from small_lake import DAY_1, NOW, SmallLake, day, interval, known, load, local, publish
from tidegate import read_committed
from tidegate.errors import ConfigInvalid, RebuildOfOverwritten, SourceRewritten
from tidegate.model.partition import Partition
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

OVERWRITE: dict[str, Any] = {
    "commit": {"trigger": "process-time"},
    "target": {"write": "overwrite"},
}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys=OVERWRITE)


def next_revision(lake: SmallLake, **keys: Any) -> dict[str, list[int]]:
    """Load and publish once; the ids that are published afterwards."""
    pipeline = lake.pipeline(**keys)
    load(pipeline)
    publish(pipeline)
    found = lake.ids()
    assert {name: ids for name, ids in found.items() if ids} == lake.listed_ids()
    return found


def test_partitions_of_a_result_are_replaced_and_no_others(lake: SmallLake) -> None:
    first = lake.commit({1: 2, 2: 1})
    assert next_revision(lake) == {"dt=2026-02-01": first[:2], "dt=2026-02-02": first[2:]}

    second = lake.commit({2: 2, 3: 1})

    assert next_revision(lake) == {
        "dt=2026-02-01": first[:2],
        "dt=2026-02-02": second[:2],
        "dt=2026-02-03": second[2:],
    }
    revisions = {it.partition: it.revision for it in lake.pipeline().ledger.partitions.all()}
    assert revisions == {day(1): 1, day(2): 2, day(3): 1}


def test_windows_that_wait_together_are_one_revision_with_the_rows_of_the_last(
    lake: SmallLake,
) -> None:
    lake.commit({1: 2})
    load(lake.pipeline())
    second = lake.commit({1: 3})

    assert next_revision(lake) == {"dt=2026-02-01": second}
    assert lake.pipeline().ledger.partitions.get(day(1)).revision == 1


def test_replay_of_an_overwritten_window_changes_nothing(lake: SmallLake) -> None:
    lake.commit({1: 2})
    next_revision(lake)
    second = lake.commit({1: 1})
    next_revision(lake)
    before = lake.stamps()

    pipeline = lake.pipeline(source={"split": {"max_rows": 1}})
    planned = pipeline.replay(1, Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": second}
    assert lake.stamps() == before


def test_replay_that_brings_no_row_any_more_lets_the_window_before_count(lake: SmallLake) -> None:
    first = lake.commit({1: 2}, amount=1)
    next_revision(lake)
    lake.commit({1: 2}, amount=2)
    next_revision(lake)

    pipeline = lake.pipeline(source={"read": {"filter": "amount < 2"}})
    pipeline.finish_load(pipeline.replay(2, Run("again", "cli"), NOW), NOW, local)
    (refused,) = pipeline.publish_all("cli", NOW)
    # Its files were retired, and may be deleted at any time.
    assert "tidegate replay orders 1" in str(refused.error)
    pipeline.finish_load(pipeline.replay(1, Run("again", "cli"), NOW), NOW, local)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": first}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)], ids=["oldest first", "newest first"])
def test_history_stands_in_the_order_of_its_intervals_whenever_it_is_taken(
    lake: SmallLake, order: tuple[int, int]
) -> None:
    lake.commit({5: 1})
    second = lake.commit({5: 2, 6: 1})
    third = lake.commit({6: 1, 7: 1})
    start = {"start": {"after": known(2).isoformat()}}
    load(lake.pipeline(source=start), interval(3))
    for number in order:
        load(lake.pipeline(source=start), interval(number))
    publish(lake.pipeline(source=start))

    # Day 6 was overwritten by the first load, which is newer than any history.
    assert lake.ids() == {
        "dt=2026-02-05": second[:2],
        "dt=2026-02-06": third[:1],
        "dt=2026-02-07": third[1:],
    }


@pytest.mark.on_disk
def test_marker_is_gone_before_an_old_file_goes(lake: SmallLake) -> None:
    """Whoever follows markers never sees the files of two revisions, or few (PC-F32, PC-V26)."""
    lake.commit({1: 2})
    next_revision(lake)
    second = lake.commit({1: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    folder, seen = lake.target / "dt=2026-02-01", []

    def look() -> None:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".parquet")
        marker = folder / "_SUCCESS"
        if marker.exists():
            listed = [file["name"] for file in json.loads(marker.read_bytes())["files"]]
            assert set(listed) <= set(names)
            seen.append(tuple(listed))

    publish(lake.pipeline(stopping_storage(Stopper(between=look))))

    assert lake.ids() == {"dt=2026-02-01": second}
    assert len(set(seen)) == 2


def test_target_without_partitions_is_replaced_also_by_no_rows(lake: SmallLake) -> None:
    whole = {"partition_by": None}
    lake.commit({1: 2}, amount=1)
    pipeline = lake.pipeline(target=whole)
    load(pipeline)
    publish(pipeline)
    assert lake.ids() == {"orders": [1, 2]}

    lake.commit({1: 2}, amount=2)
    pipeline = lake.pipeline(target=whole, source={"read": {"filter": "amount < 2"}})
    load(pipeline)
    publish(pipeline)

    assert lake.ids() == {"orders": []}
    assert pipeline.ledger.partitions.get(Partition(())).revision == 2


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("keys", ["static", "no"])
def test_table_of_text_that_an_empty_result_replaced_keeps_its_columns(
    lake: SmallLake, form: str, keys: str
) -> None:
    target = {**(TestStatic.KEYS if keys == "static" else {"partition_by": None}), "format": form}
    lake.commit({1: 2})
    load(lake.pipeline(target=target))
    publish(lake.pipeline(target=target))
    before = read_committed(lake.target).schema
    lake.commit({1: 1}, amount=9)
    none = {"read": {"filter": "amount < 9"}}
    load(lake.pipeline(target=target, source=none))
    publish(lake.pipeline(target=target, source=none))

    table = read_committed(lake.target).to_table()

    assert before.names[:3] == ["id", "at", "amount"]
    assert (table.schema, len(table)) == (before, 0)


class TestStatic:
    """A target whose only partition is named in the pipeline file (PC-F31, PC-V10, PC-V25)."""

    EU = Partition((("region", "eu"),))
    KEYS: ClassVar[dict[str, Any]] = {
        "partition_by": {"dt": None, "region": "region"},
        "static_partition": {"region": "eu"},
    }

    def test_rows_go_to_the_named_partition_and_replace_it(self, lake: SmallLake) -> None:
        lake.commit({1: 1, 2: 1})
        assert next_revision(lake, target=self.KEYS) == {"region=eu": [1, 2]}
        lake.commit({1: 1})
        assert next_revision(lake, target=self.KEYS) == {"region=eu": [3]}

    def test_empty_result_leaves_an_empty_partition_with_its_marker(self, lake: SmallLake) -> None:
        lake.commit({1: 2})
        next_revision(lake, target=self.KEYS)
        lake.commit({1: 1}, amount=9)
        none = {"read": {"filter": "amount < 9"}}

        assert next_revision(lake, target=self.KEYS, source=none) == {"region=eu": []}
        assert lake.pipeline(target=self.KEYS).ledger.partitions.get(self.EU).revision == 2

    def test_first_result_without_rows_is_a_marker_in_an_empty_directory(
        self, lake: SmallLake
    ) -> None:
        lake.commit({1: 1}, amount=9)
        none = {"read": {"filter": "amount < 9"}}

        assert next_revision(lake, target=self.KEYS, source=none) == {"region=eu": []}
        assert [it.name for it in (lake.target / "region=eu").iterdir()] == ["_SUCCESS"]
        # The same again is no news.
        assert not publish(lake.pipeline(target=self.KEYS, source=none))

    def test_result_that_a_replay_makes_empty_is_published_empty(self, lake: SmallLake) -> None:
        lake.commit({1: 2})
        load(lake.pipeline(target=self.KEYS))
        pipeline = lake.pipeline(target=self.KEYS, source={"read": {"filter": "id < 0"}})
        pipeline.finish_load(pipeline.replay(1, Run("again", "cli"), NOW), NOW, local)
        publish(pipeline)

        assert lake.ids() == {"region=eu": []}

    def test_other_value_writes_another_partition_and_leaves_the_first(
        self, lake: SmallLake
    ) -> None:
        lake.commit({1: 1})
        next_revision(lake, target=self.KEYS)
        lake.commit({1: 1})
        us = {**self.KEYS, "static_partition": {"region": "us"}}

        assert next_revision(lake, target=us) == {"region=eu": [1], "region=us": [2]}

    def test_static_key_beside_a_dynamic_one_keeps_the_declared_order(
        self, lake: SmallLake
    ) -> None:
        both = {
            "partition_by": {"dt": "day(at)", "region": "region"},
            "static_partition": {"region": "a/b"},
        }
        lake.commit({1: 1, 2: 1})
        pipeline = lake.pipeline(target=both)
        load(pipeline)
        publish(pipeline)

        folders = [str(it.parent.relative_to(lake.target)) for it in lake.target.rglob("_SUCCESS")]
        assert sorted(folders) == ["dt=2026-02-01/region=a%2Fb", "dt=2026-02-02/region=a%2Fb"]
        assert not pq.read_schema(next(lake.target.rglob("*.parquet"))).names.count("region")

    @pytest.mark.parametrize(
        ("static", "said"),
        [
            ({"regionn": "eu"}, "'regionn' is no key of `target.partition_by`; did you mean"),
            ({"region": 5}, "expected the text of the directory, found 5"),
            ({"region": ""}, "expected the text of the directory"),
        ],
        ids=["unknown key", "number", "empty"],
    )
    def test_mistake_is_named(self, lake: SmallLake, static: dict[str, Any], said: str) -> None:
        keys = {**self.KEYS, "static_partition": static}
        with pytest.raises(ConfigInvalid, match="static_partition") as refused:
            lake.pipeline(target=keys)
        assert said in str(refused.value)


@pytest.mark.follows("RebuildOfOverwritten")
def test_published_file_that_is_lost_is_read_again_by_a_replay(lake: SmallLake) -> None:
    ids = lake.commit({1: 2})
    next_revision(lake)
    (lost,) = (lake.target / "dt=2026-02-01").glob("*.parquet")
    lost.unlink()
    pipeline = lake.pipeline()
    with pytest.raises(RebuildOfOverwritten, match="tidegate replay orders 1"):
        pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)

    pipeline.finish_load(pipeline.replay(1, Run("again", "cli"), NOW), NOW, local)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": ids}
    assert list(pipeline.findings()) == []


@pytest.mark.follows("RebuildOfOverwritten")
def test_rebuild_is_refused_and_names_the_window_that_is_read_again(
    lake: SmallLake,
) -> None:
    lake.commit({1: 1})
    next_revision(lake)
    second = lake.commit({1: 2})
    next_revision(lake)
    pipeline = lake.pipeline(source={"read": {"columns": ["id", "at"]}})

    with pytest.raises(RebuildOfOverwritten, match="tidegate replay orders 2"):
        pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)

    pipeline.finish_load(pipeline.replay(2, Run("again", "cli"), NOW), NOW, local)
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": second}
    assert pipeline.ledger.partitions.get(day(1)).revision == 3


def test_restored_ledger_folds_the_same_content(lake: SmallLake) -> None:
    lake.commit({1: 2})
    load(lake.pipeline())
    second = lake.commit({1: 1})
    load(lake.pipeline())
    (lake.root / "ledger.db").unlink()

    pipeline = lake.pipeline()
    pipeline.restore_ledger()
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": second}


def test_changed_file_is_corrected_by_another_one_that_replaces_its_partitions(
    lake: SmallLake,
) -> None:
    def bring(name: str, *ids: int) -> None:
        at = [DAY_1] * len(ids)
        pq.write_table(pa.table({"id": ids, "at": at, "amount": ids}), folder / name)

    folder = lake.root / "files"
    folder.mkdir()
    lake.source = {"kind": "files", "path": str(folder)}
    bring("1.parquet", 1, 2)
    next_revision(lake)
    bring("1.parquet", 1, 3)
    with pytest.raises(SourceRewritten, match="in another file, whose window replaces"):
        load(lake.pipeline())
    with pytest.raises(RebuildOfOverwritten):
        lake.pipeline().rebuild([day(1)], Run("again", "cli"), NOW)

    bring("2.parquet", 1, 3)

    ignoring = {"source": {"on_changed_file": "ignore"}}
    assert next_revision(lake, **ignoring) == {"dt=2026-02-01": [1, 3]}
