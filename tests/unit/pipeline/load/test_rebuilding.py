"""The command that reads event times again leaves out no partition that may hold them."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.partition import Partition, PartitionField, Transform
from tidegate.model.time_bounds import TimeBounds
from tidegate.pipeline.load.rebuilding import LedgerRebuilding, rebuild_of

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]
PARTITIONS = [Partition((("dt", f"{day:%Y-%m-%d}"),)) for day in DAYS]
UNKNOWN = Partition((("dt", None),))


def _asked(times: TimeBounds, *, by_event_time: bool = True) -> set[str]:
    """Return the partitions of the command for rows of some times."""
    states = [
        SimpleNamespace(partition=partition, start=day, end=day + timedelta(days=1))
        for partition, day in zip(PARTITIONS, DAYS, strict=True)
    ]
    states.append(SimpleNamespace(partition=UNKNOWN, start=None, end=None))
    ledger: Any = SimpleNamespace(
        name="orders", partitions=SimpleNamespace(all=lambda: tuple(states))
    )
    config: Any = SimpleNamespace(
        event_time=SimpleNamespace(column="at" if by_event_time else "seen"),
        target=SimpleNamespace(partition_by=(PartitionField("dt", "at", Transform.DAY),)),
        timezone="UTC",
    )
    command = LedgerRebuilding(ledger, config)([times])
    assert command.startswith("`tidegate rebuild orders ")
    return set(command.strip("`").split()[3:])


@given(low=st.integers(-30, 100), more=st.integers(0, 60))
def test_partitions_are_those_that_rows_between_two_times_fall_into(low: int, more: int) -> None:
    moments = [FIRST + timedelta(hours=low), FIRST + timedelta(hours=low + more)]

    found = _asked(TimeBounds(*moments))

    hours = range(low, low + more + 1)
    touched = {(FIRST + timedelta(hours=hour)).date().isoformat() for hour in hours}
    days = {f"dt={day}" for day in touched} & {str(it) for it in PARTITIONS}
    assert found == days | {str(UNKNOWN)}


def test_unknown_times_or_other_partitionings_leave_nothing_out() -> None:
    everything = {str(it) for it in (*PARTITIONS, UNKNOWN)}

    assert _asked(TimeBounds()) == everything
    assert _asked(TimeBounds(FIRST, None)) == everything
    assert _asked(TimeBounds(FIRST, FIRST), by_event_time=False) == everything


def test_command_without_a_partition_leaves_its_place_open() -> None:
    assert rebuild_of("orders", []) == "`tidegate rebuild orders PARTITION`"


def test_command_can_be_typed_as_it_stands() -> None:
    odd = Partition((("name", "it's; rm -rf"),))

    command = rebuild_of("orders", [odd]).strip("`")

    assert shlex.split(command)[-1] == str(odd)
