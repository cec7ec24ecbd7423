"""Addresses are joined, cut and compared like paths."""

from __future__ import annotations

import pytest

from tidegate.storage.addresses import above, is_object, named, normal


def test_address_is_split_into_bucket_and_key() -> None:
    assert named("s3://lake/a/b") == ("lake", "a/b")
    assert named("s3://lake") == ("lake", "")
    assert is_object("s3://lake")
    assert not is_object("/lake")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://lake/a/../.b", "s3://lake/.b"),
        ("s3://lake/a/../../..", "s3://lake"),
        ("s3://lake/a/", "s3://lake/a"),
        ("/a/../b", "/b"),
    ],
)
def test_way_up_stays_in_the_bucket(path: str, expected: str) -> None:
    assert normal(path) == expected


def test_directories_above_end_at_the_bucket_or_the_root() -> None:
    assert above("s3://lake/a/b") == ("s3://lake/a", "s3://lake")
    assert above("s3://lake") == ()
    assert above("/a/b") == ("/a", "/")
