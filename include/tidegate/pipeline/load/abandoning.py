"""Give up an open window that cannot be finished: the next one begins where it began."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import AbandonRefused, FenceLost
from tidegate.errors.commands import command
from tidegate.model.abandoned import AbandonedPlan
from tidegate.model.wire import pretty
from tidegate.pipeline.state.abandoned import abandonment_of, has_begun
from tidegate.pipeline.state.records import Records
from tidegate.stage import layout

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Holder
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.plan import Window
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Dropped:
    """A window that was given up."""

    window: Window
    staged: int
    """How many sub-splits of its newest plan had a message."""


@dataclass(frozen=True)
class Abandoner:
    """Drops open windows of one pipeline.

    *Runs on:* the process of a command, or of a load that finds an abandonment unfinished.
    *Called:* once per window; again after a crash. *Failure:* the window is taken over first, so
    that its former holder can no longer announce it. Until a file says so beside its newest plan,
    it stays open and can be finished; from then on, whoever takes it next drops it. What was staged
    stays for `gc`. Its number is never given again.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage

    def abandon(
        self, sequence: int, holder: Holder, by: str, comment: str, now: datetime
    ) -> Dropped:
        """Drop an open window, which brought nothing.

        Raises:
            WindowNotFound: it was never taken, or was dropped.
            AbandonRefused: it was announced.
            WindowOpen: a run works on it and is not known to be dead (Transient).
            LedgerMoved: it was announced or dropped at the same time (Transient).
            FenceLost: another run took it over meanwhile, and keeps it.
        """
        if self.ledger.windows.get(sequence).sealed:
            again = command("replay", self.ledger.name, sequence)
            raise self._refused(
                sequence,
                "it announced: its rows are taken in",
                f"read it again with `{again}`, or its partitions with `tidegate rebuild`",
            )
        taken = self.ledger.windows.resume(sequence, holder, None, still_open=True)
        self._check_unannounced(taken)
        uri = self.ledger.plans.uri(sequence)
        if uri is not None:
            self._write(taken, uri, by, comment, now)
        if not self.ledger.windows.give_back(sequence, taken.attempt, lost_plan=uri):
            found = self.ledger.windows.find(sequence)
            raise FenceLost(
                pipeline=self.ledger.name,
                subject=f"window {sequence}",
                held=taken.attempt,
                found=found.attempt if found else 0,
            )
        messages = [] if uri is None else self.storage.list_files(layout.messages_root(uri))
        return Dropped(taken.window, len(messages))

    def has_begun(self, sequence: int) -> bool:
        """Return whether an open window is being abandoned."""
        return has_begun(self.ledger, self.storage, sequence)

    def finish(self, sequence: int, holder: Holder) -> None:
        """Drop a window whose abandonment has begun; raises as `abandon`."""
        uri = self.ledger.plans.uri(sequence)
        record = abandonment_of(self.storage, uri) if uri is not None else None
        if record is not None:
            self.abandon(sequence, holder, record.by, record.comment, record.abandoned_at)

    def _check_unannounced(self, taken: WindowState) -> None:
        """Refuse a window whose announce is in a file, and let it go.

        The ledger that recorded it may be lost, or its process died just before: what the window
        brought may be published. A process that writes such a file from now on has lost the window.
        """
        sequence = taken.window.sequence
        written = Records(self.roots, self.storage).newest_announced(sequence)
        if written is not None:
            self.ledger.windows.give_back(sequence, taken.attempt)
            finished = command("load", self.ledger.name)
            raise self._refused(
                sequence,
                f"its announce by plan {written.plan_digest} in a file",
                f"finish it with `{finished}`, which need not read the source for that",
            )

    def _write(self, taken: WindowState, newest: str, by: str, comment: str, now: datetime) -> None:
        """Write the record beside each plan of a window; last beside the newest one."""
        sequence = taken.window.sequence
        digest = posixpath.basename(newest)
        number = self.ledger.windows.reserve(sequence, taken.attempt, digest)
        root = layout.window_root(self.roots.work, sequence)
        older = [plan for plan in self.storage.list_names(root) if plan != digest]
        for plan in (*older, digest):
            record = AbandonedPlan(self.ledger.name, taken.window, plan, number, by, comment, now)
            text = pretty(record.to_json())
            uri = f"{root}/{plan}"
            if not self.storage.write_once(layout.abandoned_file(uri), text):
                self.storage.write_once(layout.abandoned_file(uri, number), text)

    def _refused(self, sequence: int, found: str, remedy: str) -> AbandonRefused:
        return AbandonRefused(
            pipeline=self.ledger.name, window=sequence, found=found, remedy=remedy
        )
