"""Tell whether two runs left the same state, so that it has to be settled only once.

What differs from run to run and decides nothing is left out: random names, how long something took,
and when something happened; of times only their order counts.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from race.world import World

_TIME = re.compile(rb"2026-(?:0[6-9]|1\d)-\d\d[T ][\d:.]+(?:Z|\+00:00)?")
_RANDOM = re.compile(rb"\bw\d+\.[0-9a-f]{8}\b|\"(?:plan|stage)\":\s*[\d.e-]+")


def fingerprint(world: World) -> str:
    """Name the state of ledger, work directory and target."""
    content = b"\n".join([*world.ledger_rows(), *_files(world.root / "published")])
    content = _RANDOM.sub(b"", content)
    times = sorted({_plain(found) for found in _TIME.findall(content)})
    ranks = {time: b"t%d" % rank for rank, time in enumerate(times)}
    return hashlib.sha256(_TIME.sub(lambda found: ranks[_plain(found[0])], content)).hexdigest()


def _plain(time: bytes) -> bytes:
    return time.replace(b"T", b" ")[:19]


def _files(root: Path) -> list[bytes]:
    """Give names, and what stands in those that are not named after their content."""
    found = []
    for path in sorted(root.rglob("*")):
        is_text = path.suffix in {".json", ".jsonl"} or path.name == "_SUCCESS"
        found.append(bytes(path) + (path.read_bytes() if is_text else b""))
    return found
