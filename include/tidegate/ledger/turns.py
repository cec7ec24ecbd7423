"""Let the threads of a process take turns at something that only one of them can use well."""

from __future__ import annotations

import os
import threading


class Turns:
    """One thread after the other; who has the turn may take it again.

    Nobody waits for ever: a thread whose wait ends goes on without the turn, as a thread of another
    process would. In a forked process nobody has it.
    """

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._holder: int | None = None
        self._taken = 0
        self._waiting = 0

    @property
    def is_awaited(self) -> bool:
        """Whether another thread goes on as soon as the turn is given back."""
        return self._waiting > 0 and self._taken == 1

    def take(self) -> bool:
        """Wait for the turn; return False if the wait ended without it."""
        if self._process != os.getpid():
            self._begin()
        me = threading.get_ident()
        with self._changed:
            if self._holder != me:
                self._waiting += 1
                is_free = self._changed.wait_for(lambda: self._taken == 0, self._patience)
                self._waiting -= 1
                if not is_free:
                    return False
                self._holder = me
            self._taken += 1
            return True

    def give_back(self) -> None:
        """Give the turn back, once for each time that it was taken; any thread may do so.

        What the parent of this process took is not this process's to give back.
        """
        if self._process != os.getpid():
            self._begin()
            return
        with self._changed:
            self._taken -= 1
            if self._taken == 0:
                self._holder = None
                self._changed.notify()
