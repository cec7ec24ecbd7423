"""Errors of what the files of the target cannot have, or be."""

from tidegate.errors.base import TerminalError


class ColumnUnfit(TerminalError):
    """A column has a type that the format of the target does not have."""

    column: str
    type: str
    format: str
    problem: str
    template = (
        "`target.format: {format}`: column '{column}' has the type {type}, which cannot be "
        "written: {problem}. Set another `target.format`, or leave the column out by listing the "
        "others in `source.read.columns`."
    )


class ColumnsAlike(TerminalError):
    """The names of two columns of the target differ only in upper and lower case."""

    column: str
    other: str
    template = (
        "the columns '{column}' and '{other}' have names that differ only in upper and lower case: "
        "readers such as Spark would find two columns of one name, and not read the table. List "
        "the columns without one of both in `source.read.columns`; of an Iceberg table, set "
        "`source.case_sensitive: true`, too."
    )


class ValueUnfit(TerminalError):
    """A value cannot be written in the format of the target."""

    column: str
    value: str
    format: str
    rule: str
    template = (
        "`target.format: {format}`: column '{column}' has {value}, which cannot be written. "
        "Quarantine such rows with a row rule, as `{{name: writable, where: {rule}}}`, or set "
        "another `target.format`."
    )


class ColumnsDrifted(TerminalError):
    """A window has other columns than the table that it is written to may have."""

    pipeline: str
    problem: str
    evolve: str
    remedy: str
    template = (
        "pipeline '{pipeline}': {problem}; expected the columns of the windows before, by "
        "`target.evolve: {evolve}`. {remedy}"
    )


class FormatNotJoined(TerminalError):
    """The files of a table have a format whose files are not joined to larger ones."""

    pipeline: str
    format: str
    template = (
        "pipeline '{pipeline}': expected files that say their columns to join, found "
        "`target.format: {format}`. Leave the files as they are: small ones of a window are put "
        "together while they are written."
    )
