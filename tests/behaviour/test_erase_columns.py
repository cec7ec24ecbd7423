"""Erased rows stay out when the columns that name them are renamed, retyped or no longer read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import StringType
from typer.testing import CliRunner

from behaviour.test_erase import ADA, RUN, emails, everywhere, with_emails
from behaviour.test_late_data import replay
from small_lake import DAY_1, NOW, SmallLake, day, interval, known, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import ErasedColumnGone, ErasedColumnUnread, ErasureInvalid

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

WITHOUT = {"source": {"read": {"columns": ["id", "at", "amount"]}}}
"""Reads no `email`."""
DAY = "dt=2026-02-01"
ROWS = {"id": [1, 2], "at": [DAY_1, DAY_1], "amount": [1, 1]}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})


@pytest.fixture
def folder(lake: SmallLake) -> Path:
    """Make the lake's source a folder of plain files."""
    folder = lake.root / "files"
    folder.mkdir()
    lake.source = {"kind": "files", "path": str(folder)}
    return folder


def erase(opened: Pipeline, where: str | None, *instead: int) -> list[str]:
    """Erase rows; what was left, and why."""
    erasure = opened.erasure(where, "ada", NOW, instead=instead)
    return [file.done for file in opened.erase(erasure, RUN, ADA, local).left]


def no_longer_read(lake: SmallLake) -> Pipeline:
    """Publish two people by `email`, and later rows without that column."""
    with_emails(lake)
    emails(lake, "email", {3: "eve@x"})
    opened = lake.pipeline(**WITHOUT)
    load(opened, interval(2))
    publish(opened)
    return opened


def test_window_that_waits_is_left_if_it_would_be_read_without_the_column(lake: SmallLake) -> None:
    with_emails(lake)
    emails(lake, "email", {3: "ada@x"})
    load(lake.pipeline(), interval(2))
    emails(lake, "email", {4: "eve@x"})
    opened = lake.pipeline(**WITHOUT)
    load(opened, interval(3))

    left = erase(opened, "email = 'ada@x'")

    assert len(left) == 1
    assert "--instead 1 --where CONDITION" in left[0]
    assert erase(opened, "id in (1, 3)", 1) == []
    publish(opened)
    assert lake.ids() == {DAY: [2, 4]}
    assert everywhere(lake) == {2, 4}


@pytest.mark.follows("ErasedColumnUnread")
@pytest.mark.parametrize("way", ["replay", "rebuild", "reset"])
@pytest.mark.parametrize("way_out", ["read again", "named by another"])
def test_rows_are_not_read_again_without_the_column(
    lake: SmallLake, way: str, way_out: str
) -> None:
    opened = no_longer_read(lake)
    assert erase(opened, "email = 'ada@x'") == []

    def read_again(opened: Pipeline) -> None:
        if way == "reset":
            opened.drop("cli", NOW)
            load(opened, interval(1, 2))
        else:
            planned = opened.rebuild([day(1)], RUN, NOW)
            if way == "replay":
                planned = opened.replay(1, RUN, NOW)
            opened.finish_load(planned, NOW, local)

    with pytest.raises(ErasedColumnUnread, match="'email'"):
        read_again(opened)

    if way_out == "read again":
        opened = lake.pipeline()
    elif way == "reset":
        # Until something is loaded no column is known.
        return
    else:
        assert erase(opened, "id = 1", 1) == []
    read_again(opened)
    publish(opened)
    assert lake.ids() == {DAY: [2, 3]}
    assert everywhere(lake) == {2, 3}


def test_rows_that_came_after_history_was_loaded_are_not_read_again_without_the_column(
    lake: SmallLake,
) -> None:
    lake.keys["source"] = {"start": {"from": known(1).isoformat()}}
    with lake.table.update_schema() as change:
        change.add_column("email", StringType())
    emails(lake, "email", {1: "ada@x"})
    emails(lake, "email", {2: "ada@x", 3: "bob@x"})
    opened = lake.pipeline()
    # The second window reads what was known before the first one.
    for of_day in (2, 1):
        load(opened, interval(of_day))
        publish(opened)
    assert lake.ids() == {DAY: [1, 2, 3]}
    emails(lake, "email", {4: "eve@x"})
    opened = lake.pipeline(**WITHOUT)
    load(opened, interval(3))
    publish(opened)

    assert erase(opened, "email = 'ada@x'") == []

    for again in (1, 2):
        with pytest.raises(ErasedColumnUnread, match="'email'"):
            replay(opened, again)
    replay(opened, 3)
    publish(opened)
    assert lake.ids() == {DAY: [3, 4]}
    assert everywhere(lake) == {3, 4}


def test_rows_that_come_later_need_no_column_of_an_erasure_but_earlier_ones_do(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = with_emails(lake)
    assert erase(opened, "email = 'ada@x'") == []
    emails(lake, "email", {3: "eve@x"})
    opened = lake.pipeline(**WITHOUT)
    with pytest.raises(ErasedColumnGone, match="--instead 1` alone"):
        load(opened, interval(2))

    lake.found_by_name(monkeypatch)
    typed = ["erase", "orders", "--instead", "1", "--yes"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    load(opened, interval(2))
    publish(opened)

    assert lake.ids() == {DAY: [2, 3]}
    for again in (lambda: opened.rebuild([day(1)], RUN, NOW), lambda: opened.replay(1, RUN, NOW)):
        with pytest.raises(ErasedColumnUnread):
            opened.finish_load(again(), NOW, local)
    # The number of the load that was refused is not given again.
    opened.finish_load(opened.replay(3, RUN, NOW), NOW, local)
    assert lake.ids() == {DAY: [2, 3]}


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_file_without_the_column_is_refused_until_its_rows_are_named_by_another(
    lake: SmallLake, folder: Path, name: str
) -> None:
    def bring(number: int, **columns: list[Any]) -> None:
        table = pa.table({**ROWS, **columns, "id": [2 * number - 1, 2 * number]})
        path = str(folder / f"{number}.{name}")
        pq.write_table(table, path) if name == "parquet" else pc_csv.write_csv(table, path)

    keys = {"source": {"format": name}}
    bring(1, email=["ada@x", "bob@x"])
    opened = lake.pipeline(**keys)
    load(opened)
    publish(opened)
    assert erase(opened, "email = 'ada@x'") == []

    bring(2, mail=["ada@x", "eve@x"])
    with pytest.raises(ErasedColumnGone, match=f"no such column in .*2.{name}"):
        load(lake.pipeline(**keys))

    opened = lake.pipeline(**keys)
    assert erase(opened, None, 1) == []
    load(lake.pipeline(**keys))
    opened = lake.pipeline(**keys)
    assert erase(opened, "mail = 'ada@x'", 1) == []
    publish(opened)
    assert lake.ids() == {DAY: [2, 4]}
    # Each file tells its rows by the column that it has.
    opened.finish_load(opened.rebuild([day(1)], RUN, NOW), NOW, local)
    publish(opened)
    assert lake.ids() == {DAY: [2, 4]}


@pytest.mark.parametrize(("first", "then"), [("long", "string"), ("string", "long")])
def test_values_of_another_kind_are_not_taken_for_those_that_were_named(
    lake: SmallLake, folder: Path, first: str, then: str
) -> None:
    (folder / "1.csv").write_text(
        "id,at,code\n1,2026-02-01T00:00:00Z,0042\n2,2026-02-01T00:00:00Z,7\n"
    )

    def opened(kind: str) -> Pipeline:
        columns = {"id": "long", "at": "timestamp", "code": kind}
        return lake.pipeline(source={"format": "csv", "columns": columns})

    load(opened(first))
    publish(opened(first))
    value = "42" if first == "long" else "'0042'"
    assert erase(opened(first), f"code = {value}") == []
    assert lake.ids() == {DAY: [2]}

    with pytest.raises(ErasedColumnUnread, match=r"expected column 'code'.* named in the source"):
        opened(then).rebuild([day(1)], RUN, NOW)

    value = "42" if then == "long" else "'0042'"
    assert erase(opened(then), "id = 1", 1) == []
    again = opened(then)
    again.finish_load(again.rebuild([day(1)], RUN, NOW), NOW, local)
    publish(again)
    assert lake.ids() == {DAY: [2]}


@pytest.mark.parametrize("where", ["day = 4711", "day = 19310719", "day = 1.5", "id = 1.5"])
def test_value_that_a_column_cannot_have_is_refused(
    lake: SmallLake, folder: Path, where: str
) -> None:
    table = pa.table({**ROWS, "day": pa.array([4711, 2], pa.date32())})
    pq.write_table(table, folder / "1.parquet")
    load(lake.pipeline())

    with pytest.raises(ErasureInvalid):
        lake.pipeline().erasure(where, "ada", NOW)


def test_more_combinations_of_values_than_can_be_kept_are_refused(lake: SmallLake) -> None:
    opened = with_emails(lake)
    many = ", ".join(map(str, range(400)))

    with pytest.raises(ErasureInvalid, match="160,000 combinations"):
        opened.erasure(f"id in ({many}) and amount in ({many})", "ada", NOW)


@pytest.mark.parametrize("source", ["files", "iceberg"])
def test_rows_that_come_are_named_by_the_column_that_they_have_before_they_are_loaded(
    lake: SmallLake, source: str
) -> None:
    if source == "files":
        folder = lake.root / "files"
        folder.mkdir()
        lake.source = {"kind": "files", "path": str(folder)}
        pq.write_table(pa.table({**ROWS, "email": ["ada@x", "bob@x"]}), folder / "1.parquet")
        load(lake.pipeline())
        publish(lake.pipeline())
    else:
        with_emails(lake)
    assert erase(lake.pipeline(), "email = 'ada@x'") == []
    if source == "files":
        later = pa.table({**ROWS, "id": [3, 4], "mail": ["ada@x", "eve@x"]})
        pq.write_table(later, folder / "2.parquet")
    else:
        with lake.table.update_schema() as change:
            change.rename_column("email", "mail")
        emails(lake, "mail", {3: "ada@x", 4: "eve@x"})
    with pytest.raises(ErasedColumnGone):
        load(lake.pipeline(), interval(1, 99999))

    assert erase(lake.pipeline(), "mail = 'ada@x'", 1) == []

    load(lake.pipeline(), interval(1, 99999))
    publish(lake.pipeline())
    assert lake.ids() == {DAY: [2, 4]}
    assert everywhere(lake) == {2, 4}


def test_rows_are_named_by_the_kind_of_values_that_comes(lake: SmallLake, folder: Path) -> None:
    def opened(kind: str) -> Pipeline:
        columns = {"id": "long", "at": "timestamp", "code": kind}
        return lake.pipeline(source={"format": "csv", "columns": columns})

    (folder / "1.csv").write_text(
        "id,at,code\n1,2026-02-01T00:00:00Z,0042\n2,2026-02-01T00:00:00Z,7\n"
    )
    load(opened("long"))
    publish(opened("long"))
    (folder / "2.csv").write_text(
        "id,at,code\n3,2026-02-01T00:00:00Z,0042\n4,2026-02-01T00:00:00Z,42\n"
    )

    # Of the rows that are published as numbers nobody knows which one it was.
    again = opened("string")
    assert erase(again, "code = '0042'") == []
    assert lake.ids() == {DAY: [1, 2]}
    assert again.lacking(again.erasure("code = '0042'", "ada", NOW)) == {DAY: 1}
    load(again)
    again = opened("string")
    again.finish_load(again.rebuild([day(1)], RUN, NOW), NOW, local)
    publish(again)
    assert lake.ids() == {DAY: [2, 4]}


def test_erasure_that_another_one_replaced_is_named_anew(lake: SmallLake) -> None:
    opened = with_emails(lake)
    assert erase(opened, "email = 'ada@x'") == []
    assert erase(opened, None, 1) == []

    anew = opened.erasure("email = 'ada@x'", "ada", NOW)
    assert anew.number == 3
    assert opened.erase(anew, RUN, ADA, local).left == ()
    assert opened.erasure("email = 'ada@x'", "ada", NOW).number == 3


@pytest.mark.on_disk
def test_rows_that_wait_without_the_column_are_told(lake: SmallLake) -> None:
    with_emails(lake)
    emails(lake, "email", {3: "ada@x"})
    opened = lake.pipeline(**WITHOUT)
    load(opened, interval(2))

    assert opened.lacking(opened.erasure("email = 'ada@x'", "ada", NOW)) == {DAY: 1}
