"""Explain one partition: why it is or is not published, and what it consists of. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tidegate.cli import wording
from tidegate.cli.status_view import facts
from tidegate.model.counting import counting, effective, set_aside
from tidegate.model.wire import parse_instant_text
from tidegate.target.content import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from rich.console import RenderableType

    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.message import Contribution
    from tidegate.model.publication import Verdict
    from tidegate.model.report import CheckpointState, PartitionExplanation
    from tidegate.model.watermark import ConditionResult


def explanation(
    found: PartitionExplanation, checkpoint: CheckpointState | None, zone: str
) -> Group:
    """Return all that is known about a partition, and whether more rows can arrive for it."""
    failed = [("last load", f"failed {found.load_failed}")] if found.load_failed else []
    parts: list[RenderableType] = [facts(_state(found, zone) + failed)]
    if checkpoint:
        parts += [_title("Checkpoint"), checkpoint_facts(checkpoint)]
    if conditions := _evaluated(found):
        parts += [_title("Conditions"), condition_table(conditions)]
    if found.watermark:
        parts += [_title("Watermark"), facts(_watermark(found.watermark, zone))]
    if found.proposed and found.proposed.verdict:
        title = f"Gate of revision {found.proposed.publication.revision}"
        parts += [_title(title), verdict_table(found.proposed.verdict)]
    if found.verdict and found.verdict.checks:
        title = f"Gate of revision {found.revisions[-1].revision}" if found.revisions else "Gate"
        parts += [_title(title), verdict_table(found.verdict)]
    if found.contributions:
        parts += [_title("Rows from"), contribution_table(found)]
    if found.revisions:
        parts += [_title("Revisions"), revision_table(found, zone)]
    if found.quarantined:
        parts += [_title("Rows of its windows put aside in"), facts(_put_aside(found))]
    return Group(*parts)


def proposal_facts(found: PartitionExplanation) -> Table:
    """Return what waits for a decision: its size, and the digest that the decision has to name."""
    rows = [("partition", str(found.report.state.partition)), *_proposal(found)]
    if found.proposed is not None:
        shown = found.proposed.publication.contributions
        counting_now = effective(found.contributions)
        since = [item for item in counting_now if shown.get(str(item.window)) != item.plan_digest]
        if since:
            rows.append(("came since", wording.plural(sum(item.rows for item in since), "row")))
    return facts(rows)


def checkpoint_facts(found: CheckpointState) -> Table:
    """Return how the checkpoint relates to the source's head, and the ways out (ICE-2.17)."""
    rows = [
        ("checkpoint", found.checkpoint or "none"),
        ("state", found.state),
        ("head", found.head or "none"),
    ]
    if found.ways_out:
        rows += [
            ("common ancestor", found.common_ancestor or "none"),
            ("oldest kept", found.oldest_kept or "none"),
        ]
        gap = "not known" if found.sequence_gap is None else str(found.sequence_gap)
        rows.append(("sequence gap", gap))
    rows.append(("that is", found.detail))
    rows += [("" if number else "ways out", way) for number, way in enumerate(found.ways_out)]
    return facts(rows)


def verdict_table(verdict: Verdict) -> Table:
    """List the checks of a verdict, failed ones first."""
    table = Table("check", "severity", "outcome", "found", "expected")
    for check in sorted(verdict.checks, key=lambda check: check.success):
        outcome = Text("passed", "green") if check.success else Text("failed", "bold red")
        table.add_row(check.name, check.severity, outcome, check.observed, check.expected)
    return table


def condition_table(conditions: Sequence[ConditionResult]) -> Table:
    """List everything that has to hold, with the values that were compared."""
    table = Table("condition", "holds", "reason", "found")
    words = {True: Text("yes", "green"), False: Text("no", "bold red"), None: Text("not yet asked")}
    for item in conditions:
        reason = item.reason.value if item.reason else ""
        table.add_row(item.name, words[item.holds], reason, item.detail)
    return table


def _evaluated(found: PartitionExplanation) -> Sequence[ConditionResult]:
    evaluation = found.evaluation or found.report.why
    return (evaluation.conditions if evaluation else None) or ()


def contribution_table(found: PartitionExplanation) -> Table:
    """List the windows with rows for the partition, and whether the current revision has them."""
    table = Table("window", "plan", "rows", "late", "in the revision")
    table.columns[2].justify = "right"
    holds = any(item.held_rule for item in found.contributions)
    if holds:
        table.add_column("rows that fail")
    for item in found.contributions:
        table.add_row(
            str(item.window),
            item.plan_digest,
            wording.count(item.rows),
            "late" if item.late and not item.kind.replaces else "",
            _standing(found, item),
            *([_holding(item)] if holds else []),
        )
    return table


def _holding(item: Contribution) -> str:
    """Return how many rows failed each rule that holds the partition."""
    failed = (item.held_rows or {}).items()
    return ", ".join(wording.failing(rule, rows) for rule, rows in failed) or (item.held_rule or "")


def _put_aside(found: PartitionExplanation) -> list[tuple[str, str]]:
    """Return the rules that put rows aside, as far as they are known, and the directories."""
    named = ((path, found.quarantined_by.get(path, {})) for path in found.quarantined)
    return [
        (", ".join(wording.failing(rule, rows) for rule, rows in rules.items()), path)
        for path, rules in named
    ]


def _standing(found: PartitionExplanation, item: Contribution) -> str | Text:
    """Return whether the rows of a window are in the current revision."""
    if item in set_aside(found.contributions) and item.aside is not None:
        earlier = " (an earlier plan stands)" if item.counts_as is not None else ""
        return Text(f"set aside: {wording.aside(item.aside.value)}{earlier}", "cyan")
    covered = found.revisions[-1].contributions if found.revisions else {}
    if covered.get(str(item.window)) == item.plan_digest and item.window in found.report.windows:
        return "yes"
    if item not in counting(found.contributions):
        return "replaced"
    # After a replay that changed nothing, the revision still names the previous plan.
    is_settled = found.report.state.pending == "none"
    return "yes" if is_settled else Text("not yet", "yellow")


def revision_table(found: PartitionExplanation, zone: str) -> Table:
    """List the revisions with their windows and source commits: the lineage."""
    table = Table("revision", "committed", "rows", "files", "windows", "source", "watermark")
    for column in table.columns[2:4]:
        column.justify = "right"
    for item in found.revisions:
        table.add_row(
            str(item.revision),
            wording.moment(item.committed_at, zone),
            wording.count(item.rows),
            wording.count(item.files),
            ", ".join(map(str, counted(item.contributions, found.contributions))),
            _source_range(item.source_range),
            wording.moment(item.watermark, zone),
        )
    return table


def _state(found: PartitionExplanation, zone: str) -> list[tuple[str, str]]:
    state = found.report.state
    rows = [
        ("partition", str(state.partition)),
        ("state", found.report.name),
        ("time", f"{wording.moment(state.start, zone)} to {wording.moment(state.end, zone)}"),
        ("revision", _revision(state)),
    ]
    if state.first_seen is not None:
        rows.insert(3, ("first seen", wording.moment(state.first_seen, zone)))
    if found.report.rows_pending:
        rows.append(("pending", wording.plural(found.report.rows_pending, "row")))
    if found.report.rows_aside:
        rows.append(("set aside", f"rows: {wording.all_aside(found.report.rows_aside)}"))
    if windows := found.report.passed_over:
        by = wording.numbered("window", [str(sequence) for sequence in windows])
        rows.append(("differs", f"may have, or lack, rows of commits that {by} passed over"))
    evaluation = found.evaluation or found.report.why
    if evaluation is not None:
        said = replace(evaluation, failed=None)
        rows.append(("why", wording.why(said) or evaluation.detail))
        if evaluation.failed:
            rows.append(("failed", evaluation.failed))
    if evaluation is not None and evaluation.due is not None:
        rows.append(("due", wording.moment(evaluation.due, zone)))
    if (alarm := state.standing_alarm) is not None:
        rows.append(("alarm", f"of {wording.moment(alarm.at, zone)}: {alarm.why}"))
    if state.owner is not None:
        rows.append(("claimed", f"by {state.owner} until {wording.moment(state.expires, zone)}"))
    rows += _proposal(found)
    rows += _overridden(found, zone)
    rows += _decided(found, zone)
    return rows


def _revision(state: PartitionState) -> str:
    if not state.revision:
        return "–"
    return f"{state.revision} with {wording.plural(state.rows, 'row')}"


def _decided(found: PartitionExplanation, zone: str) -> list[tuple[str, str]]:
    """Return who approved which revision, or rejected the proposed one."""
    named = [(item.revision, item.approval) for item in found.revisions]
    if found.proposed is not None:
        named.append((found.proposed.publication.revision, found.proposed.approval))
    return [
        (
            "approved" if said.approved else "rejected",
            f"revision {revision}, by {said.by}, {wording.moment(said.at, zone)}"
            + (f": {said.comment}" if said.comment else ""),
        )
        for revision, said in named
        if said is not None
    ]


def _proposal(found: PartitionExplanation) -> list[tuple[str, str]]:
    if found.proposed is None or found.report.proposed_digest is None:
        return []
    revision = found.proposed.publication.revision
    rows = wording.plural(found.proposed.rows, "row")
    return [
        ("proposed", f"revision {revision} with {rows}"),
        ("digest", found.report.proposed_digest),
    ]


def _overridden(found: PartitionExplanation, zone: str) -> list[tuple[str, str]]:
    """Return the revisions that were published before their trigger allowed it, and by whom."""
    named = [(item.revision, item.override) for item in found.revisions]
    if found.proposed is not None:
        named.append((found.proposed.publication.revision, found.proposed.override))
    return [
        (
            "final",
            f"revision {revision}, by {said.by}, {wording.moment(said.at, zone)}: {said.comment}; "
            f"overruled {said.overruled}",
        )
        for revision, said in named
        if said is not None
    ]


def _watermark(step: Mapping[str, Any], zone: str) -> list[tuple[str, str]]:
    """Return how the watermark was computed (PC-W10)."""
    from tidegate.config.words import duration_text

    rows = [
        ("watermark", _moment_text(step.get("value"), zone)),
        ("before", _moment_text(step.get("previous"), zone)),
        ("last load reached", _moment_text(step.get("largest_event_time"), zone)),
        ("lateness", duration_text(timedelta(seconds=step.get("lateness_seconds", 0)))),
    ]
    if step.get("future_rows"):
        rows.append(("in the future", f"{wording.plural(step['future_rows'], 'row')}, not counted"))
    if step.get("idle"):
        rows.append(("idle", "the source had no change for longer than its idle timeout"))
    return rows


def _moment_text(text: str | datetime | None, zone: str) -> str:
    value = parse_instant_text(text) if isinstance(text, str) else text
    return wording.moment(value, zone)


def _source_range(found: Mapping[str, Any]) -> str:
    """Return the source instants of each window, one line each."""
    windows = [found[sequence] for sequence in sorted(found, key=int)]
    return "\n".join(f"({item['after'] or 'beginning'}, {item['to']}]" for item in windows)


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")
