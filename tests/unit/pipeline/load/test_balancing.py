"""Sums of changes and states are accepted only where nothing is left of any commit."""

from __future__ import annotations

import pytest

from tidegate.errors import ChangelogInconsistent
from tidegate.model.bag_sum import BagSum
from tidegate.pipeline.load.balancing import check_balance


@pytest.mark.parametrize(
    ("parts", "rows"),
    [
        ([{"1": BagSum(2, 5)}, {"1": BagSum(-1, 2**64 - 5)}], 1),
        ([{"1": BagSum(0, 5)}], 0),
        ([{"1": BagSum(-3, 5)}, {"2": BagSum()}], -3),
    ],
)
def test_sums_that_leave_something_are_refused(parts: list[dict[str, BagSum]], rows: int) -> None:
    with pytest.raises(ChangelogInconsistent) as refused:
        check_balance("lake.orders", parts)

    assert refused.value.values == {"source": "lake.orders", "snapshot": "1", "rows": rows}


def test_sums_that_cancel_in_any_parts_are_accepted() -> None:
    whole = BagSum(3, 7)

    check_balance("lake.orders", [{"1": whole}, {}, {"1": BagSum().minus(whole), "2": BagSum()}])
