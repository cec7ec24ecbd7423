"""Read dates and times in a condition with their offset, to the nanosecond."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<offset>Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"'\d{4}-\d\d-\d\d[T ][^']*[+-](?!00:?(00)?')\d\d(:?\d\d)?'", re.ASCII)
_NANOSECONDS = re.compile(r"'[^']*:\d\d\.\d{6}(?P<cut>\d{1,3})([^\d'][^']*)?'", re.ASCII)
_KIND = r"(?:timestamptz|timestamp|datetime)(?:\s*\(\s*\d+\s*\))?(?:\s+with(?:out)?\s+time\s+zone)?"
# Whole texts and names, so that nothing inside one is taken for a literal.
_TYPED = re.compile(
    r"(?P<name>\"(?:[^\"]|\"\")*\")"
    rf"|(?P<before>\b{_KIND}\s*)?(?P<text>'(?:[^']|'')*')"
    rf"(?P<after>\s*(?:::|\bas\b)\s*{_KIND}(?!\w))?",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"(?P<kind>timestamptz|timestamp|datetime)(?P<digits>\s*\(\s*\d+\s*\))?(?P<zone>\s+with\w*)?",
    re.IGNORECASE,
)
_IN_NANOSECONDS = re.compile(r"\s*\(\s*[789]\s*\)")
_MOMENT = re.compile(r"timestamptz|with\s+time", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FRACTION_DIGITS, _CUT_DIGITS = 9, 3
# Beyond these nanoseconds polars wraps around.
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


def with_exact_times(text: str) -> str:
    """Return a condition whose typed times are also exact for polars.

    It would drop the offset from UTC of `timestamp '2026-02-01 00:00:00+02:00'`, which names a
    moment, whatever SQL calls it, and all behind the microseconds. A time that its nanoseconds do
    not reach becomes a text that is cast, of which `nanoseconds_cut_from` tells the last digits.
    """
    return _TYPED.sub(_exact, text)


def nanoseconds_of(text: str, *, with_offset: bool) -> int | None:
    """Count the nanoseconds from 1970 to an ISO date or time; without an offset, it is one of UTC.

    Args:
        text: of a literal, without quotes.
        with_offset: whether one is allowed; a wall clock has none.

    Returns:
        None if the text names no date or time.
    """
    found = _ISO.fullmatch(text)
    if found is None or (found["offset"] and not with_offset):
        return None
    fraction = found["fraction"] or ""
    try:
        whole = datetime.fromisoformat(text.replace(f".{fraction}", "") if fraction else text)
    except ValueError:
        # No such day.
        return None
    moment = whole if whole.tzinfo else whole.replace(tzinfo=UTC)
    microseconds = (moment - _EPOCH) // _MICROSECOND
    return microseconds * 1_000 + int(fraction.ljust(_FRACTION_DIGITS, "0"))


def nanoseconds_cut_from(text: str) -> int:
    """Count the nanoseconds of a text that are behind its microseconds."""
    found = _NANOSECONDS.fullmatch(f"'{text}'")
    return int(found["cut"].ljust(_CUT_DIGITS, "0")) if found else 0


def _exact(found: re.Match[str]) -> str:
    text = found["text"]
    if found["name"] is not None:
        return found[0]

    def named(parts: re.Match[str]) -> str:
        kind, digits, zone = (part or "" for part in parts.group("kind", "digits", "zone"))
        if _OFFSET.fullmatch(text) and not zone:
            kind = "timestamptz"
        if _NANOSECONDS.fullmatch(text) and not digits:
            digits = f"({_FRACTION_DIGITS})"
        return f"{kind}{digits}{zone}"

    before, after = (_PARTS.sub(named, found[part] or "") for part in ("before", "after"))
    if _IN_NANOSECONDS.search(before + after) and not _is_reached(text):
        return _cast(text, *(_IN_NANOSECONDS.sub("", part) for part in (before, after)))
    return f"{before}{text}{after}"


def _is_reached(text: str) -> bool:
    nanoseconds = nanoseconds_of(text[1:-1], with_offset=True)
    return nanoseconds is not None and _FIRST <= nanoseconds <= _LAST


def _cast(text: str, before: str, after: str) -> str:
    """Return a literal in microseconds whose text polars keeps, as it does where a cast is cast."""
    iso = _ISO.fullmatch(text[1:-1])
    if before and iso is None:
        # polars says what is wrong with it.
        return f"{before}{text}{after}"
    if iso is not None and iso["offset"] and not _MOMENT.search(before or after):
        # A wall clock of UTC, which is read without a zone only.
        text = f"{text[: -len(iso['offset']) - 1]}'"
    kept = f"cast({text} as varchar)"
    return f"cast({kept} as {before}){after}" if before else f"{kept}{after}"
