"""Errors that keep the demo from ending as it should."""

from tidegate.errors.base import TerminalError, TransientError


class AirflowNotStarted(TerminalError):
    """Airflow did not start, or stopped while it was needed."""

    problem: str
    log: str
    template = "Airflow: {problem}. Its output is in {log}."


class AirflowRunning(TerminalError):
    """Another process runs the Airflow of a home."""

    home: str
    process: int
    url: str
    template = (
        "{home}: expected that nobody runs Airflow there, found process {process}, which runs it "
        "at {url}. Use that one, or stop it with Ctrl-C there, or with `kill {process}`."
    )


class AirflowRefused(TerminalError):
    """Airflow's API answered a request with an error that a retry cannot resolve."""

    request: str
    status: int
    answer: str
    template = "Airflow refused {request} with status {status}: {answer}"


class AirflowBusy(TransientError):
    """Airflow's API could not answer a request for the moment (AF-2.9)."""

    request: str
    problem: str
    template = "Airflow could not answer {request}: {problem}. Run the command again."


class DemoStuck(TerminalError):
    """The demo did not reach its final state in time."""

    minutes: int
    found: str
    log: str
    template = (
        "the demo did not finish within {minutes} minutes: {found}. See Airflow's output in "
        "{log}; run `tidegate demo` again, it continues from here."
    )


class LakeForeign(TerminalError):
    """The demo's folder holds another table than the demo's."""

    root: str
    expected: str
    found: str
    template = (
        "{root}: expected a lake of this demo with {expected}, found {found}. Nothing was "
        "changed. Remove that folder, or choose another one for the demo."
    )
