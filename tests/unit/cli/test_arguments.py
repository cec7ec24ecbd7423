"""Times on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import typer

from tidegate.cli.arguments import read_moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2013-02-09", datetime(2013, 2, 9, 5, tzinfo=UTC), id="date-in-the-zone"),
        pytest.param("2013-02-09T06:00", datetime(2013, 2, 9, 11, tzinfo=UTC), id="wall-clock"),
        pytest.param("2013-02-09T06:00Z", datetime(2013, 2, 9, 6, tzinfo=UTC), id="utc"),
        pytest.param(
            "2013-02-09T06:00+01:00", datetime(2013, 2, 9, 5, tzinfo=UTC), id="own-offset"
        ),
    ],
)
def test_moment_as_iso_text_is_read(text: str, expected: datetime) -> None:
    assert read_moment(text, "--until", "America/New_York") == expected


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "09.02.2013", "0001-01-01"],
    ids=["empty", "word", "german", "before all times of UTC"],
)
def test_moment_in_other_words_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected an ISO date or time"):
        read_moment(text, "--until", "Europe/Berlin")
