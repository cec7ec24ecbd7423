"""Which partitions a sink commits after each of several steps (PC-V01 to V06, V20, V21).

A step is a file with event times: `add` names the partitions that it touches, `watermark` the
largest event time so far, `clock` the seconds of the test clock. `final` ends the input.
"""

from __future__ import annotations

from typing import Any

from oracle.questions.question import Question

FILES = (("10:05", "10:30"), ("11:05",), ("10:50", "11:20"), ("12:01",))
"""The event times of the files a, b, c and d, of 2020-12-01."""
SECONDS = (6, 13, 21, 28)
"""When they are there."""
BY_HOUR = {"trigger": "partition-time", "delay_ms": 3_600_000, "zone": "UTC"}
IN_SHANGHAI = {**BY_HOUR, "zone": "Asia/Shanghai"}
AT_ONCE = {"trigger": "process-time", "delay_ms": 0, "zone": "UTC"}
AFTER_FIVE_SECONDS = {**AT_ONCE, "delay_ms": 5_000}


def steps(*, quiet_at: int | None = None, final: bool = False) -> list[dict[str, Any]]:
    """Lay out the steps.

    Args:
        quiet_at: second of one more step, without a file.
        final: whether the input ends after them.
    """
    made: list[dict[str, Any]] = []
    highest = ""
    for second, times in zip(SECONDS, FILES, strict=True):
        if quiet_at is not None and (made[-1]["clock"] if made else 0) < quiet_at < second:
            made.append({"clock": quiet_at, "add": [], "watermark": highest})
        highest = max(highest, *times)
        hours = sorted({time[:2] for time in times})
        made.append({"clock": second, "add": hours, "watermark": highest})
    if final:
        made.append({"clock": SECONDS[-1] + 1, "add": [], "watermark": highest, "final": True})
    return made


COMMITS = (
    Question({"name": "V01", "steps": steps(), **BY_HOUR}),
    Question({"name": "V03", "steps": steps(), **IN_SHANGHAI}),
    Question({"name": "V05", "steps": steps(), **AT_ONCE}),
    Question({"name": "V06", "steps": steps(quiet_at=20), **AFTER_FIVE_SECONDS}),
    # Flink commits what is pending when the input ends; a run that ends is no end of the data.
    Question(
        {"name": "V21", "steps": steps(final=True), **BY_HOUR},
        "PC-V21",
        [[], ["10"], ["10"], ["11"], []],
    ),
)
