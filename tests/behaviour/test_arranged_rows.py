"""Rows that are sorted or brought together stay the same rows, in the files that were asked for."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import NOW, local
from tidegate.errors import ColumnMissing, SortColumnInvalid
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.load.staging import stage_split
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.stage.part_writers import WriteLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidegate.execute import Executor
    from tidegate.model.message import PartFile
    from tidegate.pipeline import Pipeline

ROWS = 8_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.string()),
        ("price", pa.int64()),
        ("note", pa.dictionary(pa.int32(), pa.string())),
        ("tags", pa.list_(pa.string())),
    ]
)


def price(row: int) -> int | None:
    return None if row % 97 == 0 else row * 7919 % 1_000


def shops(folder: Path, of_row: Callable[[int], int]) -> Path:
    folder.mkdir()
    for file in range(4):
        ids = range(file * ROWS // 4, (file + 1) * ROWS // 4)
        columns = {
            "id": list(ids),
            "shop": [f"s{of_row(row)}" for row in ids],
            "price": [price(row) for row in ids],
            "note": pa.array([f"n{row % 10}" for row in ids]).dictionary_encode(),
            "tags": [[str(row)] * (row % 3) for row in ids],
        }
        pq.write_table(pa.table(columns, schema=SCHEMA), folder / f"{file}.parquet")
    return folder


def pipeline(folder: Path, root: Path, target_size: str = "128 MiB", **target: Any) -> Pipeline:
    root.mkdir()
    split = {"max_rows": 1_000, "target_size": target_size}
    described = {
        "name": "shops",
        "source": {"kind": "files", "path": str(folder), "split": split},
        "target": {"path": str(root / "out"), "partition_by": {"shop": "shop"}, **target},
        "commit": {"trigger": "process-time"},
    }
    file = root / "shops.yaml"
    file.write_text(json.dumps(described))
    return open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")


@pytest.fixture(params=["threads", pytest.param("spark", marks=pytest.mark.spark)])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "threads":
        yield LocalExecutor(2)
        return
    from tidegate.execute.spark import SparkExecutor

    yield SparkExecutor(request.getfixturevalue("spark").sparkContext)


def staged(loading: Pipeline, executor: Executor) -> list[tuple[PartFile, pa.Table]]:
    (planned,) = loading.plan(Run("run", "cli"), NOW)
    loading.stage(planned, executor)
    messages = [
        CommitMessage.from_text(
            loading.storage.read_bytes(layout.message_file(planned.uri, part.id))
        )
        for split in read_splits(loading.storage, planned.uri)
        for part in split.sub_splits
    ]
    return [
        (part, pq.ParquetFile(f"{planned.uri}/{part.staged}").read())
        for message in messages
        for part in message.staged.parts
    ]


def by_price(row: int) -> tuple[bool, int]:
    """The largest first, NULL last, ties in the order of the source."""
    found = price(row)
    return found is None, -(found or 0)


@pytest.mark.parametrize("target", [{}, {"shuffle_by_partition": True}], ids=["few", "together"])
def test_rows_of_each_file_are_sorted(
    tmp_path: Path, executor: Executor, target: dict[str, Any]
) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 5)
    loading = pipeline(folder, tmp_path / "p", sort_by=["-price"], **target)

    found = staged(loading, executor)

    rows = [content["id"].to_pylist() for _, content in found]
    assert rows == [sorted(ids, key=lambda row: (*by_price(row), row)) for ids in rows]
    assert sorted(itertools.chain(*rows)) == list(range(ROWS))
    assert len(rows) == (5 if target else 40)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave little memory, so that most rows wait in a file."""
    defaults = list(WriteLimits.__init__.__defaults__ or ())
    names = list(WriteLimits.__dataclass_fields__)
    for name, value in {"group_bytes": 20_000, "buffer_bytes": 60_000}.items():
        defaults[names.index(name)] = value
    monkeypatch.setattr(WriteLimits.__init__, "__defaults__", tuple(defaults))


@pytest.mark.usefixtures("narrow")
def test_rows_that_do_not_fit_in_memory_are_sorted_all_the_same(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 5)
    loading = pipeline(folder, tmp_path / "p", sort_by=["-price"], shuffle_by_partition=True)

    found = staged(loading, LocalExecutor(2))

    assert {part.partition.path: content["id"].to_pylist() for part, content in found} == {
        f"shop=s{shop}": sorted(range(shop, ROWS, 5), key=by_price) for shop in range(5)
    }


def test_readers_are_told_the_order(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 5)
    loading = pipeline(folder, tmp_path / "p", sort_by=["note", "-price"])

    loading.load(Run("run", "cli"), NOW, local)
    list(loading.publish_all("cli", NOW))

    paths = sorted((tmp_path / "out").rglob("*.parquet"))
    groups = [pq.ParquetFile(path).metadata.row_group(0) for path in paths]
    told = [
        [
            (group.column(it.column_index).path_in_schema, it.descending, it.nulls_first)
            for it in its
        ]
        for group in groups
        for its in [group.sorting_columns]
    ]
    assert told == [[("note", False, False), ("price", True, False)]] * len(paths)


def test_rows_staged_again_after_a_death_have_the_same_bytes(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 7)
    keys = {"sort_by": ["price"], "shuffle_by_partition": True}
    once, again = (pipeline(folder, tmp_path / name, **keys) for name in ("once", "again"))
    (planned,) = again.plan(Run("run", "cli"), NOW)
    for index in range(len(read_splits(again.storage, planned.uri)) - 1):
        stage_split(again.storage, planned.uri, index, "dead")

    first, second = (
        {part.partition.path: part.sha256 for part, _ in staged(it, LocalExecutor(2))}
        for it in (once, again)
    )

    assert first == second
    assert len(first) == 7


@pytest.mark.parametrize("shops_number", [1, 100])
def test_rows_that_are_brought_together_make_one_file_per_partition(
    tmp_path: Path, shops_number: int
) -> None:
    brings_together(tmp_path, LocalExecutor(2), shops_number)


def test_few_partitions_are_brought_together_where_tasks_run(
    tmp_path: Path, executor: Executor
) -> None:
    brings_together(tmp_path, executor, 31)


def brings_together(tmp_path: Path, executor: Executor, shops_number: int) -> None:
    folder = shops(tmp_path / "raw", lambda row: row * 7919 % shops_number)
    loading = pipeline(folder, tmp_path / "p", shuffle_by_partition=True)

    found = staged(loading, executor)

    wanted: dict[str, list[int]] = {}
    for row in range(ROWS):
        wanted.setdefault(f"shop=s{row * 7919 % shops_number}", []).append(row)
    assert {part.partition.path: content["id"].to_pylist() for part, content in found} == wanted
    assert len(found) == shops_number


def test_partition_with_most_rows_is_divided_over_tasks_in_the_order_of_the_source(
    tmp_path: Path,
) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 50 if row % 4 == 0 else 999)
    loading = pipeline(
        folder,
        tmp_path / "p",
        "128 KiB",
        shuffle_by_partition=True,
        rolling={"file_size": "64 KiB"},
    )

    found = staged(loading, LocalExecutor(2))

    files = Counter(part.partition.path for part, _ in found)
    large = [content["id"].to_pylist() for part, content in found if "999" in part.partition.path]
    assert 1 < len(large) < 8, "fewer than the sub-splits that read them"
    assert [*itertools.chain(*sorted(large))] == [row for row in range(ROWS) if row % 4]
    assert {count for path, count in files.items() if "999" not in path} == {1}


@pytest.mark.follows("SortColumnInvalid")
def test_column_without_an_order_is_refused_and_removed(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 3)
    refused = pipeline(folder, tmp_path / "p", sort_by=["price", "tags"])

    with pytest.raises(SortColumnInvalid, match=r"found 'tags' of type list.*Remove the column"):
        refused.load(Run("run", "cli"), NOW, local)

    file = tmp_path / "p" / "shops.yaml"
    file.write_text(file.read_text().replace('"price", "tags"', '"price"'))
    corrected = open_pipeline(file, ledger=f"sqlite:///{tmp_path}/p/ledger.db")
    announced = corrected.load(Run("run", "cli"), NOW, local)
    assert announced.summary is not None
    assert announced.summary.rows_read == ROWS


def test_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 3)
    loading = pipeline(folder, tmp_path / "p", sort_by=["prise"])

    with pytest.raises(ColumnMissing, match=r"target\.sort_by: no column 'prise'.*price"):
        loading.load(Run("run", "cli"), NOW, local)
