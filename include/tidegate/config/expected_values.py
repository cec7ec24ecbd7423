"""Write the values of the partition that begins at a time: the reverse of reading its time.

Made values have the format of `model.partition_value`. Others have the one of
`commit.partition_time`, whose pattern is read backwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.config.time_format import TimeFormat, TimeUnreadable
from tidegate.model.partition import Transform
from tidegate.model.partition_value import INTERVALS, Interval, time_fields, value_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.config.commit import PartitionTimeConfig
    from tidegate.model.partition import PartitionField

_FINEST_LAST = (Transform.MONTH, Transform.DAY, Transform.HOUR)
_PLAIN_FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S")
"""The texts that are read without a formatter."""


class NotWritable(ValueError):
    """The values of an expected partition do not follow from its time."""

    def __init__(self, problem: str, key: str) -> None:
        super().__init__(problem)
        self.key = key
        """The key below `commit` that is in the way."""


@dataclass(frozen=True)
class ExpectedValues:
    """Writes the partition values that are made from a time."""

    keys: tuple[str, ...]
    """The names of the keys that it writes."""
    interval: Interval
    """The length of a partition."""
    forms: tuple[tuple[str, str], ...] = ()
    """Key → `strftime` format, for values made by `day()`, `hour()`, `month()`."""
    pattern: str = ""
    form: TimeFormat = field(default_factory=lambda: TimeFormat.compile(None))

    @classmethod
    def of(
        cls,
        fields: Sequence[PartitionField],
        event_time: str | None,
        said: PartitionTimeConfig | None,
    ) -> ExpectedValues:
        """Build the writer from a pipeline file.

        Raises:
            NotWritable: the length of a partition is not known, or a class reads the time.
        """
        made = time_fields(fields, event_time)
        if made:
            finest = max(made, key=lambda key: _FINEST_LAST.index(key.transform))
            forms = tuple((key.name, value_format(key, fields)) for key in made)
            keys = tuple(key.name for key in made)
            return cls(keys, INTERVALS[finest.transform], forms)
        if said is None or said.interval is None:
            problem = (
                "is required: a calendar needs the length of a partition; or make the keys by "
                "`day()`, `hour()` or `month()`"
            )
            raise NotWritable(problem, "partition_time.interval")
        if said.extractor is not None:
            problem = "cannot be read backwards, as `commit.expected` requires; use a pattern"
            raise NotWritable(problem, "partition_time.class")
        names = [key.name for key in fields]
        pattern = said.pattern or f"${names[0]}"
        found = (key for _, key in _pieces(pattern, names))
        keys = tuple(dict.fromkeys(key for key in found if key))
        return cls(keys, said.interval, (), pattern, TimeFormat.compile(said.formatter))

    def begins(self, local: datetime) -> bool:
        """Return whether a partition may begin at a local time, which its values then name."""
        if self.forms:
            return _floored(local, self.interval) == local
        return self._by_pattern(local) is not None

    def at(self, local: datetime) -> Mapping[str, str]:
        """Return key → value of the partition that begins at a local time.

        Raises:
            ValueError: no value names that time.
        """
        if self.forms:
            return {name: local.strftime(form) for name, form in self.forms}
        found = self._by_pattern(local)
        if found is None:
            msg = f"no partition value names {local}"
            raise ValueError(msg)
        return found

    def _by_pattern(self, local: datetime) -> Mapping[str, str] | None:
        for text in self._texts(local):
            match = self._expression.fullmatch(text)
            if match is None:
                continue
            values = {key: match.group(f"k{index}") for index, key in enumerate(self.keys)}
            try:
                if self.form.read(self._filled(values)) == local:
                    return values
            except TimeUnreadable:
                continue
        return None

    def _texts(self, local: datetime) -> Iterator[str]:
        if self.form.letters is not None:
            yield self.form.write(local)
            return
        for form in _PLAIN_FORMS:
            yield local.strftime(form)

    @property
    def _expression(self) -> re.Pattern[str]:
        """The pattern, read backwards: a value is everything that its neighbours leave."""
        parts: list[str] = []
        seen: set[str] = set()
        for literal, key in _pieces(self.pattern, self.keys):
            parts.append(re.escape(literal))
            if key:
                # Any text is a key, and not every text is the name of a group.
                group = f"k{self.keys.index(key)}"
                parts.append(f"(?P={group})" if key in seen else f"(?P<{group}>.+?)")
                seen.add(key)
        return re.compile("".join(parts))

    def _filled(self, values: Mapping[str, str]) -> str:
        return "".join(
            literal + (values[key] if key else "")
            for literal, key in _pieces(self.pattern, self.keys)
        )


def _pieces(pattern: str, keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cut a pattern into literals, each with the key that follows it; the last has none."""
    names = "|".join(re.escape(name) for name in sorted(keys, key=len, reverse=True))
    *pairs, last = _paired(re.split(rf"\$({names})", pattern))
    yield from pairs
    yield last


def _paired(parts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index in range(0, len(parts), 2):
        yield parts[index], parts[index + 1] if index + 1 < len(parts) else ""


def _floored(local: datetime, interval: Interval) -> datetime:
    """Return the begin of the month, day or hour that a local time lies in."""
    if interval.months:
        return datetime(local.year, local.month, 1)  # noqa: DTZ001 (local)
    if interval.span.days:
        return datetime(local.year, local.month, local.day)  # noqa: DTZ001 (local)
    return local.replace(minute=0, second=0, microsecond=0)
