"""Manifests are left out only where none of their files can matter."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.source.iceberg.manifests.lists import common, first, relevant, without

_NAMES = count()


@dataclass(frozen=True)
class Listed:
    """What a manifest list says of a manifest, as far as it is asked."""

    manifest_path: str
    sequence_number: int | None
    min_sequence_number: int | None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None


@st.composite
def manifests(draw: st.DrawFn) -> Listed:
    """Draw a manifest; its oldest file is no younger than itself."""
    written = draw(st.integers(0, 6))
    counts = st.none() | st.integers(0, 5)
    return Listed(
        f"m{next(_NAMES)}", written, draw(st.integers(0, written)), draw(counts), draw(counts)
    )


LISTS: Any = st.lists(manifests(), max_size=6)


@given(one=LISTS, shared=LISTS, other=LISTS)
def test_two_lists_are_parted_by_path(one: Any, shared: Any, other: Any) -> None:
    mine, others = [*one, *shared], [*shared, *other]

    assert without(mine, others) == one
    assert common(mine, others) == shared


@given(found=LISTS, rows=st.integers(1, 20))
def test_first_manifests_have_the_rows_that_are_asked_for_if_counts_tell(
    found: list[Any], rows: int
) -> None:
    chosen = first(found, rows)

    assert {it.manifest_path for it in chosen} <= {it.manifest_path for it in found}
    enough = sum(_rows(it) for it in found) >= rows
    assert (sum(_rows(it) for it in chosen) >= rows) == enough
    if not enough:
        assert len(chosen) == len(found)


@given(found=LISTS, rows=st.integers(1, 20))
def test_first_manifests_are_the_oldest_and_no_more_than_needed(
    found: list[Any], rows: int
) -> None:
    chosen = first(found, rows)

    left = [it for it in found if it not in chosen]
    youngest = max((it.min_sequence_number for it in chosen), default=0)
    assert all(it.min_sequence_number >= youngest for it in left)
    if left:
        assert sum(_rows(it) for it in chosen[:-1]) < rows


@given(deletes=LISTS, rows=LISTS)
def test_delete_manifest_that_is_left_out_is_older_than_every_data_file(
    deletes: list[Any], rows: list[Any]
) -> None:
    """A delete applies to files as old as itself or older (ICE-4.6, 4.7)."""
    kept = relevant(deletes, rows)

    reachable = [
        delete
        for delete in deletes
        if any(delete.sequence_number >= it.min_sequence_number for it in rows)
    ]
    assert kept == reachable


def test_manifest_without_sequence_numbers_counts_as_the_oldest() -> None:
    v1 = Listed("v1", None, None)

    assert relevant([Listed("delete", 1, 1)], [v1]) == [Listed("delete", 1, 1)]


def _rows(found: Any) -> int:
    return (found.added_rows_count or 0) + (found.existing_rows_count or 0)
