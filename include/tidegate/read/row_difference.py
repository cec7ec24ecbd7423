"""Find the rows that only one of two bags has, and pair them by key. Reads no table.

The bags are hashes of rows with the rows' numbers. They lie in buckets on the disk, of which one is
in memory at a time: memory is bounded however many rows there are.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from tidegate.physical.arrays import Integers
    from tidegate.read.whole_rows import WholeHashes

BUCKET_ROWS = 4 << 20
"""The most rows of both bags that are compared at a time, about 100 bytes of memory each."""

_KEY = ("first", "second")
_COLUMNS = (*_KEY, "number")


def buckets_for(rows: int) -> int:
    """Return into how many buckets the rows of two bags are put."""
    return max(1, -(-rows // BUCKET_ROWS))


class HashedRows:
    """One bag of rows, by their hashes.

    Failure: its files are left in the folder, which belongs to whoever made it.
    """

    def __init__(self, folder: Path, buckets: int) -> None:
        """Begin with nothing.

        Args:
            folder: an empty one.
            buckets: the same for both of two bags.
        """
        folder.mkdir()
        self._folder = folder
        self._open = contextlib.ExitStack()
        self._files: list[BinaryIO] = [
            self._open.enter_context(self._path(number).open("wb")) for number in range(buckets)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self._files)

    def add(self, hashes: WholeHashes, numbers: Integers) -> None:
        """Add rows.

        Args:
            hashes: of each row.
            numbers: int64[n], by which each row is found again; greater than all before.
        """
        rows = np.stack([*hashes, numbers.astype(np.int64).view(np.uint64)], axis=1)
        if self.buckets == 1:
            self._files[0].write(rows.tobytes())
            return
        bucket = hashes[0] % np.uint64(self.buckets)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(self.buckets + 1, dtype=np.uint64))
        sorted_rows = rows[order]
        for number, file in enumerate(self._files):
            file.write(sorted_rows[ends[number] : ends[number + 1]].tobytes())

    def bucket(self, number: int) -> pl.DataFrame:
        """Return the rows of one bucket in order: their hashes, and their numbers."""
        self._files[number].flush()
        rows = np.fromfile(self._path(number), np.uint64).reshape(-1, len(_COLUMNS))
        return pl.DataFrame(
            {
                "first": rows[:, 0].copy(),
                "second": rows[:, 1].copy(),
                "number": rows[:, 2].copy().view(np.int64),
            }
        )

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}"


def excess(old: HashedRows, new: HashedRows) -> Iterator[tuple[Integers, Integers]]:
    """Find the rows by which two bags differ: those that the other one does not have as often.

    Of equal rows the first ones are named.

    Yields:
        Per bucket the numbers of the rows that only `old` has, and those that only `new` has.
    """
    for number in range(old.buckets):
        yield _excess(old.bucket(number), new.bucket(number))


def _excess(old: pl.DataFrame, new: pl.DataFrame) -> tuple[Integers, Integers]:
    sides = [
        side.select(*_KEY, pl.lit(sign, pl.Int64).alias("balance"))
        for side, sign in ((old, 1), (new, -1))
    ]
    net = (
        pl.concat(sides).group_by(_KEY).agg(pl.col("balance").sum()).filter(pl.col("balance") != 0)
    )
    return _beyond(old, net, pl.col("balance")), _beyond(new, net, -pl.col("balance"))


def _beyond(side: pl.DataFrame, net: pl.DataFrame, surplus: pl.Expr) -> Integers:
    """Return the numbers of as many of equal rows as one side has more than the other."""
    left = net.select(*_KEY, surplus.alias("surplus")).filter(pl.col("surplus") > 0)
    found = side.join(left, on=_KEY, how="inner").sort("number")
    nth = pl.int_range(pl.len()).over(_KEY)
    numbers: Integers = found.filter(nth < pl.col("surplus"))["number"].to_numpy()
    return numbers


class Pairs:
    """Rows of two bags with the same key, each the only one with it in its bag."""

    def __init__(self, old: HashedRows, new: HashedRows) -> None:
        """Pair the rows of two bags that were hashed by their keys."""
        self.repeated = 0
        """Keys that both bags have, and one of them several times: none of their rows is paired."""
        found = [self._paired(old.bucket(n), new.bucket(n)) for n in range(old.buckets)]
        both = pl.concat(found).sort("number")
        self.old: Integers = both["number"].to_numpy()
        """Ascending numbers of rows of `old`."""
        self.new: Integers = both["number_right"].to_numpy()
        """The number of the row of `new` that has the same key."""

    def _paired(self, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        one, other = (
            side.group_by(_KEY).agg(pl.len().alias("times"), pl.col("number").first())
            for side in (old, new)
        )
        both = one.join(other, on=_KEY, how="inner")
        is_pair = (pl.col("times") == 1) & (pl.col("times_right") == 1)
        pairs = both.filter(is_pair)
        self.repeated += both.height - pairs.height
        return pairs.select("number", "number_right")
