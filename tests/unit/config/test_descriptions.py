"""What a key is for stands below it, where whoever changes it sees it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tidegate.config.descriptions import descriptions
from tidegate.config.section import Section


class Above(Section):
    inherited: int = 1
    """Stands
    above."""
    silent: int = 1
    replaced: int = 1
    """Of the one above."""


class Below(Above):
    """Text of the section, which is none of a key's."""

    limit: ClassVar[int] = 3
    """Of no key."""
    renamed: int = Field(1, alias="called")
    """Under its key."""
    replaced: int = 2
    """Of the one below."""


def test_each_key_has_the_text_below_it_inherited_ones_included() -> None:
    assert descriptions(Below) == {
        "inherited": "Stands\nabove.",
        "called": "Under its key.",
        "replaced": "Of the one below.",
    }
