"""What was loaded is kept within its bound, and loaded once."""

from __future__ import annotations

import threading

import pytest

from tidegate.source.iceberg.deletes.cache import DeleteCache


class Loads:
    def __init__(self) -> None:
        self.cache = DeleteCache()
        self.loaded: list[str] = []

    def get(self, key: str, size_bytes: int, most_bytes: int = 10) -> str:
        def load() -> tuple[str, int]:
            self.loaded.append(key)
            return key, size_bytes

        return self.cache.get(key, load, most_bytes)


def test_get_again_loads_once() -> None:
    loads = Loads()

    assert [loads.get("a", 4), loads.get("a", 4)] == ["a", "a"]
    assert loads.loaded == ["a"]


def test_get_over_the_bound_forgets_what_was_used_longest_ago() -> None:
    loads = Loads()
    for key in ("a", "b", "a", "c"):
        loads.get(key, 4)

    loads.get("a", 4)
    loads.get("b", 4)

    assert loads.loaded == ["a", "b", "c", "b"]


def test_get_of_more_than_the_bound_is_not_kept_and_pushes_nothing_out() -> None:
    loads = Loads()
    loads.get("a", 4)

    loads.get("large", 11)
    loads.get("large", 11)
    loads.get("a", 4)

    assert loads.loaded == ["a", "large", "large"]


def test_get_that_fails_is_tried_again() -> None:
    cache = DeleteCache()

    def fail() -> tuple[str, int]:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - which one does not matter
        cache.get("a", fail, 10)
    assert cache.get("a", lambda: ("a", 1), 10) == "a"


def test_get_from_many_threads_loads_once() -> None:
    cache = DeleteCache()
    together = threading.Barrier(4)
    loaded: list[int] = []

    def load() -> tuple[str, int]:
        loaded.append(1)
        return "a", 1

    def get() -> None:
        together.wait()
        cache.get("a", load, 10)

    threads = [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert loaded == [1]
