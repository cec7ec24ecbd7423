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
        (layout.attempt_staged("abc", "w1.t0.ff"), "staged/abc/w1.t0.ff"),
        (layout.attempt_quarantine("abc", "w1.t0.ff"), "quarantine/abc/w1.t0.ff"),
        (
            layout.publication_file("/w", MARCH, 2, "ff"),
            "/w/publications/dt=2026-03-01/region=eu/2-ff.json",
        ),
        (layout.publication_file("/w", Partition(()), 1, "ff"), "/w/publications/all/1-ff.json"),
    ],
)
def test_paths_each_kind_stands_where_the_design_says(path: str, expected: str) -> None:
    assert path == expected


@given(st.text(alphabet="0123456789abcdef", min_size=12, max_size=12))
def test_message_file_any_sub_split_is_read_back(sub_split: str) -> None:
    assert layout.sub_split_of_message(layout.message_file(ROOT, sub_split)) == sub_split


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (layout.publication_file("/w-1", MARCH, 2, "00000000000000ff-7"), (2, 7)),
        (layout.gate_file("/w-1", MARCH, 12, "00000000000000ff-7"), (12, 7)),
        (layout.decision_file("/w-1", MARCH, 2, "00000000000000ff-1048576"), (2, 1048576)),
        (layout.publication_file("/w-1", MARCH, 2, "1234567890123456"), (2, 0)),
    ],
    ids=["plan", "verdict", "decision", "before there were numbers"],
)
def test_record_tells_revision_and_number_by_its_name(path: str, expected: tuple[int, int]) -> None:
    assert layout.order_of_record(path) == expected


def test_commit_plan_is_told_from_verdict_and_decision_by_its_name() -> None:
    writers = layout.publication_file, layout.gate_file, layout.decision_file
    names = [write("/w", Partition((("dt", "1"),)), 1, "ff-3") for write in writers]

    assert [layout.is_commit_plan(name) for name in names] == [True, False, False]


@given(
    st.text(alphabet="0123456789abcdef", min_size=12, max_size=16),
    st.text(alphabet="0123456789abcdef", min_size=12, max_size=12),
    st.integers(0, 10**6),
)
def test_part_file_is_known_by_its_name(digest: str, sub_split: str, counter: int) -> None:
    name = layout.part_name(digest, sub_split, counter)

    assert layout.is_part_file(f"dt=1/{name}")
    assert not layout.is_part_file(f"dt=1/.{name}")
    assert not layout.is_part_file(f"dt=1/{name}.crc")


@pytest.mark.parametrize("name", ["part-00000-8b1c.c000.snappy.parquet", "part-1.parquet", "x"])
def test_part_file_of_another_writer_is_none_of_ours(name: str) -> None:
    assert not layout.is_part_file(name)


@pytest.mark.parametrize("work", ["/lake/published/.tidegate-orders", "s3://lake/.tidegate-orders"])
def test_work_directory_of_a_plan_is_found_on_a_disk_and_in_a_store(work: str) -> None:
    assert layout.work_of_plan(layout.plan_root(work, 7, "abc")) == work
