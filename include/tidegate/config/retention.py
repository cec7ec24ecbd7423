"""The `retention` section of a pipeline file: what `tidegate gc` leaves, and for how long."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from tidegate.config.section import Duration, Section


class RetentionConfig(Section):
    """What is kept of a pipeline's past when files that nobody needs are deleted (PC-O69)."""

    revisions: int = Field(1, gt=0)
    """How many of a partition's newest revisions keep their files, however old these are, so that
    they can be compared and brought back."""
    age: Duration = timedelta(days=7)
    """How old a file has to be, unless `tidegate gc --older-than` says otherwise."""
    quarantine: Duration | None = None
    """How long rows that a rule put aside are kept after they were staged; by default for good."""
