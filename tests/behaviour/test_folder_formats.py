"""Folders of every format from load to publish: changed files, bad rows, deaths, markers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dying import Killed, deaths
from folder_files import DECLARED, WRITERS, put
from small_lake import (
    DAY,
    DAY_1,
    NOW,
    SmallLake,
    day,
    later,
    load,
    local,
    publish,
    published_ids,
)
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    ListedFileChanged,
    MarkedFilesReplaced,
    MarkedFileWrong,
    SourceRewritten,
)
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tidegate.pipeline import Pipeline
    from tidegate.storage import Storage

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"
SOON = timedelta(minutes=10)
"""A run that does not renew is dead by then."""


class Folder:
    """Files of rows of any days in one format."""

    def __init__(self, root: Path, ending: str) -> None:
        self.lake = SmallLake(root, keys={"commit": {"trigger": "process-time"}})
        self.root = root / "landing"
        self.ending = ending
        self.root.mkdir()
        format = WRITERS[ending][0]
        self.lake.source = {"kind": "files", "path": str(self.root), "format": format}
        if format in {"csv", "json"}:
            self.lake.source["columns"] = DECLARED

    def put(self, name: str, *rows: tuple[int, int]) -> Path:
        """Write rows: the id and the day of each."""
        return put(
            self.root,
            f"{name}.{self.ending}",
            [
                {"id": id, "at": DAY_1 + DAY * (day - 1), "amount": id / 2, "note": f"n {id}"}
                for id, day in rows
            ],
        )

    def pipeline(self, storage: Storage | None = None) -> Pipeline:
        return self.lake.pipeline(storage)

    def load_and_publish(self) -> dict[str, list[int]]:
        load(self.pipeline())
        publish(self.pipeline())
        return published_ids(self.lake.target)


@pytest.mark.parametrize("names", [("id", "at", "email", "name"), ("name", "id", "email", "at")])
def test_values_without_a_header_belong_to_the_columns_in_their_order(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    values = {"id": "1", "at": "2026-02-01T00:00:00Z", "email": "ada@x", "name": "ada"}
    lake = SmallLake(tmp_path, keys={"commit": {"trigger": "process-time"}})
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "1.csv").write_text(",".join(values[name] for name in names) + "\n")
    kinds = {"id": "long", "at": "timestamp", "email": "string", "name": "string"}
    columns = {name: kinds[name] for name in names}
    lake.source = {"kind": "files", "path": str(folder), "format": "csv", "columns": columns}
    lake.source["csv"] = {"header": False}

    load(lake.pipeline())
    publish(lake.pipeline())

    (row,) = read_committed(lake.target).to_table().to_pylist()
    assert (row["id"], row["email"], row["name"]) == (1, "ada@x", "ada")


def rebuild(pipeline: Pipeline) -> None:
    """Read both days again, and publish them."""
    planned = pipeline.rebuild([day(1), day(2)], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline)


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], Folder]:
    return lambda ending: Folder(tmp_path / "lake", ending)


@pytest.mark.parametrize(
    "ending",
    [
        "orc",
        "csv.gz",
        *(pytest.param(ending, marks=pytest.mark.slow) for ending in ("avro", "json")),
    ],
)
def test_files_are_published_once_and_a_changed_one_is_rebuilt(
    make: Callable[[str], Folder], ending: str
) -> None:
    folder = make(ending)
    folder.put("a", (1, 1), (2, 2))
    assert folder.load_and_publish() == {FIRST: [1], SECOND: [2]}
    folder.put("b", (3, 1))
    assert folder.load_and_publish() == {FIRST: [1, 3], SECOND: [2]}
    folder.put("a", (1, 1), (4, 2))

    with pytest.raises(SourceRewritten, match=rf"a\.{ending}"):
        load(folder.pipeline())
    rebuild(folder.pipeline())

    assert published_ids(folder.lake.target) == {FIRST: [1, 3], SECOND: [4]}


def _spoiled(folder: Folder) -> Path:
    """Write a file whose second row does not fit."""
    path = folder.put("b", (3, 1), (4, 2), (5, 2))
    (name, write) = WRITERS[folder.ending]
    rows: list[dict[str, Any]] = [
        {"id": id, "at": DAY_1, "amount": 1, "note": "x"} for id in (3, "four", 5)
    ]
    assert name in {"csv", "json"}
    path.write_bytes(write(rows))
    return path


@pytest.mark.follows("SourceRowInvalid")
@pytest.mark.parametrize(("ending", "remedy"), [("csv", "correct"), ("json.gz", "take out")])
def test_row_that_does_not_fit_publishes_nothing_of_the_window_until_it_is_corrected(
    make: Callable[[str], Folder], monkeypatch: pytest.MonkeyPatch, ending: str, remedy: str
) -> None:
    folder = make(ending)
    folder.put("a", (1, 1))
    assert folder.load_and_publish() == {FIRST: [1]}
    path = _spoiled(folder)
    folder.put("c", (6, 2))

    folder.lake.found_by_name(monkeypatch)
    refused = CliRunner().invoke(app, ["load", "orders"])

    row = 3 if WRITERS[ending][0] == "csv" else 2
    said = " ".join(refused.output.split())
    assert refused.exit_code == 1
    assert f"SourceRowInvalid: {path}: row {row}, column 'id'" in said
    publish(folder.pipeline())
    assert published_ids(folder.lake.target) == {FIRST: [1]}

    if remedy == "correct":
        folder.put("b", (3, 1), (4, 2), (5, 2))
    else:
        path.unlink()
    commands = re.findall(r"`(tidegate [^`]*)`", said)
    assert [command.split()[1] for command in commands] == ["abandon", "load"]
    for command in commands:
        words = shlex.split(command)[1:]
        words += ["--yes"] if "abandon" in words else []
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    publish(folder.pipeline())

    expected = {FIRST: [1, 3], SECOND: [4, 5, 6]}
    taken_out = {FIRST: [1], SECOND: [6]}
    found = published_ids(folder.lake.target)
    assert found == (expected if remedy == "correct" else taken_out)


@pytest.mark.parametrize("ending", ["csv.gz", "json"])
def test_file_that_changes_under_an_open_window_is_not_read_in_part(
    make: Callable[[str], Folder], ending: str
) -> None:
    folder = make(ending)
    folder.put("a", (1, 1), (2, 2))
    folder.pipeline().plan(Run("dead", "dead"), NOW)
    folder.put("a", (1, 1), (2, 2), (3, 2))

    with pytest.raises(ListedFileChanged):
        load(later(folder.pipeline(), SOON))

    publish(folder.pipeline())
    assert published_ids(folder.lake.target) == {}


def _content(folder: Folder) -> Mapping[str, bytes]:
    """Return all published data files: name → bytes."""
    root = folder.lake.target
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("part-*")}


@pytest.mark.on_disk
@pytest.mark.parametrize(
    ("ending", "every"),
    [
        ("csv", 15),
        *(pytest.param(ending, 2, marks=pytest.mark.slow) for ending in ("json.gz", "orc", "avro")),
    ],
)
def test_load_that_dies_anywhere_is_finished_to_the_same_bytes(
    make: Callable[[str], Folder], tmp_path: Path, ending: str, every: int
) -> None:
    folder = make(ending)
    folder.put("a", (1, 1))
    folder.load_and_publish()
    folder.put("b", (2, 1), (3, 2))
    folder.put("c", (4, 2))
    contents = []

    for storage in deaths(folder.lake, tmp_path / "copied", every):
        try:
            load(folder.pipeline(storage))
        except Killed:
            load(later(folder.pipeline(), SOON))
        publish(later(folder.pipeline(), SOON * 2))
        assert published_ids(folder.lake.target) == {FIRST: [1, 2], SECOND: [3, 4]}
        contents.append(_content(folder))

    assert len(contents) > 1
    assert all(content == contents[-1] for content in contents)


class Chain:
    """A pipeline that reads what another one publishes, by its markers."""

    def __init__(self, root: Path) -> None:
        self.first = Folder(root / "first", "csv")
        self.lake = SmallLake(root / "second", keys={"commit": {"trigger": "process-time"}})
        self.lake.source = {
            "kind": "files",
            "path": str(self.first.lake.target),
            "partition_by": {"dt": "date"},
            "require_marker": True,
        }
        self.lake.keys["target"] = {"partition_by": {"dt": "dt"}}

    def load_and_publish(self) -> dict[str, list[int]]:
        pipeline = self.lake.pipeline()
        load(pipeline)
        publish(self.lake.pipeline())
        return published_ids(self.lake.target)


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    chain = Chain(tmp_path)
    chain.first.put("a", (1, 1), (2, 2))
    chain.first.load_and_publish()
    return chain


def test_partitions_are_read_by_markers_and_higher_revisions_add_rows(chain: Chain) -> None:
    target = chain.first.lake.target
    waiting = (target / SECOND / "_SUCCESS").rename(target / "marker")
    assert chain.load_and_publish() == {FIRST: [1]}
    waiting.rename(target / SECOND / "_SUCCESS")
    assert chain.load_and_publish() == {FIRST: [1], SECOND: [2]}

    chain.first.put("b", (3, 1))
    chain.first.load_and_publish()
    assert chain.load_and_publish() == {FIRST: [1, 3], SECOND: [2]}


def test_partition_that_is_just_being_committed_is_left_as_it_was(chain: Chain) -> None:
    chain.load_and_publish()
    target = chain.first.lake.target
    marker = target / FIRST / "_SUCCESS"
    standing = marker.read_bytes()
    marker.unlink()
    (target / FIRST / "part-new.parquet").write_bytes(b"half of a file")

    assert chain.load_and_publish() == {FIRST: [1], SECOND: [2]}

    (target / FIRST / "part-new.parquet").unlink()
    marker.write_bytes(standing)
    assert chain.load_and_publish() == {FIRST: [1], SECOND: [2]}


@pytest.mark.follows("MarkedFileWrong")
@pytest.mark.parametrize("remedy", ["restore", "publish again"])
def test_file_that_is_not_as_its_marker_lists_it_stops_the_load(chain: Chain, remedy: str) -> None:
    part = next((chain.first.lake.target / FIRST).glob("part-*"))
    content = part.read_bytes()
    part.write_bytes(content[:-1])

    with pytest.raises(MarkedFileWrong, match="as the marker"):
        load(chain.lake.pipeline())
    assert published_ids(chain.lake.target) == {}
    if remedy == "restore":
        part.write_bytes(content)
    else:
        rebuild(chain.first.pipeline())

    assert chain.load_and_publish() == {FIRST: [1], SECOND: [2]}


def test_files_that_a_higher_revision_took_away_are_rebuilt(chain: Chain) -> None:
    chain.load_and_publish()
    chain.first.put("a", (5, 1), (2, 2))
    rebuild(chain.first.pipeline())

    with pytest.raises(MarkedFilesReplaced):
        load(chain.lake.pipeline())
    rebuild(chain.lake.pipeline())
    assert chain.lake.ids() == {FIRST: [5], SECOND: [2]}

    assert chain.load_and_publish() == {FIRST: [5], SECOND: [2]}


def test_reading_text_loads_no_pandas(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", [{"id": 1, "at": DAY_1, "amount": 1.0, "note": "x"}])
    put(tmp_path, "a.json", [{"id": 1, "at": DAY_1, "amount": 1.0, "note": "x"}])
    code = (
        "import sys, pyarrow as pa\n"
        "from tidegate.physical.csv import CsvDialect, CsvFile, CsvRows\n"
        "from tidegate.physical.json_lines import JsonFile, JsonRows\n"
        "from tidegate.source.files.metadata import FileFacts, metadata_values\n"
        "kinds = {'id': pa.int64(), 'at': pa.timestamp('us', 'UTC')}\n"
        f"csv = CsvRows(CsvFile(pa.OSFile('{tmp_path}/a.csv'), CsvDialect()), kinds)\n"
        f"json = JsonRows(JsonFile(pa.OSFile('{tmp_path}/a.json')), pa.schema(kinds))\n"
        "named = {'s': 'file.size', 'm': 'file.modification-time', 'p': 'file.path'}\n"
        "metadata_values(named, FileFacts('/a', 1, 1))\n"
        "rows = [b.num_rows for r in (csv, json) for _, b in r.batches(['id', 'at'], 0, 9)]\n"
        "print(rows, 'pandas' in sys.modules)"
    )

    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert said.strip() == "[1, 1] False"


@pytest.mark.parametrize("ending", WRITERS)
def test_file_that_was_only_touched_is_read_again(tmp_path: Path, ending: str) -> None:
    folder = Folder(tmp_path, ending)
    first = folder.put("a", (1, 1))
    folder.put("b", (2, 2))
    assert folder.load_and_publish() == {FIRST: [1], SECOND: [2]}
    folder.put("c", (3, 1))
    os.utime(first, (1, 1))

    rebuild(folder.pipeline())
    publish(folder.pipeline())

    assert published_ids(folder.lake.target) == {FIRST: [1], SECOND: [2]}
    assert folder.load_and_publish() == {FIRST: [1, 3], SECOND: [2]}


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("csv", "id,at,more\n1,2026-02-01T00:00:00Z,x"),
        ("csv", "id,at,more\r1,2026-02-01T00:00:00Z,x\r"),
        ("json", '{"id": 1, "at": "2026-02-01T00:00:00Z", "more": "x"}'),
    ],
    ids=["csv", "carriage returns", "json"],
)
def test_only_row_of_a_file_that_ends_without_a_line_break_is_published_with_its_columns(
    make: Callable[[str], Folder], ending: str, text: str
) -> None:
    folder = make(ending)
    folder.lake.source.pop("columns")
    (folder.root / f"a.{ending}").write_bytes(text.encode())

    assert folder.load_and_publish() == {FIRST: [1]}
    assert read_committed(folder.lake.target).to_table()["more"].to_pylist() == ["x"]
