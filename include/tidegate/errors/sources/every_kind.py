"""Errors that a source of any kind can raise."""

from __future__ import annotations

from typing import Any, Self

from tidegate.errors.base import TerminalError, TransientError


class SourceNotFound(TerminalError):
    """There is no table at the location that the pipeline file names."""

    source: str
    problem: str
    template = "{source}: no table found: {problem}. Correct `source` in the pipeline file."


class SourceVanished(TransientError):
    """There is no table any more where windows were loaded from before."""

    source: str
    problem: str
    window: int
    at: str
    template = (
        "{source}: no table found: {problem}. It was there when window {window} was loaded at "
        "{at}: this may be another or an empty catalog, or a volume that is not there. Mount it, "
        "or set the address in `source` of the pipeline file to where the table is; the next load "
        "then goes on."
    )


class TableNotFound(TerminalError):
    """There is no table of the name for which a pipeline file is to be written."""

    source: str
    problem: str
    template = (
        "{source}: no table found: {problem}. Correct the name after `--from`: it is "
        "`catalog.namespace.table`, or the path of a table's directory or metadata file, or the "
        "root directory of Parquet files. A catalog must be known to PyIceberg, in "
        "`.pyiceberg.yaml`."
    )


class SourceUnreachable(TransientError):
    """A catalog or store did not answer."""

    source: str
    problem: str
    template = (
        "{source}: cannot be reached: {problem}. Check the service and the connection; the next "
        "run tries again."
    )


class SourceRefuses(TerminalError):
    """The catalog of the source answers that it will not do what it is asked."""

    source: str
    problem: str
    template = (
        "{source}: its catalog refuses: {problem}. Correct the credentials in `source.catalog`, or "
        "let the catalog's owner grant what is refused."
    )


class SourceFileGone(TerminalError):
    """A file that the source's metadata or a plan names is not there."""

    path: str
    template = (
        "{path}: expected, as the source's metadata or the plan of a window names it; not found. "
        "Restore it if the source still names it. If the source deleted it, let it keep files for "
        "longer than a window takes. Read the partitions of a window that was announced before "
        "with `tidegate rebuild PIPELINE PARTITION`. If a window that is open needs it, give the "
        "window up with `tidegate abandon PIPELINE`: `tidegate load PIPELINE` then reads what the "
        "source has now."
    )


class SourceFileDamaged(TerminalError):
    """A file of the source cannot be read in its format."""

    path: str
    problem: str
    template = (
        "{path}: cannot be read: {problem}. Restore the file in the source, then run the window "
        "again. If it cannot be restored, replace it or take it out of the source, give up the "
        "window if it is open with `tidegate abandon PIPELINE`, and run `tidegate load PIPELINE`."
    )


class SourceRowInvalid(SourceFileDamaged):
    """A row of a text file does not fit the columns (PC-R12)."""

    template = (
        "{path}: {problem}. Nothing of the file is published. Correct it in the source, or take it "
        "out of the source, give up the window if it is open with `tidegate abandon PIPELINE`, and "
        "run `tidegate load PIPELINE`."
    )

    @staticmethod
    def said(row: int | None, column: str | None, problem: str) -> str:
        """Return where the row stands, and what is wrong with it."""
        places = [f"row {row}"] if row is not None else []
        places += [f"column '{column}'"] if column is not None else []
        return f"{', '.join(places)}: {problem}" if places else problem


class ColumnUnreadable(TerminalError):
    """A column has a value that no Arrow array of its type can hold (ICE-6.18)."""

    path: str
    column: str
    problem: str
    template = (
        "{path}: column '{column}' cannot be read: {problem}. Leave the column out of "
        "`source.read.columns`, or rewrite the file in Parquet."
    )


class SchemaIncompatible(TerminalError):
    """A column cannot be read as the type that the pipeline writes."""

    path: str
    column: str
    expected: str
    found: str
    template = (
        "{path}: column '{column}': expected {expected}, found {found}. "
        "Change the column in the source, name another one in the pipeline file, or start a new "
        "pipeline for the new type."
    )


class ColumnMissing(TerminalError):
    """A column that the pipeline names does not exist in the source."""

    source: str
    column: str
    known: str
    template = (
        "{source}: no column '{column}'; found: {known}. Correct the name in the pipeline file."
    )


class InstantNotFound(TerminalError):
    """A bound names an instant that the source does not have."""

    source: str
    instant: str
    template = (
        "{source}: found no instant '{instant}'; expected the id of one, or a time such as "
        "2026-01-31T12:00, in the pipeline's zone unless it names another. List "
        "them with `tidegate instants PIPELINE`."
    )


class BoundsReversed(TerminalError):
    """Changes are asked for whose end does not follow their start."""

    source: str
    start: str
    end: str
    template = (
        "{source}: expected changes up to an instant after {start}, found {end}, which does not "
        "follow it. Exchange the bounds; `tidegate instants PIPELINE` lists the instants in order."
    )


class PointNotFound(TerminalError):
    """The options of a source choose a point of its history that does not exist."""


class StateGone(PointNotFound):
    """A state that a window, a file or a command reads is no longer retained."""

    reader: str
    """The window that reads it, as a relative clause between commas; empty if there is none."""
    remedy: str

    def read_by(self, reader: str, remedy: str) -> Self:
        """Return the same error, with the reader of the state and a remedy."""
        return type(self)(**{**self.values, "reader": reader, "remedy": remedy})


class HistoryChanged(TerminalError):
    """A file that arrived before the first window is needed, but is not as it was then (PC-R07)."""

    source: str
    path: str
    interval: str
    expected: str
    found: str
    template = (
        "{source}: {path} arrived in the interval {interval}, as {expected}, found {found}. "
        "Nothing was taken. Restore it as it was, including its modification time, and run again. "
        "If that is not possible, backfill intervals in which it did not arrive, or read all that "
        "stands of some partitions with `tidegate rebuild PIPELINE PARTITION`."
    )


class SourceChanged(TerminalError):
    """Files of the source that were taken in are others now, or gone."""

    source: str
    path: str
    """The first of them, below the source."""
    remedy: str
    """The command that reads the partitions of their rows again."""
    rows_may_stay = True
    """Whether a pipeline file may let the rows stay that were read of them."""

    def __init__(self, *, others: tuple[str, ...] = (), **values: Any) -> None:
        super().__init__(**values)
        self.others = others
        """The other ones. Only known where it was raised: there may be thousands."""

    def with_remedy(self, remedy: str) -> Self:
        """Return the same error with a remedy of the pipeline, which knows the partitions."""
        return type(self)(**{**self.values, "remedy": remedy})


class RebuildTooNarrow(TerminalError):
    """A rebuild leaves out partitions of rows that changed files had or have now (PC-R07)."""

    source: str
    files: str
    missed: str
    remedy: str
    template = (
        "{source}: not as they were taken in: {files}. A rebuild reads them as they stand, so it "
        "has to name all partitions that may have rows of them, as before or as now; it leaves out "
        "{missed}. Nothing was taken. Run {remedy}. If they changed by mistake, restore them and "
        "run again."
    )
