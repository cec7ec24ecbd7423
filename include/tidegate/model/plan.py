"""What one window reads: pieces of files, packed into sub-splits and splits, under one plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

from tidegate.model.assembly import Assembly
from tidegate.model.exchange import Exchange
from tidegate.model.file_slice import FileSlice
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.partition import Partition
from tidegate.model.plan_record import PlanRecord
from tidegate.model.time_bounds import TimeBounds
from tidegate.model.wire import SPARSE, Value, digest, text_digest

WHOLE_FILE = (0, 1 << 62)
"""The range of bytes of a whole file, in pieces of files that do not tell their rows."""


class WindowKind(Enum):
    """What a window does to checkpoint, watermark and content."""

    LOAD = "load"
    """Continues from the checkpoint, and moves checkpoint and watermark."""
    HISTORY = "history"
    """Covers instants before the first window; moves neither."""
    REBUILD = "rebuild"
    """Reads named partitions whole as of the checkpoint.

    Earlier contributions to them no longer count. It has a start if files that the checkpoint knows
    are read as they stand by now: the checkpoint then moves from there to its end, and no change
    but theirs lies between.
    """
    RELOAD = "reload"
    """Reads the whole source as of its end, and replaces everything that came before.

    Moves checkpoint and watermark like a load.
    """
    RESTART = "restart"
    """Begins again at `source.start`, and replaces everything that came before.

    Moves checkpoint and watermark like a load.
    """

    REPLACE = "replace"
    """Continues from the checkpoint, and reads whole each partition that changed.

    Earlier contributions to them no longer count. Moves checkpoint and watermark like a load.
    """

    @property
    def moves_checkpoint(self) -> bool:
        """Whether such windows move the checkpoint on, and the watermark with it."""
        return self not in {WindowKind.HISTORY, WindowKind.REBUILD}

    @property
    def replaces(self) -> bool:
        """Whether contributions of earlier windows no longer count where this one contributes."""
        return self not in {WindowKind.LOAD, WindowKind.HISTORY}

    @property
    def replaces_everything(self) -> bool:
        """Whether it contributes to every partition, even if it has no row for it."""
        return self in {WindowKind.RELOAD, WindowKind.RESTART}

    @property
    def reads_whole(self) -> bool:
        """Whether it reads the source as of its end, instead of changes."""
        return self in {WindowKind.REBUILD, WindowKind.RELOAD}


@dataclass(frozen=True)
class Pin(Value):
    """The source as a run saw it: everything is later read as of this pin."""

    identity: str
    """The table uuid, or the table root of files.

    It changes if the table is dropped and created again.
    """
    head: Instant | None
    """Newest instant; None for a source without any."""
    schema: tuple[tuple[str, str], ...]
    """(column name, Arrow type text) of the projected columns in read order."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The format's own: metadata location, schema id, branch."""
    held_back: str | None = field(default=None, metadata={SPARSE: True})
    """What keeps newer instants of the source from being the head, in a sentence; None: nothing."""


@dataclass(frozen=True)
class Window(Value):
    """The instant range of one run, fixed for ever."""

    sequence: int
    range: InstantRange
    kind: WindowKind
    interval: DataInterval | None
    """Data interval of the run that took it; None for a run without one."""
    run: str
    """The run that took it."""
    partitions: tuple[Partition, ...] = ()
    """The only partitions that a rebuild writes; empty for the other kinds."""

    @property
    def moves_checkpoint(self) -> bool:
        """Whether announcing it moves the checkpoint to its end."""
        is_joined = self.kind is WindowKind.REBUILD and self.range.start_exclusive is not None
        return self.kind.moves_checkpoint or is_joined

    @property
    def is_empty(self) -> bool:
        """Whether it begins where it ends: it reads nothing, and only moves the checkpoint."""
        start = self.range.start_exclusive
        return start is not None and start.id == self.range.end_inclusive.id


@dataclass(frozen=True)
class Piece(Value):
    """A range of physical rows of the base file of one file slice."""

    slice: FileSlice
    rows: int
    """Physical rows in this range."""
    size_bytes: int
    """The share of the file's bytes, apportioned by rows inside a row group."""
    row_start: int = 0
    """Zero-based physical position of the first row in the file."""
    byte_range: tuple[int, int] | None = field(default=None, metadata={SPARSE: True})
    """The row groups that begin at or after the first byte and before the second.

    Only the footer has `row_start` and `rows`: until the file is open, they are 0 and a guess.
    """
    event_times: TimeBounds | None = field(default=None, metadata={SPARSE: True})
    """None: not asked for, or not known."""

    @property
    def path(self) -> str:
        """Of the base file, as the source spells it."""
        return self.slice.path

    @property
    def row_end(self) -> int:
        """Physical position one past the last row."""
        return self.row_start + self.rows


@dataclass(frozen=True)
class SubSplit(Value):
    """The part of a split that is staged and resumed on its own; at most `max_rows` rows."""

    pieces: tuple[Piece, ...]
    exchange: Exchange | None = field(default=None, metadata={SPARSE: True})
    """Its part in an exchange of rows between sub-splits; None: it takes part in none."""
    assembly: Assembly | None = field(default=None, metadata={SPARSE: True})
    """What it assembles instead of reading pieces; None: nothing."""

    @cached_property
    def id(self) -> str:
        """Hash of the content (12 hexadecimal digits)."""
        return text_digest(self.to_text(), 12)

    @property
    def rows(self) -> int:
        """Physical rows."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def stage(self) -> int:
        """How many stages of the plan have to be through before it can be read."""
        if self.assembly is not None:
            return self.assembly.stage
        return self.exchange.stage if self.exchange is not None else 0

    @property
    def is_check(self) -> bool:
        """Whether its pieces are read only for a check, not for their rows."""
        return any(piece.slice.check is not None for piece in self.pieces)

    @property
    def may_hand_on(self) -> bool:
        """Whether it stages rows that others may assemble instead."""
        spreads = self.exchange is not None and self.exchange.spreads
        return self.assembly is None and not spreads and not self.is_check


@dataclass(frozen=True)
class Split(Value):
    """A unit of parallel reading: one Spark task."""

    FORMAT: ClassVar[int] = 3

    sub_splits: tuple[SubSplit, ...]
    weight: int
    """What packing balanced, in bytes (ICE-5.4)."""
    term: str = "bytes"
    """The largest part of the weight: `bytes`, `rows` or `opening`."""
    event_times: TimeBounds | None = field(default=None, metadata={SPARSE: True})
    """Bounds over all pieces; None: not asked for, or not known of every one."""

    @property
    def id(self) -> str:
        """Hash of the content (12 hexadecimal digits)."""
        return digest([part.id for part in self.sub_splits], 12)

    @property
    def stage(self) -> int:
        """How many stages of the plan have to be through before it can be read."""
        return max((part.stage for part in self.sub_splits), default=0)


@dataclass(frozen=True)
class PlanTotals(Value):
    """The totals of one plan."""

    instants: int
    files: int
    bytes: int
    rows: int
    splits: int
    sub_splits: int


@dataclass(frozen=True)
class ScanPlan(Value):
    """One pinned window with everything that a task needs, as in `plan.json`."""

    digest: str
    """16 hexadecimal digits over window, pinned inputs, configuration and fingerprint.

    Known before planning.
    """
    pipeline: str
    window: Window
    pin: Pin
    config: Mapping[str, Any]
    """The resolved pipeline configuration, secrets still as `${env:NAME}`."""
    fingerprint: Mapping[str, str]
    """Libraries whose version decides the bytes written."""
    planned_at: datetime
    """The time of the run; event times beyond it plus the tolerance do not count."""
    totals: PlanTotals
    notes: tuple[str, ...] = ()
    """What planning left out or found odd, for people."""
    record: PlanRecord | None = None
    """Why the plan is as it is; None in plans of versions without this record."""
    replaced: tuple[Partition, ...] = field(default=(), metadata={SPARSE: True})
    """What a window of kind `replace` read whole, by those keys of the target that the source's own
    partitions have."""
    erased: int | None = field(default=None, metadata={SPARSE: True})
    """The number of the newest erasure, whose rows and those of all before are left out; None:
    nothing was erased."""

    @property
    def read_whole(self) -> tuple[Partition, ...]:
        """The partitions, or groups of them, that have no rows but those of this window."""
        return self.window.partitions or self.replaced


def plan_digest(
    pipeline: str,
    window: Window,
    pin: Pin,
    config: Mapping[str, Any],
    fingerprint: Mapping[str, str],
    *,
    again: int = 0,
) -> str:
    """Return the digest of everything that decides the bytes of a plan.

    The source's head beyond the window is not included. The format of splits is, so that a plan
    that a version cannot read is planned again. `again` distinguishes a plan from an earlier one
    with the same inputs whose files are gone.
    """
    inputs = {
        "splits": Split.FORMAT,
        "pipeline": pipeline,
        "sequence": window.sequence,
        "range": window.range.to_json(),
        "partitions": [partition.path for partition in window.partitions],
        "identity": pin.identity,
        "schema": [list(column) for column in pin.schema],
        "config": config,
        "fingerprint": fingerprint,
    }
    return digest({**inputs, "again": again} if again else inputs)
