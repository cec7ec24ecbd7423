"""Random tables of our own making are read as the obvious answer says, however they were made."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from golden_iceberg import bag
from random_iceberg import RandomTable
from tidegate import read_changes
from tidegate.config import read_source
from tidegate.model.instant import Instant, InstantRange
from tidegate.source.iceberg import IcebergSource

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping
    from pathlib import Path

    from random_iceberg import State

KINDS = ["_change_type", "_change_ordinal", "_commit_snapshot_id"]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
COMMITS = 12
SEEDS = [
    pytest.param(seed, marks=[pytest.mark.slow] if seed >= 8 else [], id=str(seed))
    for seed in range(150)
]


@pytest.fixture
def table(seed: int, tmp_path: Path) -> RandomTable:
    made = RandomTable(tmp_path, seed)
    made.grow(COMMITS)
    return made


def read(source: Mapping[str, Any], mode: str, **keys: Any) -> pa.Table:
    return read_changes(source, mode=mode, **keys).read_all()


def changed(before: Counter[str], table: pa.Table) -> Counter[str]:
    kinds, rows = table.column("_change_type"), table.drop_columns(KINDS)
    after = before.copy()
    after.subtract(bag(rows.filter(pc.equal(kinds, "DELETE"))))
    after.update(bag(rows.filter(pc.equal(kinds, "INSERT"))))
    assert min(after.values(), default=0) >= 0
    return +after


def identities(table: RandomTable, state: State) -> Counter[str]:
    """What tells rows apart: with row ids, an equal row with another id is another (ICE-3.14)."""
    if table.version < 3:
        return bag(table.rows(state))
    return bag(table.rows(state, lineage=True).drop_columns(["_last_updated_sequence_number"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_snapshots_of_a_random_table_have_the_rows_that_no_delete_takes(
    table: RandomTable, seed: int
) -> None:
    source = table.config()
    for state in table.states.values():
        own = read(source, "snapshot", end_inclusive=state.id)
        current = read({**source, "read": {"schema": "table"}}, "snapshot", end_inclusive=state.id)

        assert bag(own) == bag(table.rows(state, state.schema))
        assert bag(current) == bag(table.rows(state))


@pytest.mark.parametrize("seed", SEEDS)
def test_lineage_of_a_random_table_is_what_its_commits_gave_out(seed: int, tmp_path: Path) -> None:
    table = RandomTable(tmp_path, seed, version=3)
    table.grow(COMMITS)
    source = table.config()
    for state in table.states.values():
        expected = table.rows(state, lineage=True)
        found = read(
            {**source, "read": {"schema": "table"}},
            "snapshot",
            end_inclusive=state.id,
            columns=expected.column_names,
        )

        assert bag(found) == bag(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_changelog_of_a_random_table_walks_through_its_states(
    table: RandomTable, seed: int
) -> None:
    lineage = table.lineage()

    found = read(table.config(), "changelog", end_inclusive=lineage[-1].id)

    rows: Counter[str] = bag(pa.table({}))
    for state in lineage:
        own = found.filter(pc.equal(found.column("_commit_snapshot_id"), state.id))
        rows = changed(rows, own)
        assert rows == bag(table.rows(state))


@pytest.mark.parametrize("seed", SEEDS)
def test_difference_of_two_states_of_a_random_table_leads_from_one_to_the_other(
    table: RandomTable, seed: int
) -> None:
    source = table.config()
    states = list(table.states.values())
    for start, end in [*pairwise(states), (states[0], states[-1]), (states[-1], states[0])]:
        found = read(source, "snapshot_diff", start_exclusive=start.id, end_inclusive=end.id)

        before, after = bag(table.rows(start)), bag(table.rows(end))
        assert changed(before, found) == after
        gone, here = identities(table, start), identities(table, end)
        assert found.num_rows == (gone - here).total() + (here - gone).total()


@pytest.mark.parametrize("seed", SEEDS)
def test_append_windows_of_a_random_table_have_the_rows_as_they_were_committed(
    table: RandomTable, seed: int
) -> None:
    source = {**table.config(), "read": {"on_non_append": "skip"}}
    lineage: list[State] = table.lineage()
    for begin in range(len(lineage)):
        start = lineage[begin].id
        found = read(source, "append", start_exclusive=start, end_inclusive=lineage[-1].id)

        assert bag(found) == bag(table.appended(lineage[begin + 1 :]))


@pytest.mark.parametrize("seed", SEEDS)
def test_append_windows_of_a_random_table_are_refused_where_a_commit_took_rows_of_theirs_away(
    table: RandomTable, seed: int
) -> None:
    config = {**table.config(), "read": {"on_non_append": "skip"}}
    source = IcebergSource(read_source(config))
    pin = source.timeline.pin(NOW)
    lineage: list[State] = table.lineage()
    last_ones = ((begin, len(lineage) - 1) for begin in range(len(lineage) - 1))
    for begin, end in {*pairwise(range(len(lineage))), *last_ones}:
        start, last = (Instant(str(lineage[at].id), NOW) for at in (begin, end))
        units = source.slicing.units(source.timeline.at(pin, last), InstantRange(start, last))

        brought = bag(table.appended(lineage[begin + 1 : end + 1]))
        gone = brought - bag(table.rows(lineage[end]))
        assert units.refusal is not None or not gone
        only_appends = {state.operation for state in lineage[begin + 1 : end + 1]} <= {
            "append",
            "replace",
        }
        assert units.refusal is None or not only_appends
