"""A load that failed says so in `status` and `explain` until a load succeeds."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import DAY_1, NOW, SmallLake, interval, load, publish
from tidegate.cli.app import app
from tidegate.errors import SourceNotFound, SourceVanished, WindowOpen
from tidegate.ledger.letting_go import let_go
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "dt=2026-02-01"


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a loaded file and one that is damaged, and a pipeline over it."""
    (tmp_path / "raw").mkdir()
    _write(tmp_path / "raw" / "a.parquet")
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    keys = {
        "name": "orders",
        "source": {"kind": "files", "path": f"{tmp_path}/raw"},
        "event_time": "at",
        "target": {"path": f"{tmp_path}/published", "partition_by": {"dt": "day(at)"}},
        "execute": {"engine": "local"},
    }
    (tmp_path / "orders.yaml").write_text(json.dumps(keys))
    said("load orders")
    return tmp_path / "raw"


def _damage(path: Path, part: str) -> None:
    """Write a file of which the footer cannot be read, or only its rows cannot."""
    _write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] if part == "footer" else b"PAR1" + b"\xff" * 60 + whole[64:])


def _write(path: Path) -> None:
    rows = {"id": [1], "at": pa.array([DAY_1], pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), path)


def said(command: str, *, as_json: bool = False) -> Any:
    found = CliRunner().invoke(app, [*shlex.split(command), *(["--json"] if as_json else [])])
    return json.loads(found.stdout) if as_json else found.stdout


def test_status_and_explain_name_the_failure_until_a_load_succeeds(raw: Path) -> None:
    _damage(raw / "b.parquet", "footer")
    failed = said("load orders", as_json=True)["error"]

    (note,) = [note for note in said("status orders", as_json=True)["notes"] if "failed" in note]
    assert note.startswith("the last load failed 20")
    assert f", {failed['code']}: " in note
    assert "b.parquet" in note
    explained = said(f"explain orders {FIRST}", as_json=True)["load_failed"]
    assert note == f"the last load failed {explained}"
    assert "last load" in said(f"explain orders {FIRST}")

    _write(raw / "b.parquet")
    assert said("load orders", as_json=True)["windows"]
    assert "failed" not in said("status orders")
    assert said(f"explain orders {FIRST}", as_json=True)["load_failed"] is None


def test_failure_while_rows_are_read_is_named_beside_the_open_window(raw: Path) -> None:
    _damage(raw / "b.parquet", "rows")

    failed = said("load orders", as_json=True)["error"]

    first, second = said("status orders", as_json=True)["notes"]
    assert f", {failed['code']}: " in first
    assert second.startswith("window 2 ")


def test_source_that_is_away_is_named_until_it_is_back(raw: Path) -> None:
    raw.rename(raw.with_name("away"))

    said("load orders")

    assert "the last load failed" in said("status orders")
    raw.with_name("away").rename(raw)
    said("load orders")
    assert "the last load failed" not in said("status orders")


@pytest.mark.parametrize("asked", ["replay orders 77", "rebuild orders nothing"])
@pytest.mark.usefixtures("raw")
def test_command_that_was_mistyped_is_no_load_that_failed(asked: str) -> None:
    assert "error" in said(asked, as_json=True)

    assert said("status orders", as_json=True)["notes"] == []


def test_run_that_only_waits_for_another_has_not_failed(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 1})
    lake.pipeline().plan(Run("one", "airflow:one", interval(1)), NOW)

    with pytest.raises(WindowOpen):
        lake.pipeline().plan(Run("two", "airflow:two", interval(1)), NOW)

    assert _notes(lake) == ["is open in airflow:one"]


def test_window_that_was_given_back_does_not_read_as_if_its_run_were_at_work(
    tmp_path: Path,
) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 1})
    pipeline = lake.pipeline()
    pipeline.plan(Run("scheduled-1", "airflow:one", interval(1)), NOW)

    let_go(pipeline.ledger, "airflow:one")

    assert _notes(lake) == ["was given back by scheduled-1: the next load goes on with it"]


def test_window_of_a_process_that_has_ended_says_so(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 1})
    code = "from tidegate.pipeline.state.holders import process_owner; print(process_owner('cli'))"
    gone = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    lake.pipeline().plan(Run("cli-1", gone, interval(1)), NOW)

    assert _notes(lake) == [f"was left by {gone}, which has ended: the next load goes on with it"]
    load(lake.pipeline())
    assert _notes(lake) == []


@pytest.mark.follows("SourceVanished")
@pytest.mark.parametrize("how", ["not mounted", "another catalog"])
def test_table_that_was_there_before_is_asked_for_again(tmp_path: Path, how: str) -> None:
    lake = SmallLake(tmp_path / "lake")
    first = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    catalog = lake.root / "catalog.db"
    other = {"source": {"catalog": {"uri": f"sqlite:///{lake.root}/other.db"}}}
    if how == "not mounted":
        catalog.rename(lake.root / "away.db")

    with pytest.raises(SourceVanished, match="when window 1 was loaded at 2026-06-01 00:00Z"):
        load(lake.pipeline(**({} if how == "not mounted" else other)))

    if how == "not mounted":
        (lake.root / "away.db").replace(catalog)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    assert lake.ids() == {FIRST: first[:1]}
    assert _notes(lake) == []


def test_table_that_was_never_there_is_a_mistake_of_the_pipeline_file(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")

    with pytest.raises(SourceNotFound, match="Correct `source`"):
        load(lake.pipeline(source={"table": "raw.nothing"}))


def _notes(lake: SmallLake) -> list[str]:
    report = lake.pipeline().status(NOW)
    assert report is not None
    return [note.partition("] ")[2] or note for note in report.notes]
