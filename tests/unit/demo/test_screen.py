from __future__ import annotations

import io
from datetime import date

from rich.console import Console

from tidegate.demo import plot, screen
from tidegate.demo.proof import DayProof
from unit.demo.test_plot import BEHIND, ending, partition_report, pipeline_report


def rendered(table: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_days_are_shown_before_anything_is_loaded() -> None:
    text = rendered(screen.day_table(None))

    assert text.count("not loaded yet") == 8


def test_day_that_is_not_out_says_why() -> None:
    text = rendered(screen.day_table(pipeline_report(*ending().values())))

    assert "WATERMARK_BEHIND: 13 h missing" in text
    assert "GATE_FAILED: 49 %" in text
    assert text.count("committed") == 6


def test_board_without_a_terminal_says_each_change_once() -> None:
    console = Console(file=io.StringIO(), width=160)
    waiting = partition_report(date(2013, 2, 5), "pending", 0, BEHIND)
    done = partition_report(date(2013, 2, 5), "none", 1)

    with screen.board(console) as shown:
        for report in (None, waiting, waiting, done, done):
            shown.show(pipeline_report(report) if report else None)

    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "dt=2013-02-05  pending  7  –  WATERMARK_BEHIND: 13 h missing",
        "dt=2013-02-05  committed  900  1",
    ]


def test_proof_says_which_days_are_whole_and_which_are_not_out() -> None:
    whole = DayProof(date(2013, 2, 5), 896, 896, 896, missing=0, surplus=0)
    kept_back = DayProof(plot.HELD, 684, 684, 0, missing=684, surplus=0)
    doubled = DayProof(date(2013, 2, 7), 932, 932, 933, missing=0, surplus=1)

    text = rendered(screen.proof_table([whole, kept_back, doubled]))

    assert [item.is_exact for item in (whole, kept_back, doubled)] == [True, True, False]
    assert "yes" in text
    assert "not published" in text
    assert "NO: 0 missing, 1 too many" in text
