"""What readers of a table are promised at any moment, by its markers and by listing it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tidegate.model.revision_folder import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Callable


def broken_promise(published: Path) -> str:
    """Say what a reader of a table would find wrong; empty if every marker keeps its word.

    A marker lists the files of its partition: each is there with the bytes that it had, and whoever
    lists the directory instead finds no other.
    """
    for path in sorted(published.rglob("_SUCCESS")):
        listed = json.loads(path.read_bytes())["files"]
        for file in listed:
            broken = _broken_file(path.parent / file["name"], file)
            if broken:
                return f"{path.parent.name} lists {file['name']}{broken}"
        more = {item.name for item in visible_files(path.parent)} - {
            file["name"] for file in listed
        }
        if more:
            return f"{path.parent.name} does not list {sorted(more)}, and a reader sees it"
    return ""


def _broken_file(content: Path, file: dict[str, Any]) -> str:
    if not content.exists():
        return ", which is not there"
    whole = content.read_bytes()
    if (len(whole), hashlib.sha256(whole).hexdigest()) != (file["length"], file["sha256"]):
        return " with other bytes"
    if pq.read_metadata(content).num_rows != file["rows"]:
        return " with other rows"
    return ""


def visible_files(folder: str | Path) -> list[Path]:
    """List what an engine reads of one directory: all files but those that are hidden."""
    found = sorted(Path(folder).iterdir())
    return [item for item in found if item.is_file() and _is_visible(item)]


def visible_below(root: Path) -> list[Path]:
    """List what an engine reads of a whole table."""
    return [item for item in sorted(root.rglob("*")) if item.is_file() and _is_visible(item)]


def _is_visible(path: Path) -> bool:
    return not path.name.startswith((".", "_"))


def answer_questions(
    published: Path, asks: int, answers: int, more: Callable[[], str] = str
) -> None:
    """Check all markers once for each byte that comes in.

    Answer with what is wrong, and a line's end. A revision that has a directory of its own stands
    for good, for whoever was sent there. `more` looks at what else is promised.
    """
    stood: set[Path] = set()
    while os.read(asks, 1):
        gone = [path for path in stood if not path.exists()]
        broken = f"{gone[0]} was retracted" if gone else broken_promise(published) or more()
        stood.update(published.rglob(f"{REVISIONS}/*/_SUCCESS"))
        os.write(answers, f"{broken}\n".encode())
