"""Types of Hive: which holds the values of which, at any depth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.metastore.hive_types import holds, quoted, wider

PLAIN = st.sampled_from(
    ["boolean", "tinyint", "int", "bigint", "float", "double", "string", "binary", "date",
     "timestamp", "decimal(10,2)", "decimal(38,0)"]
)  # fmt: skip
TYPES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        inner.map("array<{}>".format),
        st.tuples(PLAIN, inner).map(lambda pair: "map<{},{}>".format(*pair)),
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1).map(
            lambda fields: f"struct<{','.join(map(':'.join, fields.items()))}>"
        ),
    ),
    max_leaves=6,
)


@given(TYPES)
def test_type_holds_itself(kind: str) -> None:
    assert wider(kind, kind) == kind
    assert holds(kind, kind)


@given(TYPES, TYPES)
def test_wider_type_holds_both_and_either_is_found_from_either_side(one: str, other: str) -> None:
    both, again = wider(one, other), wider(other, one)

    assert (both is None) == (again is None)
    if both is not None and again is not None:
        assert all(holds(both, kind) for kind in (one, other))
        assert holds(both, again)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "smallint", "bigint"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
        ("decimal(38,0)", "decimal(38,1)", None),
        ("int", "string", None),
        ("int", "double", None),
        ("struct<a:int>", "struct<b:string,a:bigint>", "struct<a:bigint,b:string>"),
        ("struct<a:int>", "struct<a:string>", None),
        ("array<struct<a:int>>", "array<struct<b:int>>", "array<struct<a:int,b:int>>"),
        ("map<string,int>", "map<string,bigint>", "map<string,bigint>"),
        ("map<string,int>", "array<string>", None),
        ("struct<a:decimal(10,2),b:int>", "struct<b:bigint>", "struct<a:decimal(10,2),b:bigint>"),
    ],
)
def test_what_holds_both(one: str, other: str, expected: str | None) -> None:
    assert wider(one, other) == expected


@pytest.mark.parametrize(
    ("listed", "found", "expected"),
    [
        ("VARCHAR(20)", "string", True),
        ("char(3)", "string", True),
        ("timestamp with local time zone", "timestamp", True),
        ("decimal(12, 2)", "decimal(10,2)", True),
        ("decimal(10,2)", "decimal(12,2)", False),
        ("int", "bigint", False),
        ("bigint", "int", True),
        ("struct<a:int,b:int>", "struct<a:int>", True),
        ("struct<a:int>", "struct<a:int,b:int>", False),
        ("struct<x y:int>", "struct<xy:int>", False),
        ("struct<a:decimal(12, 2)>", "struct<a:decimal(10,2)>", True),
    ],
)
def test_listed_type_holds_what_the_files_have(listed: str, found: str, expected: bool) -> None:
    assert holds(listed, found) is expected


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("bigint", "bigint"),
        ("decimal(5,2)", "decimal(5,2)"),
        ("array<map<string,decimal(5,2)>>", "array<map<string,decimal(5,2)>>"),
        ("struct<a b:int,c`d:array<struct<E:date>>>",
         "struct<`a b`:int,`c``d`:array<struct<`E`:date>>>"),
    ],
)  # fmt: skip
def test_names_of_fields_are_quoted_at_any_depth(kind: str, said: str) -> None:
    assert quoted(kind) == said
