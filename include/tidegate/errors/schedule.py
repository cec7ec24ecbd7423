"""Errors of scheduled runs, before any data is touched."""

from tidegate.errors.base import TerminalError


class IntervalInvalid(TerminalError):
    """A run's data interval cannot be loaded once and for all (AF-3.2, AF-3.20)."""

    subject: str
    interval: str
    problem: str
    template = (
        "{subject}: expected a data interval with a start before its end, in the past; found "
        "{interval}: {problem}. Trigger the DAG without a data interval, or backfill intervals of "
        "its schedule."
    )


class PartitionUnnamed(TerminalError):
    """A publish run was started by hand without a partition (AF-2.12)."""

    dag: str
    expected: str
    template = (
        "{dag}: this run has neither a partition key nor the parameter `partition`. Trigger it "
        "again with a key under Advanced, or with that parameter: expected {expected}."
    )


class ProposalMissing(TerminalError):
    """A task of a publish run has no proposal to work on."""

    dag: str
    task: str
    template = (
        "{dag}: the task `{task}` returned no proposal: it was skipped, or marked as success by "
        "hand. Clear it, so that it proposes the next revision."
    )


class WaitInvalid(TerminalError):
    """A task that waits for a partition has an argument that cannot be right (AF-3.29)."""

    task: str
    argument: str
    expected: str
    found: str
    template = (
        "{task}: `{argument}`: expected {expected}, found '{found}'. Correct it in the file of the "
        "DAG."
    )


class PipelineFilesBroken(TerminalError):
    """Some pipeline files cannot be loaded; DAGs exist for the others."""

    count: int
    problems: str
    template = "{count} pipeline file(s) have no DAGs until they are corrected:\n{problems}"
