"""A finding names the commands that help."""

from __future__ import annotations

from tidegate.model.finding import Finding, FindingKind


def test_commands_are_those_of_the_text_in_their_order() -> None:
    text = (
        "dt=1: its marker is missing; `tidegate fsck orders --rebuild` finds the commit, and "
        "`tidegate publish orders dt=1` writes it again to `_SUCCESS`"
    )

    finding = Finding(FindingKind.MARKER_LOST, "dt=1/_SUCCESS", text)

    assert str(finding) == text
    assert finding.commands == ("tidegate fsck orders --rebuild", "tidegate publish orders dt=1")


def test_every_kind_says_why_it_matters_in_its_own_words() -> None:
    assert len({kind.value for kind in FindingKind}) == len(FindingKind.__members__)
