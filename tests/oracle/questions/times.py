"""Partition time, and when it has come (PC-T02, T04, PC-T10 to T17, T19, T20, PC-V08, V09).

Flink counts in milliseconds, and so do the answers: a boundary is the largest watermark at which a
partition is not committed; one millisecond later it is.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from oracle.questions.question import REFUSED, Question

_TEXTS_200 = Path(__file__).parents[2] / "golden" / "local_times_200" / "cases.tsv"


def _time(
    values: dict[str, str],
    pattern: str | None = None,
    formatter: str | None = None,
    *,
    rule: str | None = None,
    ours: str | None = None,
    strict: str | None = None,
) -> Question:
    """Ask for a time; `strict` is what Tidegate says without `lenient`, if that is another one."""
    ask = {"values": [*map(list, values.items())], "pattern": pattern, "formatter": formatter}
    return Question(ask, rule, ours, {} if strict is None else {"strict": strict})


def _of(text: str, formatter: str | None = None, strict: str | None = None) -> Question:
    return _time({"dt": text}, formatter=formatter, strict=strict)


_HOURLY = {"day": "2020-12-01", "hour": "11", "minute": "11"}

# ── Pattern, PC-T10 to T12 ──
_PATTERNS = (
    _time(_HOURLY, "$day $hour:$minute:00"),
    _time(_HOURLY, "$day"),
    _time(_HOURLY, "$day 00:00:00"),
    _time(_HOURLY),
    _time({"hour": "11", "day": "2020-12-01"}),
    _time({"hour": "11", "day": "2020-12-01"}, "$day $hour:00:00"),
    _time({"y": "2020", "m": "2", "d": "3"}, "$y-$m-$d"),
    _time({"y": "2020", "m": "2", "d": "3"}, "$y-$m-$d 1:2:3"),
    _time({"dt": "2020-12-01"}, "$dt $dt"),
    _time({"dt": "2020-12-01"}, "2019-01-01"),
    _time({"dt": "2020-12-01"}, "$dt 25:00:00", strict=REFUSED),
    _time({"dt": "20201201", "hr": "7"}, "$dt$hr", "yyyyMMddH"),
    _time({"dt": "20201201", "hr": "07"}, "$dt $hr", "yyyyMMdd HH"),
    _time({"mo": "202012"}, "$mo01", "yyyyMMdd"),
    _time({"d": "7", "dt": "2020-12-01"}, "$dt", rule="PC-T11", ours="2020-12-01T00:00:00"),
    _time(
        {"d": "1", "day": "2020-12-01", "h": "2", "hour": "11"},
        "$day $hour:00:00",
        rule="PC-T11",
        ours="2020-12-01T11:00:00",
    ),
    # A value is text, and no replacement of a regular expression: `$` and `\` stand for themselves.
    _time({"a": "$b", "b": "2020-12-01"}, "$a"),
    _time({"a": "$0"}, "$a"),
    _time({"a": "$1"}, "$a"),
    _time({"a": "2020-12\\-01"}, "$a", rule="PC-T11", ours=REFUSED),
    _time({"a": "2020-12-01\\"}, "$a"),
    _time({"a.b": "2020-12-01"}, "$a.b"),
    _time({"a.b": "2020-12-01", "acb": "x"}, "$acb", rule="PC-T11", ours=REFUSED),
    _time({"dt": "2020-12-01"}, "$DT"),
    _time({"dt": "2020-12-01"}, "$other"),
    _time({"dt": "2020-12-01"}, "$$dt"),
)

# ── The form without a formatter, PC-T13, and what is no real time, PC-T14 ──
_PLAIN = (
    *(
        _of(text)
        for text in (
            "2020-12-01",
            "2020-1-2",
            "2020-01-02 3:4:5",
            "2020-12-01 11:11:11",
            "2020-12-01 11:11:11.1",
            "2020-12-01 11:11:11.123",
            "2020-12-01 11:11:11.123456",
            "2020-12-01 11:11:11.123456789",
            "2020-12-01 00:00:00",
            "2020-12-01 23:59:59",
            "2020-02-29",
            "1969-12-31 23:59:59",
            "1-1-1",
            "0999-01-01",
            "9999-12-31",
            # No time at all.
            "",
            " ",
            "20201201",
            "202012",
            "2020-12",
            "2020",
            "2020-12-01T11:11:11",
            "2020-12-01 11",
            "2020-12-01 11:11",
            "2020-12-01 11:11:11.",
            "2020-12-01 11:11:11.1234567890",
            "2020-12-01  11:11:11",
            " 2020-12-01",
            "2020-12-01 ",
            "2020-123-01",
            "2020-12-011",
            "2020/12/01",
            "01.12.2020",
            "2020-12-01 11:11:11 UTC",
            "2020-12-01Z",
            "yesterday",
            "__HIVE_DEFAULT_PARTITION__",
            "\u0662\u0660\u0662\u0660-12-01",
        )
    ),
    *(
        _of(text, strict=REFUSED)
        for text in (
            "2020-02-30",
            "2019-02-29",
            "2020-04-31",
            "2020-12-32",
            "2020-12-99",
            "2020-12-00",
            "2020-00-10",
            "2020-13-01",
            "2020-25-01",
            "2020-99-99",
            "2020-12-01 24:00:00",
            "2020-12-01 25:00:00",
            "2020-12-01 99:00:00",
            "2020-12-01 11:60:00",
            "2020-12-01 11:99:00",
            "2020-12-01 11:11:60",
            "2020-12-31 24:00:00",
            "2020-02-30 24:60:60",
        )
    ),
    # Beyond the calendar of Python and Arrow, PC-T16.
    *(
        _time({"dt": text}, rule="PC-T16", ours=REFUSED)
        for text in (
            "10000-01-01",
            "0-1-1",
            "0000-01-01",
            "-1-1-1",
            "9999-12-31 24:00:00",
            "9999-13-01",
            "20201-01-01",
        )
    ),
)

# ── With a formatter, PC-T15 ──
_FORMATTED = (
    *(
        _of(text, letters)
        for letters, text in (
            ("yyyyMMdd", "20201201"),
            ("yyyyMMdd", "2020-12-01"),
            ("yyyyMMdd", "2020121"),
            ("yyyyMMdd", "202012010"),
            ("yyyyMMddHH", "2020120111"),
            ("yyyyMMddHHmm", "202012011130"),
            ("yyyyMMddHHmmss", "20201201113059"),
            ("yyyyMMddHHmmssSSS", "20201201113059123"),
            ("yyyy-MM-dd HH:mm:ss", "2020-12-01 11:30:00"),
            ("yyyy-MM-dd HH:mm:ss", "2020-12-01"),
            ("yyyy-MM-dd HH:mm:ss", "2020-12-01 11:30"),
            ("yyyy-MM-dd'T'HH:mm:ss", "2020-12-01T11:30:00"),
            ("yyyy-MM-dd'T'HH", "2020-12-01T11"),
            ("yyyy/MM/dd", "2020/12/01"),
            ("dd.MM.yyyy", "01.12.2020"),
            ("d.M.yyyy", "1.2.2020"),
            ("yyMMdd", "201201"),
            ("uuuu-MM-dd", "2020-12-01"),
            ("'day' yyyyMMdd", "day 20201201"),
            ("yyyy''MM''dd", "2020'12'01"),
            ("yyyyMM", "202012"),
            ("yyyy", "2020"),
            ("HH:mm", "11:30"),
            ("yyyyMMdd", ""),
            ("yyyyMMdd", "2020 1 1"),
            ("yyyyMMdd", "20201301"),
            ("yyyyMMdd", "20200132"),
            ("yyyyMMddHH", "2020120125"),
            ("yyyyMMdd", "20200100"),
        )
    ),
    *(
        _of(text, letters, strict=REFUSED)
        for letters, text in (
            ("yyyyMMdd", "20200230"),
            ("yyyyMMdd", "20190229"),
            ("yyyyMMdd", "20200431"),
            ("yyyyMMddHH", "2020120124"),
            ("yyyy-MM-dd HH:mm:ss", "2020-02-30 10:00:00"),
            ("yyyy-MM-dd HH:mm:ss", "2020-12-01 24:00:00"),
        )
    ),
    # Letters that Tidegate refuses when the file is read: optional parts, names, halves of the day.
    *(
        _time({"dt": text}, formatter=letters, rule="PC-T15", ours=REFUSED)
        for letters, text in (
            ("yyyy-MM-dd[ HH:mm:ss]", "2020-12-01"),
            ("yyyy-MM-dd[ HH:mm:ss]", "2020-12-01 11:30:00"),
            ("yyyy-DDD", "2020-336"),
            ("yyyyMMdd hh a", "20201201 11 PM"),
        )
    ),
)


def _java_texts() -> tuple[Question, ...]:
    """Ask again what `golden/local_times_200` has from java.time alone."""
    lines = [line.split("\t") for line in _TEXTS_200.read_text("utf-8").splitlines()]
    asked = {(item.ask["formatter"], item.ask["values"][0][1]) for item in (*_PLAIN, *_FORMATTED)}
    return tuple(
        _of(text, letters or None, strict="unsaid")
        for letters, text, _ in lines
        if (letters or None, text) not in asked
    )


TIMES = (*_PATTERNS, *_PLAIN, *_FORMATTED, *_java_texts())

# ── Process time, PC-T30, T31: clock → committed. First seen at 1000 ms ──
PROCESS_TIMES = tuple(
    Question({"delay_ms": delay, "first_seen_ms": 1000, "clock_ms": clock})
    for delay, clocks in (
        (0, (0, 500, 999, 1000, 1001)),
        (1, (0, 999, 1000, 1001, 1002)),
        (5_000, (1000, 5999, 6000, 6001, 1_000_000)),
        (3_600_000, (1000, 3_600_999, 3_601_000, 3_601_001)),
        (86_400_000, (86_400_999, 86_401_000, 86_401_001)),
    )
    for clock in clocks
)

# ── Partition time, PC-T32 to T35 and PC-T40 to T45; each hour and day around clock changes ──
_MINUTE = timedelta(minutes=1)
_SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def _clock(zone: str, day: str) -> tuple[tuple[datetime, datetime], ...]:
    """Read the clock of a zone each minute from a day before one to two days after: instant, local.

    St. John's changed its clock at one minute past midnight.
    """
    first = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
    moments = [first + number * _MINUTE for number in range(4 * 1440)]
    return tuple(
        (moment, moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for moment in moments
    )


def _end(zone: str, start: datetime, span: timedelta) -> datetime:
    """Find the first moment from which the clock never shows the interval again, by looking."""
    clock = _clock(zone, f"{start:%Y-%m-%d}")
    inside = [moment for moment, local in clock if start <= local < start + span]
    if inside:
        return inside[-1] + _MINUTE
    return next(moment for moment, local in clock if local >= start + span)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def boundary(zone: str, text: str, length: str, slack: timedelta = timedelta(0)) -> Question:
    """Ask when a partition is over.

    Flink's delay contains the length of the partition. Beside its answer stands Tidegate's for a
    partition whose length is known, with the slack alone as delay (PC-T20).
    """
    day, _, hour = text.partition("T")
    start = datetime.fromisoformat(day) + timedelta(hours=int(hour or 0))
    span = _SPANS[length]
    values = [["dt", day], *([["hr", hour]] if hour else [])]
    ask = {
        "values": values,
        "pattern": "$dt $hr:00:00" if hour else "$dt",
        "zone": zone,
        "delay_ms": (span + slack) // timedelta(milliseconds=1),
        "length": length,
        "slack_ms": slack // timedelta(milliseconds=1),
    }
    by_end = _milliseconds(_end(zone, start, span) + slack)
    return Question(ask, beside={"by_end": by_end})


def _without_length(zone: str, minutes: int) -> Question:
    ask = {
        "values": [["dt", "2020-12-01"], ["hr", "10"]],
        "pattern": "$dt $hr:00:00",
        "zone": zone,
        "delay_ms": minutes * 60_000,
    }
    return Question(ask)


_CHANGES = {
    "America/New_York": ("2020-03-08", "2020-11-01"),
    "Europe/Berlin": ("2020-03-29", "2020-10-25"),
    "America/St_Johns": ("2010-03-14", "2010-11-07"),
    "Australia/Lord_Howe": ("2020-04-05", "2020-10-04"),
    "Atlantic/Azores": ("2020-03-29", "2020-10-25"),
    "Africa/Casablanca": ("2019-05-05", "2019-06-09"),
    "Asia/Pyongyang": ("2015-08-15", "2018-05-05"),
    "Pacific/Apia": ("2011-12-29", "2011-12-30"),
    "Asia/Kathmandu": ("2020-12-01",),
    "Asia/Shanghai": ("2020-12-01",),
    "UTC": ("2020-12-01",),
}

BOUNDARIES = (
    *(_without_length("UTC", minutes) for minutes in (0, 60, 70)),
    _without_length("Asia/Shanghai", 60),
    boundary("UTC", "2020-12-01T10", "hour", 10 * _MINUTE),
    boundary("UTC", "2020-12-01", "day", 90 * _MINUTE),
    *(
        boundary(zone, f"{day}T{hour:02d}", "hour")
        for zone, days in _CHANGES.items()
        for day in days
        for hour in range(24)
    ),
    *(boundary(zone, day, "day") for zone, days in _CHANGES.items() for day in days),
)
