"""Turns: one thread after the other, again and again for who has it, and never for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from tidegate.ledger.turns import Turns


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
    turns, other = Turns(0.01), []
    assert turns.take()
    assert turns.take()
    turns.give_back()

    thread = threading.Thread(target=lambda: other.append(turns.take()))
    thread.start()
    thread.join()
    turns.give_back()

    assert other == [False]
    assert turns.take()


def test_turn_is_awaited_while_another_thread_waits_for_it() -> None:
    turns = Turns(60)
    assert turns.take()
    assert not turns.is_awaited

    thread = threading.Thread(target=lambda: (turns.take(), turns.give_back()))
    thread.start()
    while not turns.is_awaited:
        pass
    turns.give_back()
    thread.join()

    assert turns.take()
    assert not turns.is_awaited
