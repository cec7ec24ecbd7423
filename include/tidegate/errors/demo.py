"""What can keep the demo from ending as it should."""

from tidegate.errors.base import TerminalError, TransientError


class AirflowNotStarted(TerminalError):
    """Airflow did not come up, or went down while it was needed."""

    problem: str
    log: str
    template = "Airflow: {problem}. What it said stands in {log}."


class AirflowRefused(TerminalError):
    """Airflow's API answered a request with an error that asking again does not mend."""

    request: str
    status: int
    answer: str
    template = "Airflow refused {request} with status {status}: {answer}"


class AirflowBusy(TransientError):
    """Airflow's API could not do what was asked just now (AF-2.9)."""

    request: str
    problem: str
    template = "Airflow could not answer {request}: {problem}. Run the command again."


class DemoStuck(TerminalError):
    """The demo did not come to its end state in time."""

    minutes: int
    found: str
    log: str
    template = (
        "after {minutes} minutes the demo is not at its end: {found}. What Airflow said stands in "
        "{log}; run `tidegate demo` again, it goes on from here."
    )


class LakeForeign(TerminalError):
    """The demo's folder holds another table than the one that the demo makes."""

    root: str
    expected: str
    found: str
    template = (
        "{root}: expected a lake of this demo with {expected}, found {found}. "
        "Nothing was changed. Remove that folder, or give the demo another one."
    )
