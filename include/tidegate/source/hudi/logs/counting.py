"""Decide which blocks of a slice's logs count, and in which order (HUDI-M2, M3). Reads nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidegate.source.hudi.logs.blocks import BlockType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tidegate.source.hudi.logs.blocks import Block

_RECORDS = frozenset({BlockType.AVRO, BlockType.PARQUET, BlockType.HFILE, BlockType.DELETE})


class Gate(Protocol):
    """Tells which instants' blocks count."""

    def admits(self, instant: str) -> bool:
        """Return whether the blocks of an instant count: it is done, and visible (HUDI-M2)."""
        ...


@dataclass(frozen=True)
class Counted:
    """The blocks that count."""

    blocks: tuple[Block, ...] = ()
    """In the order in which their records are merged."""
    corrupt: Mapping[str, int] = field(default_factory=dict)
    """Log file → its spans that are no blocks (HUDI-L2)."""


def counted_blocks(
    blocks: Iterable[Block],
    gate: Gate,
    exact: Collection[str] | None = None,
    *,
    originals: bool = False,
) -> Counted:
    """Return the blocks whose records are merged.

    A rollback takes back the blocks of its target that come before it, by any distance (HUDI-M4).

    Args:
        blocks: of all logs of a slice, in the order of files and places.
        gate: tells which instants are visible.
        exact: if given, only blocks of these instants count, except for rollbacks; blocks of a log
            compaction then do not (HUDI-M5).
        originals: whether the blocks that a log compaction stands for are preferred to its own,
            which have lost their instants, if all of them are still there.
    """
    by_instant: dict[str, list[Block]] = {}
    corrupt: Counter[str] = Counter()
    for block in blocks:
        if block.type is BlockType.CORRUPT:
            corrupt[block.path] += 1
        elif block.is_rollback:
            by_instant.pop(block.target, None)
        elif (
            block.type in _RECORDS
            and gate.admits(block.instant)
            and (exact is None or block.instant in exact)
        ):
            by_instant.setdefault(block.instant, []).append(block)
    if originals:
        there = frozenset(by_instant)
        for instant in [it for it, found in by_instant.items() if found[0].compacted]:
            # What it stands for may be such a block itself, which then goes, too.
            if there.issuperset(by_instant[instant][0].compacted):
                del by_instant[instant]
    order = _placed(by_instant)
    return Counted(tuple(block for instant in order for block in by_instant[instant]), corrupt)


def _placed(by_instant: dict[str, list[Block]]) -> Sequence[str]:
    """Put each log compaction where the newest block stood that it stands for (HUDI-M3)."""
    stands_for = {
        original: instant
        for instant, blocks in by_instant.items()
        for original in _originals(instant, blocks)
    }
    newest_first: list[str] = []
    for instant in reversed(by_instant):
        own = _originals(instant, by_instant[instant])
        if instant not in stands_for and any(it in by_instant for it in own):
            # It comes where the newest of its originals is.
            continue
        outermost = instant
        while outermost in stands_for:
            outermost = stands_for[outermost]
        if outermost not in newest_first:
            newest_first.append(outermost)
    return newest_first[::-1]


def _originals(instant: str, blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return what a log compaction stands for: only older instants, so that there is no circle."""
    return tuple(it for it in blocks[0].compacted if it < instant)
