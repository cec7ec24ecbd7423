"""A scratch storage answers as if it had written, and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.storage import LocalStorage, Scratch

if TYPE_CHECKING:
    from pathlib import Path


def test_scratch_reads_what_it_wrote_and_leaves_the_disk_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    scratch = Scratch()

    written = scratch.write_once(f"{tmp_path}/below/new", b"new")

    assert written
    assert not scratch.write_once(f"{tmp_path}/kept", b"other")
    assert scratch.read_bytes(f"{tmp_path}/below/new") == b"new"
    assert scratch.list_files(str(tmp_path)) == ["below/new", "kept"]
    assert LocalStorage().list_files(str(tmp_path)) == ["kept"]
