"""Pin the source as a window reads it, with a remedy if the source no longer has that state.

A planned window is read by its plan, which no longer needs the snapshot. Takes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.config import PipelineConfig
from tidegate.errors import PlannedOtherwise, StateFileLost, StateGone, TerminalError
from tidegate.errors.commands import command
from tidegate.pipeline.load.rebuilding import rebuild_of
from tidegate.pipeline.load.scanning import pinned_at
from tidegate.pipeline.state.abandoned import has_begun
from tidegate.pipeline.state.plan_files import announces_in, has_plan, read_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.plan import Pin, ScanPlan, Window
    from tidegate.pipeline.load.changed_files import ChangedRows
    from tidegate.pipeline.load.plan_names import PlanNames
    from tidegate.pipeline.load.scanning import Scanner
    from tidegate.source.protocol import Source
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Pins:
    """Finds out from source, ledger and work directory whether a window can be read."""

    ledger: Ledger
    storage: Storage
    source: Source
    names: PlanNames
    scanner: Scanner
    changed: ChangedRows

    def of_rebuild(self, draft: Window, pin: Pin) -> Pin:
        """Pin the source for a rebuild that is not taken yet.

        Raises:
            StateGone: the source no longer keeps its state at the checkpoint.
            FileCameBack: a file is back that was gone at the checkpoint.
            RebuildTooNarrow: files changed, and it leaves out partitions of their rows.
        """
        try:
            pinned = self.source.timeline.whole_at(pin, draft.range.end_inclusive)
        except StateGone as gone:
            again = rebuild_of(self.ledger.name, draft.partitions)
            remedy = (
                "Nothing was taken. Bring the checkpoint to a snapshot that is kept with "
                f"`{command('load', self.ledger.name)}`, then go on with {again}."
            )
            reader = f", which a rebuild of pipeline '{self.ledger.name}' reads,"
            raise gone.read_by(reader, remedy) from gone
        self.changed.check(draft, pinned)
        return pinned

    def of(self, taken: WindowState, pin: Pin) -> Pin:
        """Pin the source for a window of the ledger.

        Raises:
            StateGone: the source no longer keeps what it reads, and the window has no plan, or one
                made with another configuration.
        """
        with self.naming(taken):
            try:
                return pinned_at(self.source, pin, taken.window)
            except StateGone:
                stored = self._stored(taken.window.sequence)
                if stored is None or stored.digest != self.digest(taken, stored.pin):
                    raise
                return stored.pin

    def digest(self, taken: WindowState, pinned: Pin) -> str:
        """Return the digest of the plan of a window as it is read now."""
        return self.names.choose(
            taken, lambda again: self.scanner.digest(taken.window, pinned, again=again)
        )

    @contextmanager
    def naming(self, taken: WindowState) -> Iterator[None]:
        """Add the window and a remedy to the error of a window that is refused.

        Raises:
            StateGone: the source no longer keeps what it reads.
            PlannedOtherwise: it is open, and was planned with another configuration.
            TerminalError: it is refused for another reason, which the error names.
        """
        try:
            yield
        except StateGone as gone:
            reader = (
                f", which window {taken.window.sequence} of pipeline '{self.ledger.name}' reads,"
            )
            raise gone.read_by(reader, self._remedy(taken)) from gone
        except StateFileLost as lost:
            if taken.sealed:
                remedy = self._remedy_of_lost(taken.window.sequence)
                raise StateFileLost(path=lost.path, remedy=remedy) from lost
            raise
        except TerminalError as refused:
            sequence = taken.window.sequence
            stored = self._stored(sequence)
            if taken.sealed or stored is None or not self.changed_keys(stored.config):
                raise
            raise PlannedOtherwise(
                pipeline=self.ledger.name, window=sequence, problem=str(refused)
            ) from refused

    def changed_keys(self, planned: Mapping[str, Any]) -> list[str]:
        """Return the sections of the pipeline file that decide a plan and differ from a plan's."""
        try:
            before = PipelineConfig.from_resolved(planned).plan_inputs()
        except ValueError:
            before = {}
        now = self.scanner.config.plan_inputs()
        return [key for key, item in now.items() if before.get(key) != item]

    def is_lost(self, taken: WindowState, pin: Pin) -> bool:
        """Return whether the next load drops a window.

        It is being abandoned; or it has no plan, or has lost it, and can no longer be planned.
        """
        sequence = taken.window.sequence
        if has_begun(self.ledger, self.storage, sequence):
            return True
        if self.ledger.plans.uri(sequence) is not None and not self.lost_plan(sequence):
            return False
        try:
            self.of(taken, pin)
        except (StateGone, StateFileLost):
            return True
        return False

    def lost_plan(self, sequence: int) -> str | None:
        """Return where the plan of a window was, if it is gone.

        None if it never had one, or if its announce was written, which restorations rely on.
        """
        uri = self.ledger.plans.uri(sequence)
        if uri is None or has_plan(self.storage, uri) or announces_in(self.storage, uri):
            return None
        return uri

    def _stored(self, sequence: int) -> ScanPlan | None:
        uri = self.ledger.plans.uri(sequence)
        if uri is None or not has_plan(self.storage, uri):
            return None
        return read_plan(self.storage, uri)

    def _remedy_of_lost(self, sequence: int) -> str:
        for later in self.ledger.windows.all():
            number, is_whole = later.window.sequence, later.window.kind.replaces_everything
            if number > sequence and later.sealed and is_whole:
                return (
                    f"leave window {sequence} as it is: window {number} read everything since, and "
                    "stands in its place"
                )
        return (
            "start a new pipeline with a new name and a new target: nothing else tells what "
            f"window {sequence} read"
        )

    def _remedy(self, taken: WindowState) -> str:
        name, sequence = self.ledger.name, taken.window.sequence
        if taken.sealed:
            brought = self.ledger.contributions.of_window(sequence)
            if not brought:
                return "It brought no rows, so there is nothing to read again."
            again = rebuild_of(name, [item.partition for item in brought])
            return f"What it brought stays as it is. Read its partitions again with {again}."
        stored = self._stored(sequence)
        if stored is None:
            anew = f"`{command('load', name)}` takes from the checkpoint what is there now"
            uri = self.ledger.plans.uri(sequence)
            if uri is None or not (written := announces_in(self.storage, uri)):
                return f"No plan of it is there: {anew}."
            return (
                f"Its plan in {uri} is lost, and the announce that was written of it never "
                "reached the ledger. Put `plan.json` and `splits.jsonl` back from a copy, or move "
                f"{' and '.join(f'`{item}`' for item in written)} away from there: {anew} then."
            )
        up = (
            f"give it up with `{command('abandon', name, sequence)}`: `{command('load', name)}` "
            "then goes on at the checkpoint, or says what to do if the source no longer has that."
        )
        if not self.changed_keys(stored.config):
            return (
                "It was planned before rows were erased, or with other versions of the libraries, "
                f"and would have to be planned anew: {up}"
            )
        shown = command("plan", name, "--window", sequence, "--json")
        return (
            "It was planned with another configuration and is read as it was planned. Set the "
            f"pipeline file back to what `{shown}` shows under `config`, and finish the window "
            f"with `{command('load', name)}`; where that is not possible, {up}"
        )
