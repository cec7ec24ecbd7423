"""What actors do: the commands and tasks of one pipeline, as people and Airflow call them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from crash.scenario import in_turn
from race.session import CLEANED, OVERTAKEN, OWNED
from tidegate.model.publication import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from race.session import Session
    from tidegate.model.partition import Partition


_FAR = 4


def day(session: Session, number: int) -> Partition:
    """Give the partition of a day."""
    return session.world.source.partition(number)


# ── Reading the source ───────────────────────────────────────────────────────────────────────────


def load(session: Session) -> Any:
    """Take in what the source has brought."""

    def verb() -> Any:
        now = session.now()
        return session.pipeline().load(session.run(now), now, in_turn)

    return session.attempt(verb, OVERTAKEN | OWNED)


def replay(session: Session) -> None:
    """Read the second window again, planned otherwise."""

    def verb() -> None:
        now, opened = session.now(), session.pipeline("finer")
        planned = opened.replay(2, session.run(now), now)
        opened.finish_load(planned, now, in_turn)

    session.attempt(verb, OVERTAKEN | CLEANED)


def rebuild(session: Session) -> None:
    """Read day 1 again whole."""
    _rebuild(session, 1)


def rebuild_held(session: Session) -> None:
    """Read the day that is held again whole."""
    _rebuild(session, 2)


def _rebuild(session: Session, number: int) -> None:
    def verb() -> None:
        now, opened = session.now(), session.pipeline()
        planned = opened.rebuild([day(session, number)], session.run(now), now)
        opened.finish_load(planned, now, in_turn)

    session.attempt(verb, OVERTAKEN | CLEANED)


def land(session: Session) -> None:
    """Let the source bring one more commit, while there are any."""
    session.world.show(min(session.world.landed + 1, session.world.source.commits))


def land_far(session: Session) -> None:
    """Let the source bring several commits at once, and clean what was before."""
    number = min(session.world.landed + _FAR, session.world.source.commits)
    session.world.show(number)


def land_and_load(session: Session) -> None:
    """Let the source bring one more commit, and take it in."""
    land(session)
    load(session)


def expire(session: Session) -> None:
    """Let the source forget commits that were taken in long ago."""
    session.world.show(session.world.landed, expired=True)


# ── Publishing ───────────────────────────────────────────────────────────────────────────────────


def publish(session: Session) -> None:
    """Publish everything pending, as the command line does."""

    def verb() -> None:
        list(session.pipeline().publish_all(session.owner, session.now()))

    session.attempt(verb, OVERTAKEN | OWNED)


def load_and_publish(session: Session) -> None:
    """Take in and publish, as a cron job does."""
    load(session)
    publish(session)


def replay_and_publish(session: Session) -> None:
    """Read the second window again, and publish what that changed."""
    replay(session)
    publish(session)


def rebuild_and_publish(session: Session) -> None:
    """Read day 1 again whole, and publish it."""
    rebuild(session)
    publish(session)


def publish_in_tasks(session: Session) -> None:
    """Publish day 1 by the tasks of an Airflow run, each of which opens the pipeline."""
    _in_tasks(session, day(session, 1))


def publish_held_in_tasks(session: Session) -> None:
    """Publish the day that is held by the tasks of an Airflow run."""
    _in_tasks(session, day(session, 2))


def _in_tasks(session: Session, partition: Partition) -> None:
    if session.attempt(lambda: session.pipeline().evaluate(partition, session.now())) is None:
        return
    proposal = session.attempt(
        lambda: session.pipeline().propose(partition, session.owner, session.now())
    )
    if proposal is None:
        return
    verdict = session.attempt(
        lambda: session.pipeline().gate(partition, proposal.digest, session.owner, session.now())
    )
    if verdict is None or verdict.outcome in {Outcome.FAIL, Outcome.HOLD}:
        return
    session.attempt(
        lambda: session.pipeline().commit(partition, proposal.digest, session.owner, session.now())
    )


def approve(session: Session) -> None:
    """Look at the day that is held, approve it, and publish it."""
    if decide(session, day(session, 2), approved=True):
        session.attempt(
            lambda: session.pipeline().publish(day(session, 2), session.owner, session.now())
        )


def reject(session: Session) -> None:
    """Look at the day that is held, and reject it."""
    decide(session, day(session, 2), approved=False)


def reopen(session: Session) -> None:
    """Let the day that is held be checked again."""
    session.told.rejected.clear()
    session.attempt(lambda: session.pipeline().reopen(day(session, 2), session.now()))


def decide(session: Session, partition: Partition, *, approved: bool) -> bool:
    """Look at a held partition and decide on what was shown; whether that was stored."""
    looked = session.attempt(lambda: session.pipeline().explain(partition, session.now()))
    if looked is None or looked.proposed is None:
        return False
    digest = looked.proposed.publication.digest

    def verb() -> bool:
        session.pipeline().decide(
            partition,
            publication=digest,
            approved=approved,
            by="ada",
            comment="",
            now=session.now(),
        )
        return True

    told, decided = session.told, (partition, digest)
    if approved:
        told.approved.add(decided)
    if not session.attempt(verb):
        return False
    if approved:
        told.rejected.discard(decided)
    else:
        told.rejected.add(decided)
    return True


# ── Upkeep ───────────────────────────────────────────────────────────────────────────────────────


def sweep(session: Session) -> None:
    """Delete what nobody needs, however young."""

    def verb() -> None:
        opened = session.pipeline()
        opened.sweep(opened.garbage(session.now(), timedelta(0)))

    session.attempt(verb)


def lose_ledger(session: Session) -> None:
    """Lose the ledger, and restore it as the error says that the next command prints."""
    session.told.restored = True
    session.world.exchange_ledger("empty")
    restore(session)


def restore_backup(session: Session) -> None:
    """Put an older copy of the ledger in its place, as after a failover."""
    session.told.restored = True
    session.world.exchange_ledger("older")


def restore_backup_and_mend(session: Session) -> None:
    """Put an older copy of the ledger in its place, and write the ledger again."""
    restore_backup(session)
    restore(session)


def restore(session: Session) -> None:
    """Write the ledger again from work directory and markers."""
    session.told.restored = True
    session.attempt(lambda: session.pipeline().restore_ledger())


def twin(session: Session) -> None:
    """Load and publish by another pipeline that reaches the target by a symlink."""
    _as_other(session, "twin")


def other(session: Session) -> None:
    """Load and publish by another pipeline with a ledger and a work directory of its own."""
    _as_other(session, "other")


def _as_other(session: Session, name: str) -> None:
    session.name = name
    load(session)
    publish(session)


VERBS: dict[str, Callable[[Session], Any]] = {
    item.__name__: item
    for item in (
        load,
        replay,
        rebuild,
        rebuild_held,
        land,
        land_far,
        land_and_load,
        expire,
        publish,
        load_and_publish,
        replay_and_publish,
        rebuild_and_publish,
        publish_in_tasks,
        publish_held_in_tasks,
        approve,
        reject,
        reopen,
        sweep,
        lose_ledger,
        restore_backup,
        restore_backup_and_mend,
        restore,
        twin,
        other,
    )
}
IN_AIRFLOW = {"publish_in_tasks", "publish_held_in_tasks"}
"""Verbs whose owner is a run, of which nobody knows whether it is gone."""
