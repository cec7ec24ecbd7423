"""Files of a folder that were rewritten or deleted after they were taken in, and are rebuilt."""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import DAY, DAY_1, NOW, SmallLake, load, local, publish, published_ids
from tidegate.cli.app import app
from tidegate.errors import RebuildTooNarrow, SourceRewritten
from tidegate.errors.commands import naming
from tidegate.model.plan import WindowKind
from tidegate.model.run import Run
from tidegate.pipeline.load.file_rows import FileRows
from tidegate.source.files.reader import FilesReader
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline


class Folder:
    """Files of rows of any days, and what they have by day: the oracle."""

    def __init__(self, lake: SmallLake) -> None:
        self.lake = lake
        self.root = lake.root / "landing"
        self.root.mkdir()
        lake.keys = {"commit": {"trigger": "process-time"}}

    def put(self, name: str, *rows: tuple[int, int], **more: Any) -> Path:
        """Write rows: the id and the day of each."""
        at = [DAY_1 + DAY * (day - 1) + timedelta(minutes=id) for id, day in rows]
        columns = {
            "id": pa.array([id for id, _ in rows], pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
        }
        path = self.root / f"{name}.parquet"
        pq.write_table(pa.table({**columns, **more}), path)
        return path

    def pipeline(self, **source: Any) -> Pipeline:
        self.lake.source = {"kind": "files", "path": str(self.root), **source}
        return self.lake.pipeline()

    def rows(self) -> dict[str, list[int]]:
        ids: dict[str, list[int]] = {}
        for path in sorted(self.root.iterdir()):
            for row in pq.read_table(path).to_pylist():
                ids.setdefault(f"dt={row['at']:%Y-%m-%d}", []).append(row["id"])
        return {name: sorted(each) for name, each in sorted(ids.items())}

    def published(self) -> dict[str, list[int]]:
        publish(self.pipeline())
        found = published_ids(self.lake.target)
        assert {name: ids for name, ids in self.lake.listed_ids().items() if ids} == {
            name: ids for name, ids in found.items() if ids
        }
        return {name: ids for name, ids in found.items() if ids}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", (1, 1), (2, 2))
    folder.put("b", (3, 1))
    load(folder.pipeline())
    assert folder.published() == {"dt=2026-02-01": [1, 3], "dt=2026-02-02": [2]}
    return folder


def rebuild(pipeline: Pipeline, *days: int) -> None:
    named = [pipeline.parse_partition(f"dt=2026-02-{day:02d}") for day in days]
    pipeline.finish_load(pipeline.rebuild(named, Run("again", "cli"), NOW), NOW, local)


@pytest.fixture
def typed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Type the command that a text prints, and return what it wrote."""
    folder.lake.found_by_name(monkeypatch)

    def run(text: str, verb: str = "rebuild") -> str:
        found = re.search(rf"`tidegate ({verb} [^`]*)`", naming(text, "orders"))
        assert found, text
        result = CliRunner().invoke(app, shlex.split(found[1]), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    return run


CHANGES = {
    "rewritten": lambda folder: folder.put("a", (1, 1), (4, 3)),
    "deleted": lambda folder: (folder.root / "a.parquet").unlink(),
    "with another column": lambda folder: folder.put("a", (1, 1), (4, 3), amount=[1, 2]),
}


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("with_new", [False, True], ids=["", "beside a new file"])
def test_rebuild_takes_a_changed_file_as_it_stands_and_loads_go_on(
    folder: Folder, change: str, *, with_new: bool
) -> None:
    CHANGES[change](folder)
    if with_new:
        folder.put("c", (5, 1), (6, 4))
    with pytest.raises(SourceRewritten, match=r"a\.parquet.*tidegate rebuild"):
        load(folder.pipeline())

    rebuild(folder.pipeline(), 1, 2, 3)
    announced = load(folder.pipeline())

    assert bool(announced.windows) == with_new
    assert folder.published() == folder.rows()
    assert list(folder.pipeline().findings()) == []
    folder.put("d", (7, 1))
    load(folder.pipeline())
    assert folder.published() == folder.rows()


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("rebuilt", [False, True], ids=["", "rebuilt before"])
def test_error_names_the_partitions_that_had_rows_of_the_file(
    folder: Folder, *, rebuilt: bool
) -> None:
    """Those of a load, and of a rebuild since, which read the file when it had other rows."""
    if rebuilt:
        folder.put("a", (1, 1), (4, 3))
        rebuild(folder.pipeline(), 1, 2, 3)
    (folder.root / "a.parquet").unlink()
    folder.put("c", (8, 1))

    with pytest.raises(SourceRewritten) as refused:
        load(folder.pipeline())

    days = [1, 2, 3] if rebuilt else [1, 2]
    named = " ".join(f"dt=2026-02-{day:02d}" for day in days)
    assert f"run `tidegate rebuild orders {named}`: they may have rows of it," in str(refused.value)
    assert "found no file. To publish the source as it is now, run" in str(refused.value)
    rebuild(folder.pipeline(), *days)
    load(folder.pipeline())
    assert folder.published() == folder.rows()


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("windows", [1, 2], ids=["one window", "two windows"])
def test_error_names_every_changed_file_and_the_partitions_of_all(
    folder: Folder, windows: int
) -> None:
    """A rebuild takes in all changes: partitions that it left out would keep their old rows."""
    folder.put("c", (8, 4))
    if windows == 2:
        load(folder.pipeline())
    folder.put("d", (9, 5))
    load(folder.pipeline())
    folder.put("a", (1, 1), (12, 2))
    (folder.root / "c.parquet").unlink()
    folder.put("d", (19, 5))

    with pytest.raises(SourceRewritten) as refused:
        load(folder.pipeline())

    told = str(refused.value)
    assert "and 2 files more changed: c.parquet (gone), d.parquet (changed)." in told
    command = re.search(
        "run `tidegate rebuild orders ([^`]*)`: they may have rows of these 3", told
    )
    assert command
    rebuild(folder.pipeline(), *(int(name[-2:]) for name in command[1].split()))
    assert load(folder.pipeline()).windows == ()
    assert folder.published() == folder.rows()
    assert list(folder.pipeline().findings()) == []


@pytest.mark.on_disk
def test_plan_that_is_searched_for_a_file_is_read_once(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    read_bytes = LocalStorage.read_bytes

    def noted(storage: LocalStorage, path: str) -> bytes:
        read.append(path.removeprefix(str(folder.lake.work)))
        return read_bytes(storage, path)

    monkeypatch.setattr(LocalStorage, "read_bytes", noted)
    pipeline = folder.pipeline()
    rows = FileRows(pipeline.config, pipeline.roots, pipeline.ledger, LocalStorage())

    found = rows.partitions({f"{folder.root}/a.parquet"})

    assert sorted(str(each) for each in found) == ["dt=2026-02-01", "dt=2026-02-02"]
    assert sum(path.endswith("splits.jsonl") for path in read) == 1


@pytest.mark.parametrize("lost", ["splits.jsonl", "messages"])
def test_error_names_every_partition_if_what_was_read_is_lost(
    folder: Folder, typed: Callable[[str], str], lost: str
) -> None:
    folder.put("a", (1, 1), (4, 3))
    for path in (folder.lake.work / "windows").rglob("*"):
        if path.is_file() and lost in str(path.relative_to(folder.lake.work)):
            path.unlink()

    with pytest.raises(SourceRewritten) as refused:
        load(folder.pipeline())

    typed(str(refused.value))
    load(folder.pipeline())
    assert folder.published() == folder.rows()


@pytest.mark.follows("RebuildTooNarrow")
@pytest.mark.parametrize(
    ("change", "days"),
    [
        pytest.param("rewritten", [1, 2], id="without one that it has rows of now"),
        pytest.param("with another column", [1, 3], id="without one that it had rows of"),
        pytest.param("rewritten", [4], id="of another partition"),
        pytest.param("deleted", [2], id="without one that a deleted one had rows of"),
    ],
)
def test_rebuild_that_leaves_out_rows_of_a_changed_file_is_refused_with_all_partitions(
    folder: Folder, typed: Callable[[str], str], change: str, days: list[int]
) -> None:
    """Its listing would have the file as taken in, so that no load would name it any more."""
    folder.put("c", (6, 4))
    load(folder.pipeline())
    CHANGES[change](folder)
    before = folder.pipeline().ledger.pipeline.get()

    with pytest.raises(RebuildTooNarrow) as refused:
        rebuild(folder.pipeline(), *days)

    assert folder.pipeline().ledger.pipeline.get() == before
    how = "gone" if change == "deleted" else "changed"
    assert refused.value.files == f"a.parquet ({how})"
    typed(str(refused.value))
    assert load(folder.pipeline()).windows == ()
    assert folder.published() == folder.rows()
    assert list(folder.pipeline().findings()) == []


@pytest.mark.follows("SourceRewritten")
def test_error_names_the_partitions_that_a_changed_file_has_rows_of_now(
    folder: Folder, typed: Callable[[str], str]
) -> None:
    folder.put("a", (1, 1), (4, 3), (5, 7))
    folder.put("e", (8, 9))

    with pytest.raises(SourceRewritten) as refused:
        load(folder.pipeline())

    told = typed(str(refused.value))
    assert "took 1 file as it stands now: a.parquet (changed)" in told
    assert "PARTITION" not in told
    load(folder.pipeline())
    assert folder.published() == folder.rows()


def test_rows_that_a_filter_or_a_rule_leaves_out_name_no_partition(folder: Folder) -> None:
    keys = {"read": {"filter": "id <> 4"}}
    folder.lake.keys["rows"] = [{"name": "low", "where": "id < 5"}]
    folder.put("a", (1, 1), (4, 3), (5, 7), (2, 6))

    with pytest.raises(SourceRewritten, match=r"orders dt=2026-02-01 dt=2026-02-02 dt=2026-02-06`"):
        load(folder.pipeline(**keys))


def test_only_deciding_columns_of_only_changed_files_are_read_for_the_partitions(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.put("a", (1, 1), (4, 3), amount=[1, 2])
    read: list[tuple[str, list[str]]] = []
    physical = FilesReader.physical_columns

    def noted(reader: FilesReader, schema: pa.Schema) -> list[str]:
        read.append((",".join(schema.names), physical(reader, schema)))
        return physical(reader, schema)

    monkeypatch.setattr(FilesReader, "physical_columns", noted)
    with pytest.raises(SourceRewritten):
        load(folder.pipeline())

    assert read
    assert all(each == ("id,at,amount", ["at"]) for each in read)


def test_folder_whose_partitions_are_directories_is_rebuilt_by_these(tmp_path: Path) -> None:
    """No column of a changed file has to be read."""
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.lake.keys["target"] = {"partition_by": {"dt": None, "region": "region"}}
    for region in ("eu", "us"):
        (folder.root / f"region={region}").mkdir()
        folder.put(f"region={region}/a", (1, 1))
    keys = {"partition_by": {"region": "string"}, "split": {"target_size": "1KiB"}}
    load(folder.pipeline(**keys))
    folder.put("region=eu/a", (2, 1))

    with pytest.raises(SourceRewritten, match="rebuild orders region=eu`: they"):
        load(folder.pipeline(**keys))


def test_partitions_that_the_times_of_a_changed_file_rule_out_are_not_named(
    folder: Folder,
) -> None:
    """The sub-split that read it read the other file as well."""
    folder.put("b", (3, 1), (4, 1))

    with pytest.raises(SourceRewritten, match=r"`tidegate rebuild orders dt=2026-02-01`: they"):
        load(folder.pipeline())


def test_changed_file_that_never_had_a_row_is_taken_in_by_any_rebuild(
    folder: Folder, typed: Callable[[str], str]
) -> None:
    folder.put("c")
    load(folder.pipeline())
    folder.put("c", amount=pa.array([], pa.int64()))

    with pytest.raises(SourceRewritten, match="any partition will do") as refused:
        load(folder.pipeline())

    typed(str(refused.value))
    assert load(folder.pipeline()).windows == ()
    assert folder.published() == folder.rows()


@pytest.mark.follows("SourceRewritten")
def test_file_without_rows_that_is_gone_before_there_is_a_partition_is_passed_by_a_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.lake.keys["target"] = {"partition_by": {"dt": "day(at)", "key": "id"}}
    folder.put("a")
    load(folder.pipeline())
    (folder.root / "a.parquet").unlink()
    folder.put("b", (1, 1))

    with pytest.raises(SourceRewritten, match="no partition has rows of it yet") as refused:
        load(folder.pipeline())

    folder.lake.found_by_name(monkeypatch)
    command, *_ = re.findall("`tidegate ([^`]*)`", str(refused.value))
    result = CliRunner().invoke(app, [*shlex.split(command), "--yes"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert load(folder.pipeline()).windows == ()
    publish(folder.pipeline())
    (file,) = folder.lake.target.rglob("*.parquet")
    assert (file.parent.name, pq.ParquetFile(file).metadata.num_rows) == ("key=1", 1)


def test_file_that_came_back_after_a_rebuild_is_part_of_the_next_one(
    folder: Folder, typed: Callable[[str], str]
) -> None:
    content = (folder.root / "a.parquet").read_bytes()
    (folder.root / "a.parquet").unlink()
    rebuild(folder.pipeline(), 1, 2)
    assert folder.published() == folder.rows()
    (folder.root / "a.parquet").write_bytes(content)

    with pytest.raises(RebuildTooNarrow, match=r"a\.parquet \(back\)") as refused:
        rebuild(folder.pipeline(), 1)

    typed(str(refused.value))
    assert folder.published() == folder.rows()


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("kept", [0, 1], ids=["all gone", "one left"])
def test_folder_that_was_overwritten_by_other_files_is_rebuilt(
    folder: Folder, typed: Callable[[str], str], kept: int
) -> None:
    (folder.root / "a.parquet").unlink()
    if not kept:
        (folder.root / "b.parquet").unlink()
    folder.put("part-1", (7, 1), (8, 5))

    with pytest.raises(SourceRewritten) as refused:
        load(folder.pipeline())

    typed(str(refused.value))
    typed(str(refused.value), "load")
    assert folder.published() == folder.rows()
    assert list(folder.pipeline().findings()) == []


def test_rebuild_says_how_many_rows_are_of_other_partitions(
    folder: Folder, typed: Callable[[str], str]
) -> None:
    told = typed("`tidegate rebuild orders dt=2026-02-02`")

    assert told.startswith("window 2 partitions touched")
    assert "rows: 2 read, 1 kept, 0 in quarantine, 0 late, 1 of other partitions;" in told


def test_rebuild_of_ignored_files_says_that_other_partitions_keep_their_rows(
    folder: Folder,
) -> None:
    folder.put("a", (1, 1), (4, 3))

    rebuild(folder.pipeline(on_changed_file="ignore"), 1)

    pipeline = folder.pipeline()
    (note,) = pipeline.stored_plan(2)[0].notes
    assert note.startswith("took 1 file as it stands now: a.parquet (changed). ")
    assert "leaves what was read of it before in partitions that are not rebuilt" in note
    assert folder.published() == {"dt=2026-02-01": [1, 3], "dt=2026-02-02": [2]}
    rebuild(folder.pipeline(), 2, 3)
    assert not any("as it stands now" in note for note in pipeline.stored_plan(3)[0].notes)
    assert folder.published() == folder.rows()


def test_rebuild_without_a_changed_file_makes_no_listing_and_moves_no_checkpoint(
    folder: Folder,
) -> None:
    before = folder.pipeline().ledger.pipeline.get()
    listings = sorted(path.name for path in (folder.lake.work / "listings").iterdir())

    rebuild(folder.pipeline(), 1)

    after = folder.pipeline().ledger.pipeline.get()
    assert after.checkpoint == before.checkpoint
    assert sorted(path.name for path in (folder.lake.work / "listings").iterdir()) == listings
    assert folder.published() == folder.rows()


def test_checkpoint_moves_with_the_rebuild_and_not_before(folder: Folder) -> None:
    folder.put("a", (1, 1), (4, 3))
    pipeline = folder.pipeline()
    before = pipeline.ledger.pipeline.get()
    named = [pipeline.parse_partition(f"dt=2026-02-{day:02d}") for day in (1, 2, 3)]

    planned = pipeline.rebuild(named, Run("again", "cli"), NOW)
    (_, taken) = pipeline.ledger.windows.all()
    assert pipeline.ledger.pipeline.get().checkpoint == before.checkpoint
    pipeline.finish_load(planned, NOW, local)

    after = pipeline.ledger.pipeline.get()
    assert taken.window.kind is WindowKind.REBUILD
    assert taken.window.range.start_exclusive == before.checkpoint
    assert after.checkpoint == taken.window.range.end_inclusive
    assert after.checkpoint
    assert before.checkpoint
    assert after.checkpoint.time == before.checkpoint.time
    assert after.watermark == before.watermark


@pytest.mark.parametrize("replayed", [False, True], ids=["", "replayed"])
def test_lost_ledger_is_restored_after_a_rebuild_that_moved_the_checkpoint(
    folder: Folder, *, replayed: bool
) -> None:
    folder.put("a", (1, 1), (4, 3))
    rebuild(folder.pipeline(), 1, 2, 3)
    folder.put("c", (5, 1))
    load(folder.pipeline())
    if replayed:
        again = folder.pipeline(read={"filter": "id <> 99"})
        again.finish_load(again.replay(2, Run("again", "cli"), NOW), NOW, local)
    assert folder.published() == folder.rows()
    before = folder.pipeline().ledger.pipeline.get()

    for path in folder.lake.root.glob("ledger.db*"):
        path.unlink()
    restored = folder.pipeline().restore_ledger()

    assert restored.windows == 3
    assert folder.pipeline().ledger.pipeline.get().checkpoint == before.checkpoint
    folder.put("d", (8, 2))
    load(folder.pipeline())
    assert folder.published() == folder.rows()
    assert list(folder.pipeline().findings()) == []


def test_lineage_of_a_rebuild_begins_at_the_beginning(folder: Folder) -> None:
    folder.put("a", (1, 1), (4, 3))
    rebuild(folder.pipeline(), 1, 2, 3)
    folder.published()

    marker = json.loads((folder.lake.target / "dt=2026-02-01" / "_SUCCESS").read_bytes())

    assert marker["source"]["2"]["after"] is None


def test_file_that_changes_again_after_a_rebuild_is_refused_again(folder: Folder) -> None:
    folder.put("a", (1, 1), (4, 3))
    rebuild(folder.pipeline(), 1, 2, 3)
    folder.put("a", (9, 1))

    with pytest.raises(SourceRewritten, match=r"a\.parquet"):
        load(folder.pipeline())
    rebuild(folder.pipeline(), 1, 2, 3)

    assert folder.published() == folder.rows()
