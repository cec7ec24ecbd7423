"""A marker of Tidegate lists files; one of another engine says that all of them count."""

from __future__ import annotations

import json

import pytest

from tidegate.errors import MarkerInvalid
from tidegate.model.marker import MARKER_FORMAT, MarkedFile, marked_files, read_marker

OURS = {
    "format": MARKER_FORMAT,
    "pipeline": "orders",
    "partition": {},
    "revision": 1,
    "files": [
        {"name": "a", "length": 5, "rows": 1, "sha256": ""},
        {"name": "b", "length": 6, "rows": 2, "sha256": "", "made_of": ["x", "y"]},
    ],
}


def test_marker_lists_files_with_their_lengths() -> None:
    content = json.dumps(OURS).encode()

    assert marked_files("m", content) == {"a": MarkedFile(5), "b": MarkedFile(6, ("x", "y"))}
    assert read_marker("m", content) == OURS


@pytest.mark.parametrize(
    "content",
    [b"", b"  \n", b"done", b'{"creationTime": 1}', b'{"name": "o.a.h/SuccessData/1", "files": 1}'],
    ids=["Spark and Flink", "space", "text", "Paimon", "Hadoop on S3"],
)
def test_marker_of_another_engine_lists_none(content: bytes) -> None:
    assert marked_files("m", content) is None


@pytest.mark.parametrize(
    "content",
    [json.dumps(OURS).encode()[:-5], json.dumps(OURS | {"format": 9}).encode()],
    ids=["cut", "newer"],
)
def test_damaged_marker_is_refused(content: bytes) -> None:
    with pytest.raises(MarkerInvalid):
        marked_files("m", content)
