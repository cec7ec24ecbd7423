"""Paths and partitions are the same exactly where the rules say so."""

from __future__ import annotations

import math
import struct
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.source.iceberg.manifests.matching import (
    partition_key,
    path_key,
    path_origin,
    rival_paths,
)

ORIGINS = ("", "file:", "file://", "s3://lake", "s3a://lake", "hdfs://name:8020")
# Behind `file:` two slashes begin an authority, so paths begin with one.
PATHS = st.text("ab/:=. %", max_size=8).map(lambda text: f"/a{text}")
NANS = (math.nan, -math.nan, struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0])
VALUES = (None, 0, 1, -1, 0.0, -0.0, 1.5, math.inf, *NANS, "", "a")


@given(one=st.sampled_from(ORIGINS), other=st.sampled_from(ORIGINS), path=PATHS)
def test_path_of_a_moved_table_keeps_its_key(one: str, other: str, path: str) -> None:
    """ICE-4.14."""
    assert path_key(f"{one}{path}") == path_key(f"{other}{path}") == path
    assert path_origin(f"{one}{path}") == one


@pytest.mark.parametrize("path", ["/data/a:b/c.parquet", "/x=1:/y", "data/one"])
def test_colon_inside_a_path_is_no_scheme(path: str) -> None:
    assert path_key(path) == path


@given(st.lists(st.builds(lambda a, b: f"{a}{b}", st.sampled_from(ORIGINS), PATHS), max_size=8))
def test_rivals_are_the_others_with_the_same_key(paths: list[str]) -> None:
    """ICE-4.15."""
    found = rival_paths(paths)

    expected = {
        path: {other for other in paths if other != path and path_key(other) == path_key(path)}
        for path in paths
    }
    assert {path: set(others) for path, others in found.items()} == {
        path: others for path, others in expected.items() if others
    }


@pytest.mark.parametrize("length", [0, 1, 2])
def test_partitions_are_one_if_spec_and_all_values_are(length: int) -> None:
    """ICE-4.4: floats by bits, every NaN as one."""
    partitions = list(product((0, 1), product(VALUES, repeat=length)))

    for one, other in product(partitions, repeat=2):
        # The words for floats tell zeros apart and know one NaN.
        assert (partition_key(*one) == partition_key(*other)) == (repr(one) == repr(other))
