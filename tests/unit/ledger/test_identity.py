"""What may change under a pipeline's name, and what an earlier version's registration means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from tidegate.errors import PipelineChanged
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger import rows as ledger_rows
from tidegate.ledger.schema import partition, pipeline, window
from tidegate.model.partition import DEFAULT_NAME, Partition

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEYS, DEFAULT = "target.partition_by", "target.default_partition_name"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(open_engine(f"sqlite:///{tmp_path}/ledger.db"), "orders")


def register(ledger: Ledger, keys: str, default_name: str | None = DEFAULT_NAME) -> None:
    identity = {KEYS: keys} if default_name is None else {KEYS: keys, DEFAULT: default_name}
    ledger.pipeline.register(identity, "/lake/orders", NOW)


def know(ledger: Ledger, found: Partition) -> None:
    row = {
        "pipeline": ledger.pipeline.name,
        "partition": found.path,
        "values": ledger_rows.write_partition(found),
        "first_seen": NOW,
        "revision": 0,
        "rows": 0,
        "pending": "pending",
        "claim_fence": 0,
    }
    with ledger.engine.begin() as connection:
        connection.execute(sa.insert(partition).values(**row))


def announce(ledger: Ledger, state: str = "sealed") -> None:
    """Record a window, as if the pipeline had loaded before."""
    row = {
        "pipeline": ledger.pipeline.name,
        "sequence": 1,
        "kind": "load",
        "range": {},
        "end_time": NOW,
        "partitions": [],
        "run": "run",
        "state": state,
        "attempt": 1,
        "owner": "somebody" if state == "open" else None,
        "taken_at": NOW,
    }
    with ledger.engine.begin() as connection:
        connection.execute(sa.insert(window).values(**row))


def attempt(ledger: Ledger) -> tuple[int, str | None]:
    with ledger.engine.connect() as connection:
        found = connection.execute(sa.select(window.c.attempt, window.c.owner)).one()
    return found.attempt, found.owner


@pytest.mark.parametrize("state", ["none", "open", "sealed"])
def test_keys_are_corrected_until_something_is_announced_by_them(
    ledger: Ledger, state: str
) -> None:
    register(ledger, "dt: day(att)")
    if state != "none":
        announce(ledger, state)

    if state == "sealed":
        with pytest.raises(PipelineChanged):
            register(ledger, "dt: day(at)")
        return
    register(ledger, "dt: day(at)")
    register(ledger, "dt: day(at)")

    if state == "open":
        # Who works on it would announce by the keys that are corrected.
        assert attempt(ledger) == (2, None)


@pytest.mark.parametrize("begun", ["nothing", "start", "window"])
def test_source_is_corrected_until_the_first_look_at_it(ledger: Ledger, begun: str) -> None:
    ledger.pipeline.register({"source": "lake.raw.order"}, "/lake/orders", NOW)
    if begun == "start":
        ledger.pipeline.start_at(None, "table-1")
    if begun == "window":
        announce(ledger, "open")

    if begun == "nothing":
        ledger.pipeline.register({"source": "lake.raw.orders"}, "/lake/orders", NOW)
    else:
        with pytest.raises(PipelineChanged):
            ledger.pipeline.register({"source": "lake.raw.orders"}, "/lake/orders", NOW)


def test_place_of_the_target_is_never_corrected(ledger: Ledger) -> None:
    ledger.pipeline.register({"target.path": "/lake/order"}, "/lake/order", NOW)

    with pytest.raises(PipelineChanged):
        ledger.pipeline.register({"target.path": "/lake/orders"}, "/lake/orders", NOW)


@pytest.mark.parametrize(
    ("before", "now", "stands"),
    [
        ("dt: day(at)", "dt: day(at)", None),
        ("dt: day(at), c: c", "c: c, dt: day(at)", None),
        ("c: c, dt: day(at)", "c: c, dt: day(at)", None),
        ("dt: day(at), c: c", "dt: day(at), c: c", "c: c, dt: day(at)"),
        ("c: c, dt: day(at)", "dt: day(at), c: c", "c: c, dt: day(at)"),
    ],
)
def test_registration_of_an_earlier_version_means_alphabetical_keys(
    ledger: Ledger, before: str, now: str, stands: str | None
) -> None:
    register(ledger, before, None)
    announce(ledger)

    if stands is None:
        register(ledger, now)
    else:
        with pytest.raises(PipelineChanged) as refused:
            register(ledger, now)
        assert (refused.value.key, refused.value.expected) == (KEYS, stands)


def test_order_of_keys_counts_once_it_is_registered(ledger: Ledger) -> None:
    register(ledger, "dt: day(at), c: c")
    announce(ledger)

    with pytest.raises(PipelineChanged):
        register(ledger, "c: c, dt: day(at)")


@pytest.mark.parametrize(
    ("known", "allowed"),
    [
        (Partition((("c", "eu"),)), True),
        (Partition((("c", DEFAULT_NAME + "x"),)), True),
        (Partition((("c", None),)), False),
        (Partition((("c", "none"),)), False),
    ],
    ids=["other text", "longer text", "null", "the new name"],
)
def test_name_of_null_changes_only_while_that_moves_no_partition(
    ledger: Ledger, known: Partition, allowed: bool
) -> None:
    register(ledger, "c: c")
    know(ledger, known)
    announce(ledger)

    if allowed:
        register(ledger, "c: c", "none")
        register(ledger, "c: c", "none")
    else:
        with pytest.raises(PipelineChanged) as refused:
            register(ledger, "c: c", "none")
        assert refused.value.key == DEFAULT
    with ledger.engine.connect() as connection:
        identity = connection.scalar(sa.select(pipeline.c.identity))
    assert identity[DEFAULT] == ("none" if allowed else DEFAULT_NAME)


def test_partition_of_null_comes_back_from_the_ledger_with_its_directory(ledger: Ledger) -> None:
    for found in (Partition((("c", None), ("d", "x")), "none"), Partition((("c", None),))):
        assert ledger_rows.read_partition(ledger_rows.write_partition(found)) == found
