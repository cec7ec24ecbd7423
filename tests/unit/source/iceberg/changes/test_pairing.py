"""Files of two states are matched by path and age, whichever manifests list them."""

from __future__ import annotations

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from iceberg_states import entry_of
from tidegate.source.iceberg.changes.pairing import Pairs, only_on_one_side
from tidegate.source.iceberg.deletes.entries import FoundDelete, found_delete
from tidegate.source.iceberg.deletes.rules import DeleteRules
from tidegate.source.iceberg.manifests.entries import Content, Entry

RULES = DeleteRules("lake.orders", frozenset({0}), {}, {}, exact_paths=False)
FILES = [entry_of(path=path, sequence_number=sequence) for path, sequence in product("abc", (1, 2))]
SIDES = st.lists(st.sampled_from(FILES), max_size=6)


def _bag(entries: list[Entry]) -> Counter[tuple[str, int]]:
    return Counter((entry.path, entry.sequence_number) for entry in entries)


@given(removed=SIDES, added=SIDES, touched=SIDES)
def test_two_states_differ_by_what_only_one_of_them_has(
    removed: list[Entry], added: list[Entry], touched: list[Entry]
) -> None:
    """A file that was removed and added again has another age: other deletes apply to it."""
    pairs = Pairs(removed, added, touched)

    assert _bag(pairs.removed) == _bag(removed) - _bag(added)
    assert _bag(pairs.added) == _bag(added) - _bag(removed)
    assert _bag(pairs.kept) == (_bag(removed) & _bag(added)) + _bag(touched)


@given(removed=SIDES, added=SIDES, touched=SIDES)
def test_each_state_has_all_its_files(
    removed: list[Entry], added: list[Entry], touched: list[Entry]
) -> None:
    pairs = Pairs(removed, added, touched)

    assert _bag(pairs.old) == _bag(pairs.removed) + _bag(pairs.kept)
    assert _bag(pairs.new) == _bag(pairs.added) + _bag(pairs.kept)


def _vector(offset: int, sequence: int = 2, region: str = "eu") -> FoundDelete:
    entry = entry_of(
        content=Content.POSITION_DELETES,
        path="vectors.puffin",
        file_format="puffin",
        referenced="s3://lake/data/a",
        content_offset=offset,
        content_size=10,
        sequence_number=sequence,
        spec_id=1,
        partition=(region,),
    )
    return found_delete(entry, RULES)


def test_delete_that_a_rewritten_manifest_lists_again_is_on_both_sides() -> None:
    assert only_on_one_side([_vector(4)], [_vector(4)]) == ([], [])


def test_vectors_of_one_file_are_told_apart_by_offset_age_and_partition() -> None:
    """ICE-3.10."""
    old = [_vector(4), _vector(8), _vector(4, 3), _vector(4, 2, "us")]

    for gone in range(4):
        new = [found for place, found in enumerate(old) if place != gone]
        assert only_on_one_side(old, new) == ([old[gone]], [])
        assert only_on_one_side(new, old) == ([], [old[gone]])
