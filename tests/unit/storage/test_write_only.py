"""Files that are only written say so to those who write them."""

from __future__ import annotations

from tidegate.storage.write_only import WriteOnly


def test_file_is_written_from_its_beginning_and_nothing_else() -> None:
    file = WriteOnly()

    file.flush()

    assert (file.writable(), file.readable(), file.seekable()) == (True, False, False)
