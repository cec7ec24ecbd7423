"""Commit times of a base file that are those of a service are found by bounds, then by rows."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tidegate.physical import open_rows
from tidegate.source.hudi.slices.commit_times import rewriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.physical import PhysicalRows

TIME = "_hoodie_commit_time"


def parquet(times: Sequence[str | None], name: str = TIME, *, bounds: bool = True) -> PhysicalRows:
    file = io.BytesIO()
    table = pa.table({name: pa.array(times, pa.string())})
    pq.write_table(table, file, row_group_size=2, write_statistics=bounds)
    return open_rows(pa.BufferReader(file.getvalue()), "parquet")


@pytest.mark.parametrize("bounds", [True, False], ids=["bounds", "no bounds"])
@pytest.mark.parametrize(
    ("times", "found"),
    [
        pytest.param(["1", "2", "2", "3"], "2", id="between"),
        pytest.param(["1", "1", "2"], "2", id="largest"),
        pytest.param(["2", "3"], "2", id="smallest"),
        pytest.param(["1", "3"], None, id="only within the bounds"),
        pytest.param(["3", "4"], None, id="before"),
        pytest.param(["0", "1"], None, id="after"),
        pytest.param([None, "2"], "2", id="beside NULL"),
        pytest.param([], None, id="no rows"),
    ],
)
def test_service_is_found_among_the_commit_times(
    times: list[str | None], found: str | None, bounds: bool
) -> None:
    assert rewriter(parquet(times, bounds=bounds), {"2"}) == found


def test_file_without_commit_times_or_services_tells_none() -> None:
    assert rewriter(parquet(["2"], "k"), {"2"}) is None
    assert rewriter(parquet(["2"]), ()) is None


def test_file_of_another_format_is_read() -> None:
    file = io.BytesIO()
    orc.write_table(pa.table({TIME: ["1", "2"]}), file)

    assert rewriter(open_rows(pa.BufferReader(file.getvalue()), "orc"), {"2"}) == "2"
