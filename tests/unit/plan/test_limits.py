"""A window ends where a limit says, between instants, and windows after each other take all."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import LimitsConfig
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.volume import Volume
from tidegate.plan.limits import limit_cut, limited, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


START = datetime(2026, 2, 1, tzinfo=UTC)

sizes = st.integers(0, 20)
volumes = st.lists(st.builds(Volume, sizes, sizes, sizes), max_size=12)
limits = st.builds(
    LimitsConfig,
    snapshots=st.none() | st.integers(1, 5),
    files=st.none() | st.integers(1, 30),
    bytes=st.none() | st.integers(1, 30),
    rows=st.none() | st.integers(1, 30),
)


@dataclass
class Commits:
    """A source of commits that bring so much."""

    brought: list[Volume]
    whole: bool = False
    asked: list[Volume] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.instants = [
            Instant(str(number), START + timedelta(hours=number))
            for number in range(1, len(self.brought) + 1)
        ]

    def retained(self) -> Sequence[Instant]:
        return self.instants

    def volumes(
        self, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        return None if self.whole else self._volumes(instants)

    def _volumes(self, instants: Sequence[Instant]) -> Iterator[Volume]:
        for instant in instants:
            self.asked.append(self.brought[int(instant.id) - 1])
            yield self.asked[-1]


def _passes(found: Sequence[Volume], allowed: LimitsConfig) -> bool:
    sums = {
        "snapshots": len(found),
        "files": sum(volume.files for volume in found),
        "bytes": sum(volume.bytes for volume in found),
        "rows": sum(volume.rows for volume in found),
    }
    said: dict[str, Any] = allowed.model_dump(exclude_none=True)
    return any(sums[key] > limit for key, limit in said.items())


@given(volumes, limits)
def test_windows_one_after_the_other_take_every_instant_once_within_the_limits(
    brought: list[Volume], allowed: LimitsConfig
) -> None:
    commits = Commits(brought)
    taken: list[Instant] = []
    start = None

    while len(taken) < len(commits.instants):
        left = commits.instants[len(taken) :]
        everything = InstantRange(start, left[-1])
        found = limited(everything, left, commits.volumes, allowed)
        end = int(found.end_inclusive.id)
        assert found.start_exclusive == start
        assert end > len(taken)
        assert end == len(taken) + 1 or not _passes(brought[len(taken) : end], allowed)
        assert end == len(brought) or _passes(brought[len(taken) : end + 1], allowed)
        taken, start = commits.instants[:end], found.end_inclusive

    assert taken == commits.instants


@given(volumes.filter(bool), limits)
def test_cut_names_the_limit_and_what_is_left(brought: list[Volume], allowed: LimitsConfig) -> None:
    commits = Commits(brought)
    everything = InstantRange(None, commits.instants[-1])
    found = limited(everything, commits.instants, commits.volumes, allowed)

    cut = limit_cut(found, commits.retained, commits.volumes, allowed)

    left = len(brought) - int(found.end_inclusive.id)
    assert (cut.left if cut else 0) == left
    if cut is not None:
        alone = LimitsConfig.model_validate({cut.limit: getattr(allowed, cut.limit)})
        assert _passes(brought[: int(found.end_inclusive.id) + 1], alone)


def test_no_more_is_asked_of_the_source_than_decides() -> None:
    commits = Commits([Volume(1, 1, 1)] * 9)

    limited(
        InstantRange(None, commits.instants[-1]),
        commits.instants,
        commits.volumes,
        LimitsConfig(files=3),
    )

    assert len(commits.asked) == 4


def test_window_that_reads_a_whole_state_is_not_cut() -> None:
    commits = Commits([Volume(9, 9, 9)] * 3, whole=True)
    everything = InstantRange(None, commits.instants[-1])

    found = limited(everything, commits.instants, commits.volumes, LimitsConfig(rows=1))

    assert found == everything
    assert limit_cut(found, commits.retained, commits.volumes, LimitsConfig(rows=1)) is None


@pytest.mark.parametrize(
    ("snapshots", "end"), [(2, 2), (3, 3), (4, 3)], ids=["below", "at", "above the interval's"]
)
def test_limit_beyond_the_interval_does_not_extend_the_window(snapshots: int, end: int) -> None:
    commits = Commits([Volume(1, 1, 1)] * 6)
    interval = InstantRange(None, commits.instants[2])
    allowed = LimitsConfig(snapshots=snapshots)

    found = limited(interval, commits.instants, commits.volumes, allowed)

    assert found == InstantRange(None, commits.instants[end - 1])


def test_window_whose_start_was_rolled_away_is_counted_from_the_first_that_is_left() -> None:
    commits = Commits([Volume(1, 1, 1)] * 5)
    resumed = InstantRange(Instant("99", START), commits.instants[1])

    cut = limit_cut(resumed, commits.retained, commits.volumes, LimitsConfig(snapshots=2))

    assert cut is not None
    assert (cut.limit, cut.left) == ("snapshots", 3)


def test_window_that_ends_by_its_interval_is_not_called_cut() -> None:
    commits = Commits([Volume(1, 1, 1)] * 5)
    taken = InstantRange(None, commits.instants[1])

    assert limit_cut(taken, commits.retained, commits.volumes, LimitsConfig(snapshots=3)) is None


def test_window_whose_end_was_rolled_away_is_not_called_cut() -> None:
    commits = Commits([Volume(1, 1, 1)] * 2)
    gone = InstantRange(None, Instant("99", START))

    assert limit_cut(gone, commits.retained, commits.volumes, LimitsConfig(snapshots=1)) is None


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ({"snapshots": 2}, (2, "snapshots")),
        ({"files": 10}, (2, "files")),
        ({"files": 9}, (1, "files")),
        ({"bytes": "1000B"}, (1, "bytes")),
        ({"rows": 1}, (1, "rows")),
        ({"rows": 7, "files": 100}, (3, None)),
        ({}, (3, None)),
    ],
    ids=str,
)
def test_limit_holds_exactly_up_to_its_number(
    allowed: dict[str, Any], expected: tuple[int, str | None]
) -> None:
    brought = [Volume(5, 1000, 2), Volume(5, 1, 2), Volume(1, 1, 3)]

    assert within(brought, LimitsConfig.model_validate(allowed)) == expected
