"""Files are grouped into the newest slice of each group, in one state of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.source.hudi.slices.file_groups import Slice, latest_slices
from tidegate.source.hudi.slices.names import BaseFile, LogFile, parse_name

ONE, TWO, THREE, FOUR = (f"2026010100000000{number}" for number in (1, 2, 3, 4))


@dataclass
class Done:
    """A state with done instants, some of them with completion times."""

    instants: set[str]
    times: dict[str, str] = field(default_factory=dict)

    def is_visible(self, requested: str) -> bool:
        return requested in self.instants

    def completed(self, requested: str) -> str:
        return self.times.get(requested, requested)


def base(instant: str, token: str = "0-1-1") -> str:
    return f"g_{token}_{instant}.parquet"


def log(instant: str, version: int = 1) -> str:
    return f".g_{instant}.log.{version}_0-1-1"


def slices(version: int, state: Done, *names: str, named: str = "") -> list[Slice]:
    files = [parse_name(name, 1) for name in names]
    found = [file for file in files if isinstance(file, (BaseFile, LogFile))]
    groups = {"g": found}
    return list(latest_slices("", groups, state, version, lambda file: file.path == named))


def paths(found: list[Slice]) -> list[tuple[str | None, list[str]]]:
    return [(it.base.path if it.base else None, [log.path for log in it.logs]) for it in found]


def test_newest_visible_base_file_has_the_logs_since_then() -> None:
    state = Done({ONE, TWO, THREE}, {TWO: TWO})

    found = slices(9, state, base(ONE), base(THREE), log(TWO), log(FOUR))

    assert paths(found) == [(base(THREE), [])]
    assert [it.path for it in found[0].history] == [log(TWO), log(FOUR)]


def test_log_belongs_to_the_slice_at_its_completion() -> None:
    state = Done({ONE, TWO, THREE}, {TWO: FOUR})

    assert paths(slices(9, state, base(ONE), base(THREE), log(TWO))) == [(base(THREE), [log(TWO)])]


def test_log_that_was_done_when_the_base_file_was_requested_belongs_to_it() -> None:
    state = Done({ONE, TWO, THREE}, {TWO: THREE})

    assert paths(slices(9, state, base(ONE), base(THREE), log(TWO))) == [(base(THREE), [log(TWO)])]


def test_log_of_an_old_table_belongs_to_the_base_file_in_its_name() -> None:
    state = Done({ONE, TWO, THREE})

    found = slices(6, state, base(ONE), base(THREE), log(ONE), log(ONE, 2), log(THREE))

    assert paths(found) == [(base(THREE), [log(THREE)])]


def test_logs_of_a_pending_compaction_lie_over_the_slice_before_it() -> None:
    state = Done({ONE, TWO})

    found = slices(6, state, base(ONE), log(ONE), log(THREE))

    assert paths(found) == [(base(ONE), [log(ONE), log(THREE)])]


def test_group_of_logs_only_is_a_slice() -> None:
    state = Done({ONE, TWO})

    assert paths(slices(9, state, log(TWO), log(ONE))) == [(None, [log(ONE), log(TWO)])]
    assert paths(slices(6, Done(set()), log(ONE))) == [(None, [log(ONE)])]


def test_files_of_writes_that_are_not_done_are_not_there() -> None:
    state = Done({ONE})

    assert paths(slices(9, state, base(ONE), base(TWO), log(TWO))) == [(base(ONE), [])]
    assert slices(9, Done(set()), base(ONE)) == []


def test_file_of_two_attempts_is_the_one_that_the_commit_names() -> None:
    one, other = base(ONE, "0-1-1"), base(ONE, "0-2-9")

    assert paths(slices(9, Done({ONE}), one, other, named=one)) == [(one, [])]
    assert paths(slices(9, Done({ONE}), one, other)) == [(other, [])]


def test_logs_of_changes_are_no_data() -> None:
    assert paths(slices(9, Done({ONE}), base(ONE), f"{log(ONE)}.cdc")) == [(base(ONE), [])]
