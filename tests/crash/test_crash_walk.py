"""The crash walk (issue: it must survive): die at every change, live again, compare (PC-V30, V31).

Dying after change n and dying before change n + 1 leave the same disk, since nothing is changed
between them; so the usual suite dies before every change, by copies of the disk, and
`make test-all` kills a process on both sides of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

WALKERS = 2


@pytest.fixture
def folder() -> Iterator[Path]:
    # Memory where there is any: the walk forces tens of thousands of files to the disk.
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "crash.walk", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(walkers: list[subprocess.Popen[str]]) -> tuple[list[int], str]:
    texts = [walker.communicate()[0] for walker in walkers]
    return [walker.returncode for walker in walkers], "\n".join(texts)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "kill",
    [
        pytest.param((), id="copied"),
        pytest.param(("--kill", "before"), marks=pytest.mark.slow, id="killed before"),
        pytest.param(("--kill", "after"), marks=pytest.mark.slow, id="killed after"),
    ],
)
def test_death_at_any_change_ends_as_an_undisturbed_life(
    folder: Path, kill: tuple[str, ...]
) -> None:
    walkers = [
        start(folder / str(share), "--share", f"{share}/{WALKERS}", *kill)
        for share in range(WALKERS)
    ]

    codes, text = said(walkers)

    assert codes == [0] * WALKERS, text
    assert text.count("died ") == WALKERS, text


@pytest.mark.timeout(300)
def test_killed_process_leaves_what_was_copied(folder: Path) -> None:
    codes, text = said([start(folder, "--share", "7/80", "--kill", "before")])

    assert codes == [0], text


@pytest.mark.timeout(300)
def test_reader_between_any_two_changes_finds_every_marker_true(folder: Path) -> None:
    codes, text = said([start(folder, "--read-along")])

    assert codes == [0], text


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("arguments", "symptom"),
    [
        (("--mistake", "marker-first", "--read-along"), "which is not there"),
        (
            (
                "--kill",
                "before",
                "--mistake",
                "checkpoint-before-contributions",
                "--named",
                "INSERT INTO contribution",
                "--most",
                "2",
            ),
            "rows: expected",
        ),
        (("--mistake", "message-replaced", "--named", "link", "--most", "8"), "written again: "),
    ],
    ids=["marker first", "checkpoint before contributions", "message replaced"],
)
def test_deliberate_mistake_is_caught(
    folder: Path, arguments: tuple[str, ...], symptom: str
) -> None:
    codes, text = said([start(folder, *arguments)])

    assert codes == [1], text
    assert symptom in text
