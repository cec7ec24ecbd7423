"""Errors of runs that get in each other's way."""

from tidegate.errors.base import TerminalError, TransientError


class WindowOpen(TransientError):
    """Another run holds the pipeline's open window (design §4)."""

    pipeline: str
    sequence: int
    run: str
    renewed: str
    """When the holder last renewed it."""
    outlook: str
    """What happens next to the window, and the command that finishes it if its holder is gone."""
    template = (
        "pipeline '{pipeline}': window {sequence} was taken by {run}, last renewed {renewed}. "
        "{outlook}"
    )


class LedgerMoved(TransientError):
    """The ledger has changed since a decision was based on it (design §4)."""

    pipeline: str
    expected: str
    found: str
    template = (
        "pipeline '{pipeline}': expected {expected} in the ledger, found {found}: another run came "
        "between. Nothing was taken; the next run tries again."
    )


class NumberPassed(TransientError):
    """A newer record was written after this process had reserved its number (design §4)."""

    pipeline: str
    subject: str
    reserved: int
    found: int
    template = (
        "pipeline '{pipeline}': {subject}: expected nothing after number {reserved}, found "
        "{found}: another run came between. Nothing was recorded; the next run tries again."
    )


class FenceLost(TerminalError):
    """A newer attempt or claim took over; this one changes nothing any more (design §4)."""

    pipeline: str
    subject: str
    held: int
    found: int
    template = (
        "pipeline '{pipeline}': {subject}: this process holds fence {held}, the ledger has "
        "{found}: "
        "a successor took over. Let it finish what this process has not done."
    )


class ClaimHeld(TransientError):
    """Another run has the right to a partition (AF-3.32)."""

    pipeline: str
    partition: str
    owner: str
    renewed: str
    """When the holder last renewed it."""
    outlook: str
    """What happens next to the claim, and the command that continues if its holder is gone."""
    template = (
        "pipeline '{pipeline}': {partition} is claimed by {owner}, last renewed {renewed}. "
        "{outlook}"
    )


class PartitionBusy(TransientError):
    """Another process is moving or deleting these files right now (design §4)."""

    partition: str
    holder: str
    template = (
        "{partition}: its files are being moved or deleted by {holder}. Wait for that process; the "
        "next run tries again."
    )
