"""Errors of taking, planning and announcing a window."""

from tidegate.errors.base import TerminalError


class ChangesReadWhole(TerminalError):
    """A window of changes would be planned with a configuration that reads the whole source."""

    pipeline: str
    window: int
    template = (
        "pipeline '{pipeline}': window {window} reads changes, but `source.read.mode: snapshot` "
        "reads the whole source: rows of other windows would count twice. Nothing was planned. "
        "`tidegate load {pipeline}` reads the whole source in place of all windows before; to "
        "read this one again, set `source.read.mode` back."
    )


class ModeChanged(TerminalError):
    """A window was taken to replace partitions and would add rows, or the other way round."""

    pipeline: str
    window: int
    kind: str
    template = (
        "pipeline '{pipeline}': window {window} was taken as a window of kind '{kind}', and "
        "`source.read.mode` now is one that reads it as another kind: rows would count twice, or "
        "stay for ever. Nothing was planned. Set `source.read.mode` back to read it as it was "
        "taken."
    )


class KindsMixed(TerminalError):
    """A window would bring rows with their kinds beside rows that have none, or the other way."""

    pipeline: str
    before: str
    now: str
    template = (
        "pipeline '{pipeline}': `source.read` brings rows {now} now, and what earlier windows "
        "brought is {before}: readers could not tell which rows still count. Nothing was taken. "
        "Set `source.read` back as it was, or publish everything anew as it is read now with "
        "`tidegate reset {pipeline}`."
    )


class PartitionsUnlikeSource(TerminalError):
    """Partitions of the source are read whole, and the target has no keys to tell them apart."""

    pipeline: str
    column: str
    template = (
        "pipeline '{pipeline}': this `source.read.mode` replaces whole partitions of the source, "
        "and `target.partition_by` has no key that is the source's partition column "
        "'{column}' as it is. Nothing was planned. Partition a new target by it, or read with "
        "`source.read.mode: snapshot`, which replaces everything."
    )


class PlannedOtherwise(TerminalError):
    """An open window that has a plan is refused with the current configuration."""

    pipeline: str
    window: int
    problem: str
    """Why it is refused, as a message of its own."""
    template = (
        "pipeline '{pipeline}': window {window} is open, and was planned with another "
        "configuration; with the current one it is refused: {problem} Set the pipeline file back "
        "to what `tidegate plan {pipeline} --window {window} --json` shows under `config`, and "
        "finish the window with `tidegate load {pipeline}`: the next window is planned with the "
        "file as it is then. Otherwise give it up with `tidegate abandon {pipeline} {window}`: the "
        "next load reads from where it began, with the file as it is now."
    )


class RebuildOfOverwritten(TerminalError):
    """A rebuild would publish more than the window that overwrote a partition last (PC-F30)."""

    pipeline: str
    partitions: str
    window: str
    template = (
        "pipeline '{pipeline}': {partitions}: with `target.write: overwrite` a partition has the "
        "rows of the last window that brought any, and a rebuild would read those of all windows. "
        "Nothing was taken. Read the last one again with `tidegate replay {pipeline} {window}`."
    )


class AbandonRefused(TerminalError):
    """A window that is to be given up was announced."""

    pipeline: str
    window: int
    found: str
    remedy: str
    template = (
        "pipeline '{pipeline}': window {window}: expected it open, to give it up, found {found}. "
        "Nothing was given up; {remedy}."
    )


class WindowNotFound(TerminalError):
    """A command names a window that was never taken."""

    pipeline: str
    sequence: int
    template = (
        "pipeline '{pipeline}': no window {sequence}. List them with `tidegate instants "
        "{pipeline}`."
    )


class WindowOverlap(TerminalError):
    """A history interval overlaps an earlier history window in part (design §4, case 3)."""

    pipeline: str
    interval: str
    window: str
    template = (
        "pipeline '{pipeline}': the interval {interval} overlaps {window} in part. Backfill the "
        "same intervals as before."
    )


class PlanMissing(TerminalError):
    """A step asks for a plan that is not in the work directory."""

    path: str
    window: int
    template = (
        "{path}: no plan there. Plan the window again with `tidegate replay PIPELINE {window}`."
    )


class WindowIncomplete(TerminalError):
    """Announce found sub-splits without a message, which trying it again would not read."""

    pipeline: str
    sequence: int
    missing: int
    expected: int
    command: str
    """What continues the window."""
    template = (
        "pipeline '{pipeline}': window {sequence}: {missing} of {expected} sub-splits have no "
        "message, because their task did not run to its end, or was marked as done. Nothing was "
        "announced. Clear `merge_read` in Airflow, or run `{command}`: only those are read."
    )


class RowsUnaccounted(TerminalError):
    """The contributions of a window do not have the rows that its tasks kept."""

    pipeline: str
    sequence: int
    kept: int
    contributed: int
    plan: str
    template = (
        "pipeline '{pipeline}': window {sequence}: expected {kept} rows in its contributions, as "
        "many as were kept, found {contributed}. Nothing was announced. Remove {plan}, which is "
        "damaged, and load again: the window is read again."
    )
