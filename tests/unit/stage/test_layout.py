"""Paths below a work directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.partition import Partition
from tidegate.stage import layout

ROOT = layout.plan_root("/lake/.tidegate-orders", 7, "0123456789abcdef")
MARCH = Partition((("dt", "2026-03-01"), ("region", "eu")))


def test_plan_root_window_number_keeps_listings_in_order() -> None:
    assert ROOT == "/lake/.tidegate-orders/windows/000007/0123456789abcdef"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (layout.owner_file("/w"), "/w/owner.json"),
        (layout.plan_file(ROOT), f"{ROOT}/plan.json"),
        (layout.splits_file(ROOT), f"{ROOT}/splits.jsonl"),
        (layout.sealed_file(ROOT), f"{ROOT}/sealed.json"),
        (layout.message_file(ROOT, "abc"), f"{ROOT}/messages/abc.json"),
        (
            layout.staged_part("abc", "w1.t0.ff", MARCH, "part-x.zstd.parquet"),
            "staged/abc/w1.t0.ff/dt=2026-03-01/region=eu/part-x.zstd.parquet",
        ),
        (
            layout.quarantined_part("abc", "w1.t0.ff", "positive", "part-x.zstd.parquet"),
            "quarantine/abc/w1.t0.ff/positive/part-x.zstd.parquet",
        ),
        (
            layout.publication_file("/w", MARCH, 2, "ff"),
            "/w/publications/dt=2026-03-01/region=eu/2-ff.json",
        ),
        (layout.publication_file("/w", Partition(()), 1, "ff"), "/w/publications/all/1-ff.json"),
        (layout.default_work("/lake/published/orders/"), "/lake/published/.tidegate-orders"),
    ],
)
def test_paths_each_kind_stands_where_the_design_says(path: str, expected: str) -> None:
    assert path == expected


@given(st.text(alphabet="0123456789abcdef", min_size=12, max_size=12))
def test_message_file_any_sub_split_is_read_back(sub_split: str) -> None:
    assert layout.sub_split_of_message(layout.message_file(ROOT, sub_split)) == sub_split
