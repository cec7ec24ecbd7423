"""Check that what makes a partition complete fits the rest of the pipeline file (PC-C01, T21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config.expected_values import ExpectedValues, NotWritable
from tidegate.config.words import KeyProblem, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config.commit import CommitConfig
    from tidegate.model.partition import PartitionField


@dataclass(frozen=True)
class Surroundings:
    """What the rest of the pipeline file says."""

    fields: Sequence[PartitionField]
    event_time: str | None
    """The column of the event time."""
    judges: bool
    """Whether there is a gate, or a row rule that holds partitions."""
    write: str
    """How rows are written, `target.write`."""


def check_completeness(commit: CommitConfig, around: Surroundings) -> None:
    """Check the conditions, the calendar and the turn of the default partition.

    Raises:
        KeyProblem: two keys contradict each other, or one decides nothing.
    """
    _check_required(commit, around)
    _check_expected(commit, around)
    turn = commit.default_partition
    if (turn.at_end or turn.after) and not commit.waits_for_watermark:
        problem = (
            "decides nothing unless partitions wait for a watermark (`trigger: partition-time`, "
            "among `commit.require` if that is set): else the partition of rows without a time "
            "is committed as any other"
        )
        raise KeyProblem(problem, key="commit.default_partition")


def _check_required(commit: CommitConfig, around: Surroundings) -> None:
    if commit.counts is not None and around.write == "upsert":
        problem = (
            "cannot be compared with `target.write: upsert`: how many rows its changes leave is "
            "known only once they are merged; check the rows in `gate`"
        )
        raise KeyProblem(problem, key="commit.counts")
    if commit.require is None:
        return
    if "counts" in commit.require and commit.counts is None:
        problem = "'counts' needs `commit.counts`: where the rows of each partition are found"
        raise KeyProblem(problem, key="commit.require")
    if "gate" in commit.require and not around.judges:
        problem = "'gate' needs `gate`, or a row rule with `on_failure: hold`"
        raise KeyProblem(problem, key="commit.require")
    for name, is_there in (("counts", commit.counts is not None), ("gate", around.judges)):
        if is_there and name not in commit.require:
            problem = (
                f"leaves out '{name}', which is configured and would decide nothing; add the word, "
                "or remove what it stands for"
            )
            raise KeyProblem(problem, key="commit.require")


def _check_expected(commit: CommitConfig, around: Surroundings) -> None:
    expected = commit.expected
    if expected is None:
        return
    if not around.fields:
        problem = "needs partition keys; `target.partition_by` names none"
        raise KeyProblem(problem, key="commit.expected")
    if not commit.waits_for_watermark:
        problem = (
            "needs the trigger 'partition-time': an expected partition is due once the watermark "
            "has passed it"
        )
        raise KeyProblem(problem, key="commit.expected")
    try:
        written = ExpectedValues.of(around.fields, around.event_time, commit.partition_time)
    except NotWritable as unknown:
        raise KeyProblem(str(unknown), key=f"commit.{unknown.key}") from unknown
    others = [field.name for field in around.fields if field.name not in written.keys]
    for name in expected.values:
        if name in written.keys:
            problem = f"'{name}' is made from the time of the calendar; remove it"
            raise KeyProblem(problem, key=f"commit.expected.values.{name}")
        if name not in others:
            near = suggest(name, others) if others else "every key is made from the time"
            problem = f"'{name}' is no such partition key; {near}"
            raise KeyProblem(problem, key=f"commit.expected.values.{name}")
    missing = [name for name in others if name not in expected.values]
    if missing:
        problem = f"is required: the values of '{missing[0]}' for which rows have to come"
        raise KeyProblem(problem, key=f"commit.expected.values.{missing[0]}")
    if not written.begins(expected.start):
        problem = f"{expected.start} does not begin a partition"
        raise KeyProblem(problem, key="commit.expected.start")
