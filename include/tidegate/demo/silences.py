"""Tell, once each, which living parts of Airflow are silent, and when they are heard again.

Nothing is ended because of it: on a busy machine a heartbeat is late, and a start takes longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SILENT_SECONDS = 60.0
"""Airflow itself takes 30 seconds to notice that a part of it is silent."""


class Silences:
    """Since when which parts are silent, and what of it was told."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, silent: Iterable[str], now: float) -> Iterator[str]:
        """Yield what is to be told now.

        Args:
            silent: the parts that sent no heartbeat lately.
            now: seconds of a clock that never goes back.
        """
        self._since = {name: self._since.get(name, now) for name in silent}
        for name in sorted(self._told - self._since.keys()):
            yield f"Airflow: its {name} sends heartbeats again."
        self._told &= self._since.keys()
        for name, since in sorted(self._since.items()):
            if now - since > SILENT_SECONDS and name not in self._told:
                self._told.add(name)
                yield (
                    f"Airflow: its {name} has sent no heartbeat for more than "
                    f"{SILENT_SECONDS:.0f} s. Nothing is ended for that: the machine may be busy."
                )
