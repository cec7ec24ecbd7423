"""The background renewal of what a step holds."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import FenceLost, LedgerUnreachable
from tidegate.pipeline.state.renewing import Renewing

if TYPE_CHECKING:
    from collections.abc import Callable

LOST = FenceLost(pipeline="orders", subject="window 1", held=1, found=2)
SILENT = LedgerUnreachable(ledger="sqlite://", problem="no answer")
SHORT = timedelta(milliseconds=30)
PATIENCE = 20.0


class Ledger:
    """Answers each renewal as it is told, and then well."""

    def __init__(self, *answers: Exception | None, enough: int = 3) -> None:
        self.answers = list(answers)
        self.turns = 0
        self.enough = enough
        self.seen = threading.Event()

    def renew(self) -> None:
        self.turns += 1
        if self.turns >= self.enough:
            self.seen.set()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def wait(self) -> None:
        assert self.seen.wait(PATIENCE)


def renewers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "renew-claims"]


def test_step_is_renewed_until_it_ends_and_no_longer() -> None:
    ledger = Ledger()

    with Renewing([ledger.renew], SHORT):
        ledger.wait()

    assert renewers() == []


def test_everything_held_is_renewed_at_each_turn() -> None:
    first, second = Ledger(), Ledger()

    with Renewing([first.renew, second.renew], SHORT):
        second.wait()

    assert first.turns == second.turns


def test_step_that_holds_nothing_starts_no_thread() -> None:
    with Renewing([], SHORT) as nothing:
        assert renewers() == []
        nothing.check()


def test_ledger_that_does_not_answer_is_asked_again() -> None:
    ledger = Ledger(SILENT, SILENT)

    with Renewing([ledger.renew], SHORT) as held:
        ledger.wait()
        held.check()


def test_step_that_lost_what_it_held_is_told_and_renews_no_more() -> None:
    ledger, told = Ledger(LOST, enough=1), threading.Event()

    def step(held: Renewing) -> None:
        assert told.wait(PATIENCE)
        held.check()

    with pytest.raises(FenceLost), Renewing([ledger.renew], SHORT, told.set) as held:
        step(held)

    assert ledger.turns == 1


def test_step_is_told_of_an_error_that_nobody_foresaw() -> None:
    ledger, told = Ledger(ArithmeticError("unforeseen"), enough=1), threading.Event()

    def step(held: Renewing) -> None:
        assert told.wait(PATIENCE)
        held.check()

    with (
        pytest.raises(ArithmeticError),
        Renewing([ledger.renew], SHORT, told.set) as held,
    ):
        step(held)

    assert ledger.turns == 1


def _ends_well() -> None:
    """End as a step does that asked nobody."""


def _is_killed() -> None:
    msg = "the driver was killed"
    raise RuntimeError(msg)


def _is_interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("ending", "error"),
    [(_ends_well, FenceLost), (_is_killed, FenceLost), (_is_interrupted, KeyboardInterrupt)],
)
def test_step_that_lost_what_it_held_ends_with_that_unless_it_is_interrupted(
    ending: Callable[[], None], error: type[BaseException]
) -> None:
    told = threading.Event()

    def step() -> None:
        with Renewing([Ledger(LOST).renew], SHORT, told.set):
            assert told.wait(PATIENCE)
            ending()

    with pytest.raises(error):
        step()


def test_step_that_fails_keeps_its_error() -> None:
    with pytest.raises(RuntimeError, match="killed"), Renewing([Ledger().renew], SHORT):
        _is_killed()


def test_renewal_on_demand_tells_the_caller_at_once() -> None:
    with pytest.raises(FenceLost):
        Renewing([Ledger(LOST).renew], timedelta(hours=1)).renew()


def test_loss_of_what_was_done_with_is_none() -> None:
    ledger = Ledger(LOST, enough=1)
    told: list[str] = []

    with Renewing([ledger.renew], SHORT, lambda: told.append("lost")) as held:
        ledger.wait()
        held.end()
        held.check()

    assert renewers() == []


def test_what_was_done_with_is_not_renewed_again() -> None:
    ledger = Ledger(enough=1)

    with Renewing([ledger.renew], SHORT) as held:
        ledger.wait()
        held.end()
        threading.Event().wait(5 * SHORT.total_seconds())
        turns = ledger.turns

    assert turns <= 2
