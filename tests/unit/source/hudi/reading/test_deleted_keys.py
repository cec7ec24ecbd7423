"""A key is gone if no row and no record has it, whatever was met before (HUDI-R6)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.keyed_merge import KeyedRecords
from tidegate.source.hudi.reading.deleted_keys import DeletedKeys, Gone, told_by

NAMES = st.sampled_from("abcdefgh")
TIMES = st.sampled_from(["20260101", "20260102", "20260103"])


def records(found: list[tuple[str, str, bool, bool]]) -> KeyedRecords:
    """Records of (key, time, is deleted, is of the window)."""
    keys, times, deleted, marked = zip(*found, strict=True) if found else ((), (), (), ())
    return KeyedRecords(
        rows=pa.table({"_hoodie_commit_time": pa.array(times, pa.string())}),
        keys=pa.array(keys, pa.string()),
        deleted=np.array(deleted, np.bool_),
        marked=np.array(marked, np.bool_),
    )


def pairs(found: Gone) -> list[tuple[str, str]]:
    return sorted(zip(found.keys.to_pylist(), found.times.to_pylist(), strict=True))


@given(
    found=st.lists(st.tuples(NAMES, TIMES)),
    of_logs=st.sets(NAMES),
    met=st.lists(st.lists(NAMES)),
)
def test_keys_that_nothing_has_are_gone_since_the_last_time(
    found: list[tuple[str, str]], of_logs: set[str], met: list[list[str]]
) -> None:
    names = pa.array([name for name, _ in found], pa.string())
    times = pa.array([time for _, time in found], pa.string())
    in_logs = records([(key, "20260109", True, True) for key in sorted(of_logs)])
    keys = DeletedKeys(Gone(names, times), in_logs)

    for batch in met:
        keys.meet(pa.array(batch, pa.string()))

    standing = of_logs.union(*met)
    newest = {name: max(time for it, time in found if it == name) for name, _ in found}
    assert pairs(keys.rest()) == sorted(it for it in newest.items() if it[0] not in standing)


def test_records_tell_of_the_deletes_of_the_window() -> None:
    found = records(
        [
            ("a", "1", True, True),
            ("b", "2", False, True),
            ("c", "3", True, False),
            ("d", "4", True, True),
        ]
    )

    assert pairs(told_by(found)) == [("a", "1"), ("d", "4")]
