"""Errors of erasing rows."""

from tidegate.errors.base import TerminalError, TransientError


class ErasureInvalid(TerminalError):
    """It is not said by values which rows are to be erased."""

    where: str
    problem: str
    template = (
        '--where "{where}": expected one or more of `column = value` or `column in (values)`, '
        "joined by `and`, of columns in the published files; found: {problem}."
    )


class ErasedSince(TransientError):
    """Rows were erased after the plan of a window was made, which may have staged them."""

    pipeline: str
    window: int
    number: int
    template = (
        "pipeline '{pipeline}': window {window}: expected a plan that leaves out erasure {number}, "
        "found an earlier one. Nothing was announced: `tidegate load {pipeline}`, or a new run of "
        "the load in Airflow, plans the window again."
    )


class ErasedColumnGone(TerminalError):
    """Rows that come now are read without a column by which some of them are erased."""

    pipeline: str
    number: int
    column: str
    found: str
    template = (
        "pipeline '{pipeline}': expected column '{column}', by which erasure {number} names rows, "
        "found {found}. Rows that were erased could not be told from others, so that nothing was "
        "read. Let the column be read again; or name the same rows by columns that are there, with "
        "`tidegate erase {pipeline} --instead {number} --where CONDITION`; or, if no row that "
        "comes from now on can have such a value, with "
        "`tidegate erase {pipeline} --instead {number}` alone."
    )


class ErasedColumnUnread(TerminalError):
    """Earlier rows are read again without a column by which some of them are erased."""

    pipeline: str
    number: int
    column: str
    found: str
    template = (
        "pipeline '{pipeline}': expected column '{column}', by which erasure {number} names rows, "
        "found {found}. Rows that were erased could not be told from others, so that nothing was "
        "read again. Let the column be read again; or name the same rows by columns that are "
        "there, with `tidegate erase {pipeline} --instead {number} --where CONDITION`."
    )


class NothingErased(TerminalError):
    """All erasures are to be done again, and there are none."""

    pipeline: str
    template = (
        "pipeline '{pipeline}': expected an erasure that was written down, found none. Say what is "
        "to be erased with `tidegate erase {pipeline} --where CONDITION`."
    )


class ErasureUnfinished(TerminalError):
    """A revision is to be brought back of which a file still has erased rows."""

    pipeline: str
    partition: str
    revision: int
    path: str
    rows: int
    template = (
        "pipeline '{pipeline}': {partition}: nothing was undone: expected no erased rows in the "
        "files of revision {revision}, found {rows} in {path}. Run "
        "`tidegate erase {pipeline} --again`, which finishes what was to be erased."
    )
