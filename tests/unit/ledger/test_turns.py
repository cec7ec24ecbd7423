"""Turns: one thread after the other, again and again for who has it, and never for ever."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidegate.ledger.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable


def in_another_thread(turns: Turns) -> bool:
    """Whether another thread gets the turn, which it keeps."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(turns.take()))
    thread.start()
    thread.join()
    return found[0]


def test_threads_have_the_turn_one_after_the_other() -> None:
    turns, inside, most = Turns(60), [0], []

    def work(_number: int) -> None:
        for _ in range(50):
            assert turns.take()
            inside[0] += 1
            most.append(inside[0])
            inside[0] -= 1
            turns.give_back()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))

    assert most == [1] * 200


def test_who_has_the_turn_takes_it_again_and_gives_it_back_as_often() -> None:
    turns = Turns(0.01)
    assert turns.take()
    assert turns.take()
    turns.give_back()

    other = in_another_thread(turns)
    turns.give_back()

    assert not other
    assert turns.take()


def test_turn_is_awaited_while_another_thread_waits_for_it() -> None:
    turns = Turns(60)
    assert turns.take()
    assert not turns.is_awaited

    thread = threading.Thread(target=lambda: (turns.take(), turns.give_back()))
    thread.start()
    while not turns.is_awaited:
        pass
    assert turns.take()
    # Giving it back once more lets nobody go on.
    assert not turns.is_awaited
    turns.give_back()
    assert turns.is_awaited
    turns.give_back()
    thread.join()

    assert turns.take()
    assert not turns.is_awaited


def of_child(ask: Callable[[], bool]) -> bool:
    """What a forked process answers."""
    child = os.fork()
    if child == 0:
        os._exit(0 if ask() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_forked_process_waits_for_no_thread_of_its_parent() -> None:
    turns = Turns(0.01)
    assert in_another_thread(turns)

    assert of_child(turns.take)
    assert not turns.take()


def test_forked_process_does_not_give_back_what_its_parent_took() -> None:
    turns = Turns(0.01)
    assert turns.take()

    def ask() -> bool:
        turns.give_back()
        return turns.take() and not in_another_thread(turns)

    assert of_child(ask)
