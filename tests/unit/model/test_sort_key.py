"""Keys of an order are read as they are written."""

from __future__ import annotations

import pytest

from tidegate.model.sort_key import SortKey


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("amount", SortKey("amount")),
        ("-amount", SortKey("amount", descending=True)),
        ("- amount", SortKey("amount", descending=True)),
        ("a-b", SortKey("a-b")),
    ],
)
def test_parse_a_minus_sign_means_the_largest_first(text: str, key: SortKey) -> None:
    assert SortKey.parse(text) == key
    assert SortKey.parse(key.text) == key
