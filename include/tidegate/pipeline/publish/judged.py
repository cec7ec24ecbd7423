"""Tell why a judged revision waits for a person: failed checks, a required approval, or both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.model.publication import CheckResult, Outcome
from tidegate.model.watermark import ConditionResult, Evaluation, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidegate.model.message import Contribution
    from tidegate.model.publication import Publication, Verdict

APPROVAL = "approval"
"""The check that only a person can pass, among those of a verdict."""
LATE_CHECK = "late rows"
"""The check of a proposal with late rows, which fails until a person approves them."""
_MISSING = "a person has to approve this revision"


def is_news(contribution: Contribution) -> bool:
    """Return whether a contribution brought late rows; those of a rebuild are no news."""
    return contribution.late and bool(contribution.rows) and not contribution.kind.replaces


def new_windows(publication: Publication, stood: Mapping[str, str]) -> set[int]:
    """Return the windows whose rows a publication brings, other than those that stood before.

    Args:
        publication: the proposal.
        stood: window → plan digest of what is in the revision that it is proposed on.
    """
    fresh = {
        int(window)
        for window, digest in publication.contributions.items()
        if stood.get(window) != digest
    }
    brought = {window for file in publication.adds for window in file.windows}
    # Changes that only remove rows come with no file.
    return fresh & brought if publication.adds else fresh


def asking(verdict: Verdict) -> Verdict:
    """Return the verdict of a pipeline that lets no revision pass without a person (PC-C06)."""
    if verdict.outcome is Outcome.FAIL:
        return verdict
    asked = CheckResult(APPROVAL, "critical", False, "none yet", "a person's decision")
    return replace(verdict, outcome=Outcome.HOLD, checks=(*verdict.checks, asked))


def failed_why(verdict: Verdict, now: datetime, before: Evaluation | None = None) -> Evaluation:
    """Return the critical checks that failed, and whether an approval is missing.

    Args:
        verdict: on the proposed revision.
        now: clock of the run.
        before: what was found when it was proposed; the conditions that held are named again.
    """
    texts = failed_text(verdict)
    asked = (before and before.conditions) or ()
    met = tuple(item for item in asked if item.holds and item.name not in {"gate", APPROVAL})
    if not any(it.name == APPROVAL for it in verdict.checks):
        critical = {check.name for check in verdict.failures if check.severity == "critical"}
        reason = Reason.APPROVAL_MISSING if critical == {LATE_CHECK} else Reason.GATE_FAILED
        name = APPROVAL if reason is Reason.APPROVAL_MISSING else "gate"
        judged = (*met, ConditionResult(name, False, reason, texts, {})) if met else None
        return Evaluation(False, reason, texts, now, conditions=judged)
    gate = ConditionResult("gate", not texts, Reason.GATE_FAILED if texts else None, texts, {})
    approval = ConditionResult("approval", False, Reason.APPROVAL_MISSING, _MISSING, {})
    judged = (gate, approval) if len(verdict.checks) > 1 else (approval,)
    first = gate if texts else approval
    return Evaluation(False, first.reason, first.detail, now, conditions=(*met, *judged))


def failed_text(verdict: Verdict) -> str:
    """Return the critical checks that failed in one line, besides the approval."""
    checks = tuple(it for it in verdict.checks if it.name != APPROVAL)
    return replace(verdict, checks=checks).critical_text


def decided_why(verdict: Verdict | None, words: str, at: datetime) -> Evaluation:
    """Return what a person decided on, and their answer in words."""
    texts = failed_text(verdict) if verdict else ""
    is_asked = verdict is not None and any(it.name == APPROVAL for it in verdict.checks)
    if is_asked and not texts:
        return Evaluation(False, Reason.APPROVAL_MISSING, words, at)
    return Evaluation(False, Reason.GATE_FAILED, f"{texts} — {words}", at)
