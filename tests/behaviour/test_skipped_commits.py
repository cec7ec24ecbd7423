"""`on_non_append: skip` never publishes a row beside its correction without a word (ICE-3.5).

The table has 2,400 orders of six days, one file each. Some are written anew by a commit that
deletes and one that appends, as pyiceberg overwrites. What is right is what the test wrote last.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from typer.testing import CliRunner

from small_lake import DAY, DAY_1, NOW, SCHEMA, SmallLake, known, load, local, publish
from tidegate import read_changes
from tidegate.cli.app import app
from tidegate.errors import KindsMixed, NonAppendSnapshot, RemovedRowsRead
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

DAYS, ORDERS_A_DAY = 6, 400
SKIP = {"source": {"read": {"on_non_append": "skip"}}}
CHANGELOG = {
    "source": {
        "read": {
            "on_non_append": "changelog",
            "columns": ["id", "at", "amount", "_change_type"],
        }
    }
}
REMOVED = re.compile(r"event times (\d{4}-\d\d-\d\d) \d\d:\d\d to (\d{4}-\d\d-\d\d) ")


@dataclass
class Orders:
    """A lake whose orders are corrected, and what they are by now."""

    lake: SmallLake
    now: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(id, amount) of every order."""

    def grow(self, *days: int) -> None:
        """Append the orders of some days, each in a commit of its own."""
        for number in days:
            ids = self.lake.commit({number: ORDERS_A_DAY})
            self.now.update((order, 1) for order in ids)

    def next_commit(self) -> dict[str, str]:
        """Count one more commit of the lake; the properties that say when it is known."""
        self.lake.commits += 1
        return {"known-at": known(self.lake.commits - 0.5).isoformat()}

    def delete(self, condition: str) -> None:
        """Delete orders in a commit of its own; `now` is left to the caller."""
        self.lake.table.delete(condition, snapshot_properties=self.next_commit())

    def correct(self, number: int, amount: int = 2, *, orders: int = ORDERS_A_DAY) -> None:
        """Write the first orders of a day anew, by a delete and an append."""
        begin = DAY_1 + DAY * (number - 1)
        end = begin + timedelta(minutes=orders)
        first = ORDERS_A_DAY * (number - 1) + 1
        ids = list(range(first, first + orders))
        rows = {
            "id": ids,
            "at": [begin + timedelta(minutes=row + 1) for row in range(orders)],
            "amount": [amount] * orders,
        }
        self.lake.table.overwrite(
            pa.table(rows, SCHEMA),
            f"at > '{begin.isoformat()}' and at <= '{end.isoformat()}'",
            snapshot_properties=self.next_commit(),
        )
        for order in ids:
            self.now = Counter({key: 1 for key in self.now if key[0] != order})
            self.now[order, amount] = 1

    def published(self, target: Path | None = None) -> Counter[tuple[int, int]]:
        """Count what readers by listing see; a delete takes one away."""
        found: Counter[tuple[int, int]] = Counter()
        for file in sorted((target or self.lake.target).rglob("*.parquet")):
            for row in pq.ParquetFile(file).read().to_pylist():
                gone = row.get("_change_type") in {"DELETE", "UPDATE_BEFORE"}
                found[row["id"], row["amount"]] += -1 if gone else 1
        return +found if min(found.values(), default=0) >= 0 else found


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    keys = {"commit": {"trigger": "process-time"}}
    return Orders(SmallLake(tmp_path / "lake", keys=keys))


def another(orders: Orders, name: str, **keys: Any) -> tuple[Pipeline, Path]:
    """Open a new pipeline over the same table, with a target of its own."""
    target = orders.lake.root / "published" / name
    file = orders.lake.file(name, name=name, target={"path": str(target)}, **keys)
    return open_pipeline(file, ledger=f"sqlite:///{orders.lake.root}/ledger.db"), target


def loaded(pipeline: Pipeline) -> tuple[str, ...]:
    """Load and publish; what the plan of the window says."""
    announced = load(pipeline)
    publish(pipeline)
    (window,) = announced.windows
    return pipeline.stored_plan(window)[0].notes


def rebuild_named_days(pipeline: Pipeline, text: str) -> None:
    """Follow the remedy of a text: rebuild the days of the event times that it names."""
    found = REMOVED.search(text)
    assert found
    first, last = (date.fromisoformat(group) for group in found.groups())
    days = [first + timedelta(days=count) for count in range((last - first).days + 1)]
    partitions = [pipeline.parse_partition(f"dt={each}") for each in days]
    pipeline.finish_load(pipeline.rebuild(partitions, Run("mend", "cli"), NOW), NOW, local)
    publish(pipeline)


def refused(orders: Orders) -> RemovedRowsRead:
    """Bring a pipeline with `skip` before a window that it refuses."""
    orders.grow(1)
    pipeline = orders.lake.pipeline(**SKIP)
    loaded(pipeline)
    stood = orders.published()
    orders.grow(2, 3, 4, 5, 6)
    orders.correct(3)

    with pytest.raises(RemovedRowsRead) as refusal:
        load(pipeline)

    publish(pipeline)
    assert orders.published() == stood
    return refusal.value


def test_window_whose_own_rows_are_corrected_is_refused_with_numbers(orders: Orders) -> None:
    error = refused(orders)

    assert error.removed == "1 file (400 rows)"
    assert "on_non_append: changelog" in str(error)
    assert "tidegate rebuild" in str(error)


def test_refused_window_changes_nothing_however_often_it_is_tried(orders: Orders) -> None:
    refused(orders)
    pipeline = orders.lake.pipeline(**SKIP)

    for _ in range(2):
        with pytest.raises(RemovedRowsRead):
            load(pipeline)

    assert orders.published().total() == ORDERS_A_DAY


@pytest.mark.follows("RemovedRowsRead")
def test_reset_publishes_what_a_refused_window_could_not(
    orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    refused(orders)
    pipeline = orders.lake.pipeline(**SKIP)
    assert "after this load" not in caplog.text

    pipeline.finish_load(pipeline.reset(Run("reset", "cli"), NOW), NOW, local)
    publish(pipeline)

    assert orders.published() == orders.now
    assert load(pipeline).windows == ()


@pytest.mark.follows("RemovedRowsRead")
@pytest.mark.parametrize("start", ["full", "earliest"])
def test_new_pipeline_with_a_changelog_has_the_rows_of_a_refused_window(
    orders: Orders, start: str
) -> None:
    refused(orders)
    keys = {**CHANGELOG["source"], "start": start}
    pipeline, target = another(orders, "changes", source=keys)

    loaded(pipeline)
    assert orders.published(target) == orders.now
    orders.correct(5)
    loaded(pipeline)

    assert orders.published(target) == orders.now
    assert orders.now.total() == DAYS * ORDERS_A_DAY


@pytest.mark.follows("RemovedRowsRead")
def test_new_pipeline_from_the_full_table_has_the_rows_and_rebuild_keeps_it_right(
    orders: Orders,
) -> None:
    refused(orders)
    pipeline, target = another(orders, "anew", source={**SKIP["source"], "start": "full"})

    loaded(pipeline)
    assert orders.published(target) == orders.now
    orders.correct(5)
    notes = loaded(pipeline)
    rebuild_named_days(pipeline, " ".join(notes))

    assert orders.published(target) == orders.now


def test_rows_of_earlier_windows_that_were_corrected_are_told_with_numbers(
    orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    orders.grow(*range(1, DAYS + 1))
    pipeline = orders.lake.pipeline(**SKIP)
    loaded(pipeline)
    orders.correct(3)

    notes = loaded(pipeline)

    told, *_, again = notes
    assert "1 file (400 rows) of earlier windows" in told
    assert "event times 2026-02-03 00:01 to 2026-02-03 06:40 UTC" in told
    assert told in caplog.text
    assert "after this load, `tidegate rebuild orders dt=2026-02-03` reads the partitions" in again


@pytest.mark.parametrize("corrected", [ORDERS_A_DAY, 150], ids=["whole-file", "part-of-a-file"])
def test_rebuild_of_the_days_that_were_told_gives_the_rows_as_they_stand(
    orders: Orders, corrected: int
) -> None:
    orders.grow(*range(1, DAYS + 1))
    pipeline = orders.lake.pipeline(**SKIP)
    loaded(pipeline)
    orders.correct(3, orders=corrected)
    notes = loaded(pipeline)
    assert orders.published().total() == DAYS * ORDERS_A_DAY + corrected

    rebuild_named_days(pipeline, " ".join(notes))

    assert orders.published() == orders.now
    orders.grow(7)
    loaded(pipeline)
    assert orders.published() == orders.now


@pytest.mark.follows("NonAppendSnapshot")
def test_refusal_of_a_commit_names_skip_and_the_days_where_only_earlier_rows_were_removed(
    orders: Orders,
) -> None:
    orders.grow(*range(1, DAYS + 1))
    pipeline = orders.lake.pipeline()
    loaded(pipeline)
    orders.correct(3)

    with pytest.raises(NonAppendSnapshot) as stopped:
        load(pipeline)

    assert "Set `read.on_non_append: skip`" in stopped.value.remedy
    pipeline = orders.lake.pipeline(**SKIP)
    loaded(pipeline)
    rebuild_named_days(pipeline, stopped.value.remedy)
    assert orders.published() == orders.now


@pytest.mark.follows("NonAppendSnapshot")
def test_command_of_a_refusal_names_pipeline_and_days_and_is_typed_as_it_stands(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(orders.lake.root))
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{orders.lake.root}/ledger.db")
    orders.grow(*range(1, DAYS + 1))
    loaded(orders.lake.pipeline())
    orders.correct(3)
    orders.correct(4, orders=150)
    with pytest.raises(NonAppendSnapshot) as stopped:
        load(orders.lake.pipeline())

    (again,) = re.findall("`(tidegate [^`]*)`", str(stopped.value))
    loaded(orders.lake.pipeline(**SKIP))
    typed = CliRunner().invoke(app, shlex.split(again)[1:], catch_exceptions=False)

    assert again == "tidegate rebuild orders dt=2026-02-03 dt=2026-02-04"
    assert typed.exit_code == 0, typed.output
    publish(orders.lake.pipeline(**SKIP))
    assert orders.published() == orders.now


@pytest.mark.follows("NonAppendSnapshot")
@pytest.mark.parametrize("days", [(2, 3), ()], ids=["rows of the read", "earlier rows"])
def test_refusal_of_a_read_of_the_library_names_what_works_there(
    orders: Orders, days: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    orders.grow(1, 2, 3) if not days else orders.grow(1)
    start = str(orders.lake.table.current_snapshot().snapshot_id)
    committed = Counter({(order, 1): 1 for order in range(ORDERS_A_DAY + 1, 3 * ORDERS_A_DAY + 1)})
    before = Counter(orders.now)
    orders.grow(*days)
    orders.correct(2)
    corrected = Counter({key: 1 for key in orders.now if key[1] == 2})

    with pytest.raises(NonAppendSnapshot) as stopped:
        read_changes(orders.lake.source, start_exclusive=start)

    said = str(stopped.value)
    assert "`read: {on_non_append: skip}`" in said
    assert not re.search("pipeline|tidegate ", stopped.value.remedy)
    skipping = {**orders.lake.source, "read": {"on_non_append": "skip"}}
    rows = read_changes(skipping, start_exclusive=start).read_all().to_pylist()
    assert counted(rows) == (committed if days else Counter()) + corrected
    assert "tidegate rebuild" not in caplog.text
    changes = read_changes(orders.lake.source, start_exclusive=start, mode="changelog")
    signed = Counter(before)
    for row in changes.read_all().to_pylist():
        gone = row["_change_type"] in {"DELETE", "UPDATE_BEFORE"}
        signed[row["id"], row["amount"]] += -1 if gone else 1
    assert +signed == orders.now


def counted(rows: Iterable[dict[str, Any]]) -> Counter[tuple[int, int]]:
    return Counter((row["id"], row["amount"]) for row in rows)


@pytest.mark.follows("KindsMixed")
@pytest.mark.parametrize("way", ["back", "reset"])
@pytest.mark.parametrize("begins_with_kinds", [False, True])
def test_rows_with_kinds_are_not_published_beside_rows_that_have_none(
    orders: Orders, way: str, begins_with_kinds: bool
) -> None:
    first, second = (CHANGELOG, {}) if begins_with_kinds else ({}, CHANGELOG)
    orders.grow(1, 2)
    loaded(orders.lake.pipeline(**first))
    stood = orders.published()
    orders.grow(3)

    for _ in range(2):
        with pytest.raises(KindsMixed, match="tidegate reset orders"):
            load(orders.lake.pipeline(**second))
    with pytest.raises(KindsMixed):
        orders.lake.pipeline(**second).looking().preview(Run("check", "check"), NOW)
    assert orders.published() == stood

    if way == "back":
        loaded(orders.lake.pipeline(**first))
    else:
        pipeline = orders.lake.pipeline(**second)
        pipeline.finish_load(pipeline.reset(Run("reset", "cli"), NOW), NOW, local)
        publish(pipeline)
        orders.grow(4)
        loaded(pipeline)
    assert orders.published() == orders.now


@pytest.mark.follows("NonAppendSnapshot")
def test_refusal_of_a_commit_does_not_recommend_skip_where_skip_refuses(orders: Orders) -> None:
    orders.grow(1)
    pipeline = orders.lake.pipeline()
    loaded(pipeline)
    orders.grow(2, 3)
    orders.correct(1)
    orders.correct(2)

    with pytest.raises(NonAppendSnapshot) as stopped:
        load(pipeline)

    assert "take away 1 file (400 rows) of this window" in stopped.value.remedy
    assert "and 1 file (400 rows) of earlier ones" in stopped.value.remedy
    assert "Set `read.on_non_append: skip`" not in stopped.value.remedy
    pipeline.finish_load(pipeline.reset(Run("reset", "cli"), NOW), NOW, local)
    publish(pipeline)
    assert orders.published() == orders.now
    pipeline, target = another(orders, "changes", **CHANGELOG)
    loaded(pipeline)
    assert orders.published(target) == orders.now


@pytest.fixture
def typed(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Type a command, and return what it wrote."""
    orders.lake.keys["source"] = SKIP["source"]
    orders.lake.file()
    orders.lake.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")

    def run(line: str) -> str:
        result = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return run


def next_of(output: str) -> str:
    """Return the command that an output ends with."""
    (line,) = re.findall("^Next: (.*)$", output, re.MULTILINE)
    return str(line)


@pytest.mark.parametrize("told_by", ["load", "replay", "explain", "status"])
def test_partition_with_rows_that_were_removed_is_to_be_rebuilt_before_it_is_published(
    orders: Orders, typed: Callable[[str], str], told_by: str
) -> None:
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    orders.correct(3)
    loaded = typed("tidegate load orders")

    line = {
        "load": lambda: next_of(loaded),
        "replay": lambda: next_of(typed("tidegate replay orders 1")),
        "explain": lambda: next_of(typed("tidegate explain orders dt=2026-02-03")),
        "status": lambda: re.findall("`(tidegate rebuild .*?)`", _flat(typed, "status"))[0],
    }[told_by]()

    assert line == "tidegate rebuild orders dt=2026-02-03"
    rebuilt = typed(line)
    assert next_of(rebuilt) == "tidegate publish orders"
    assert "passed over" not in _flat(typed, "status")
    assert "passed over" not in typed("tidegate explain orders dt=2026-02-03")
    typed("tidegate publish orders")
    assert orders.published() == orders.now


def _flat(typed: Callable[[str], str], verb: str) -> str:
    return " ".join(typed(f"tidegate {verb} orders").split())


@pytest.mark.parametrize("way", ["rebuild", "refresh"])
def test_published_partition_whose_rows_were_removed_is_told_until_it_is_rebuilt(
    orders: Orders, typed: Callable[[str], str], way: str
) -> None:
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    typed("tidegate publish orders")
    begin = DAY_1 + DAY * 2
    orders.delete(f"at > '{begin.isoformat()}'")
    orders.now = Counter({key: 1 for key in orders.now if key[0] <= 2 * ORDERS_A_DAY})
    assert "Next:" not in typed("tidegate load orders")
    orders.grow(4)
    assert next_of(typed("tidegate load orders")) == "tidegate publish orders"
    typed("tidegate publish orders")
    (ledger,) = orders.lake.root.glob("ledger.db")
    ledger.unlink()
    typed("tidegate fsck orders --rebuild")

    told = _flat(typed, "status")

    assert "window 2 passed over commits that changed rows: 1 partition may have rows" in told
    (line,) = re.findall("`(tidegate rebuild .*?)`", told)
    assert line == "tidegate rebuild orders dt=2026-02-03"
    typed(line.replace("rebuild", way))
    if way == "rebuild":
        typed("tidegate publish orders")
    assert "passed over" not in _flat(typed, "status")
    assert orders.published() == orders.now


def move_last_of_third_day(orders: Orders, day: int | None) -> None:
    """Give the last order of the third day another time, in one commit that overwrites its file."""
    moved, table = 3 * ORDERS_A_DAY, orders.lake.table
    (old,) = (task.file for task in table.scan(f"id = {moved}").plan_files())
    rows = table.scan(f"id > {2 * ORDERS_A_DAY}").to_arrow().sort_by("id")
    ids, times, amounts = (rows[name].to_pylist() for name in SCHEMA.names)
    times[-1] = day and DAY_1 + DAY * (day - 1) + timedelta(minutes=ORDERS_A_DAY)
    amounts[-1] = 9
    new = pa.table({"id": ids, "at": times, "amount": amounts}, SCHEMA)
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(orders.next_commit()).overwrite() as overwriting,
    ):
        overwriting.delete_data_file(old)
        for file in _dataframe_to_data_files(table.metadata, new, table.io):
            overwriting.append_data_file(file)
    del orders.now[moved, 1]
    orders.now[moved, 9] = 1


PLACES: dict[str, tuple[dict[str, str], int | None, str]] = {
    "known day": ({"dt": "day(at)"}, 2, "dt=2026-02-02"),
    "new day": ({"dt": "day(at)"}, 5, "dt=2026-02-05"),
    "far day": ({"dt": "day(at)"}, 1000, "dt=2028-10-27"),
    "no day": ({"dt": "day(at)"}, None, "dt=__DEFAULT_PARTITION__"),
    "another key": ({"dt": "day(at)", "kind": "amount"}, 3, "dt=2026-02-03/kind=9"),
    "hours": ({"dt": "day(at)", "hr": "hour(at)"}, 5, "dt=2026-02-05/hr=06"),
}
TOLD_BY = ("load", "next", "status")


@pytest.mark.parametrize(
    ("keys", "day", "place", "told_by"),
    [
        pytest.param(*given, TOLD_BY[at % len(TOLD_BY)], id=f"{name} by {TOLD_BY[at % 3]}")
        for at, (name, given) in enumerate((PLACES | {"day": PLACES["new day"]}).items())
    ],
)
def test_row_that_moves_to_another_partition_is_published_there_by_the_command_that_is_told(
    orders: Orders,
    typed: Callable[[str], str],
    keys: dict[str, str],
    day: int | None,
    place: str,
    told_by: str,
) -> None:
    orders.lake.keys["target"] = {"partition_by": keys}
    orders.lake.file()
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    typed("tidegate publish orders")
    move_last_of_third_day(orders, day)
    loaded = typed("tidegate load orders")
    line = {
        "load": lambda: re.findall("`(tidegate rebuild .*?)`", " ".join(loaded.split()))[0],
        "next": lambda: next_of(loaded),
        "status": lambda: re.findall("`(tidegate rebuild .*?)`", _flat(typed, "status"))[0],
    }[told_by]()

    for following in re.findall("^Next: (.*)$", typed(line), re.MULTILINE):
        typed(following)

    assert place in line.split()[3:]
    ids: dict[str, list[int]] = {}
    for path in orders.lake.target.rglob("*.parquet"):
        folder = str(path.parent.relative_to(orders.lake.target))
        ids.setdefault(folder, []).extend(pq.ParquetFile(path).read(["id"])["id"].to_pylist())
    assert sorted(order for each in ids.values() for order in each) == sorted(
        order for order, _ in orders.now
    )
    assert 3 * ORDERS_A_DAY in ids[place]
    assert "passed over" not in _flat(typed, "status")


@pytest.mark.parametrize("way", ["rebuild", "refresh"])
def test_new_day_that_is_read_and_has_no_row_is_not_told_again(
    orders: Orders, typed: Callable[[str], str], way: str
) -> None:
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    move_last_of_third_day(orders, 5)
    typed("tidegate load orders")
    orders.delete(f"id = {3 * ORDERS_A_DAY}")
    typed("tidegate load orders")

    typed(f"tidegate {way} orders dt=2026-02-03 dt=2026-02-05")

    assert "passed over" not in _flat(typed, "status")
    orders.grow(5)
    assert next_of(typed("tidegate load orders")) == "tidegate publish orders"
    assert "passed over" not in _flat(typed, "status")


def test_reset_settles_what_was_passed_over(orders: Orders, typed: Callable[[str], str]) -> None:
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    move_last_of_third_day(orders, 5)
    typed("tidegate load orders")
    assert "passed over" in _flat(typed, "status")

    typed("tidegate reset orders --yes")

    assert "passed over" not in _flat(typed, "status")
    typed("tidegate publish orders")
    assert orders.published() == orders.now


def test_event_times_of_a_former_column_rule_no_partition_out(
    orders: Orders, typed: Callable[[str], str]
) -> None:
    """The bounds of removed rows are those of the column that was the event time then."""
    orders.lake.keys["event_time"] = {"column": "amount", "unit": "s"}
    orders.lake.file()
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    move_last_of_third_day(orders, 2)
    typed("tidegate load orders")
    orders.lake.keys["event_time"] = {"column": "at"}
    orders.lake.file()

    (line,) = re.findall("`(tidegate rebuild .*?)`", _flat(typed, "status"))
    typed(line)
    typed("tidegate publish orders")

    assert orders.published() == orders.now


def test_removed_days_are_not_named_because_a_row_moved_in_another_window(
    orders: Orders, typed: Callable[[str], str]
) -> None:
    """They are days that the source removed for good, perhaps."""
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    typed("tidegate publish orders")
    orders.delete(f"id <= {ORDERS_A_DAY}")
    typed("tidegate load orders")
    move_last_of_third_day(orders, 5)

    line = next_of(typed("tidegate load orders"))

    assert set(line.split()[3:]) == {"dt=2026-02-03", "dt=2026-02-05"}


def test_filter_in_another_case_does_not_hide_where_rows_went(
    orders: Orders, typed: Callable[[str], str]
) -> None:
    orders.lake.keys["source"] = {"read": {"on_non_append": "skip", "filter": "AMOUNT > 0"}}
    orders.lake.file()
    orders.grow(1, 2, 3)
    typed("tidegate load orders")
    move_last_of_third_day(orders, 5)

    line = next_of(typed("tidegate load orders"))

    assert set(line.split()[3:]) == {"dt=2026-02-03", "dt=2026-02-05"}
