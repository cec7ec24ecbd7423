"""Read the upstream counts of a pipeline, once for all partitions that are looked at together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidegate.commit.count_files import read_count_file
from tidegate.commit.count_keys import counts_by_partition
from tidegate.config import resolve_secret
from tidegate.errors import CountsUnreadable, SecretMissing
from tidegate.importing import import_at_rest
from tidegate.ledger.foreign import ask
from tidegate.model.upstream import UpstreamCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.config.completeness import CountsConfig
    from tidegate.storage import Storage

FRESH = timedelta(seconds=30)
"""Two hundred waiting partitions ask one after the other; they share one answer."""


@dataclass
class UpstreamReader:
    """Reads the counts of one pipeline.

    Runs on: any process that evaluates partitions, in several threads. Called: for every look.
    Failure: counts that cannot be read make partitions wait, and the next look tries again.
    """

    config: PipelineConfig
    storage: Storage
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read: tuple[datetime, UpstreamCounts] | None = None

    def at(self, now: datetime) -> UpstreamCounts | None:
        """Return the counts as they are now, or were a moment ago; None if none are configured."""
        said = self.config.commit.counts
        if said is None or not self.config.commit.requires("counts"):
            return None
        with self._lock:
            if self._read is None or not timedelta(0) <= now - self._read[0] < FRESH:
                self._read = (now, self._looked(said))
            return self._read[1]

    def read(self, said: CountsConfig) -> UpstreamCounts:
        """Read the counts.

        Raises:
            CountsUnreadable: they cannot be read (Transient).
        """
        place = place_of(said)
        try:
            found = self._columns(said)
        except SecretMissing as missing:
            raise CountsUnreadable(place=place, problem=str(missing)) from missing
        return UpstreamCounts(place, counts_by_partition(self.config, found, place))

    def _looked(self, said: CountsConfig) -> UpstreamCounts:
        try:
            return self.read(said)
        except CountsUnreadable as unreadable:
            problem = f"{unreadable.place} cannot be read: {unreadable.problem}"
            return UpstreamCounts(place_of(said), {}, problem)

    def _columns(self, said: CountsConfig) -> Mapping[str, Sequence[Any]]:
        if said.query is not None:
            address = resolve_secret(said.connection or "", "commit.counts.connection")
            return ask(address, said.query)
        if said.file is not None:
            path = resolve_secret(said.file, "commit.counts.file")
            return read_count_file(self.storage, path)
        # Only these load what reads tables: a look that waits for a query stays small.
        tables = import_at_rest("tidegate.source.upstream")
        found: Mapping[str, Sequence[Any]]
        if said.iceberg is not None:
            found = tables.read_iceberg(said.iceberg)
        else:
            found = tables.read_folder(resolve_secret(said.table or "", "commit.counts.table"))
        return found


def place_of(said: CountsConfig) -> str:
    """Return where counts are read, for people."""
    if said.query is not None:
        return "the query of `commit.counts`"
    return said.file or said.table or ""
