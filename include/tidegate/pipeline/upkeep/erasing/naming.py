"""Turn a condition that a person types into an erasure, and write it down."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import ErasureInvalid, PredicateInvalid
from tidegate.model.erasure import Erasure, Fingerprint
from tidegate.model.wire import pretty
from tidegate.pipeline.state.erasures import erasures, newest_erasure
from tidegate.predicate import Predicate, equalities, named_columns
from tidegate.read.erased_rows import erasable_problem, fingerprints, kind_of
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    import polars as pl
    import pyarrow as pa

    from tidegate.ledger import Ledger
    from tidegate.model.instant import Instant
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage

_MOST = 100_000
"""The most fingerprints of one erasure, which every reader of rows has in memory."""


@dataclass(frozen=True)
class NamedRows:
    """Names the rows that are to be erased by fingerprints of their values.

    Runs on: one process. Called: by a person.
    Failure: nothing is written down before `record`, which does it in one step.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents

    def named(
        self,
        where: str | None,
        by: str,
        now: datetime,
        comment: str = "",
        instead: Sequence[int] = (),
        comes: Callable[[], pa.Schema | None] = lambda: None,
    ) -> Erasure:
        """Return the erasure that a condition describes: a new one, or the one that it was before.

        Args:
            where: such as `customer_id in (17, 18)`; None: only that others are replaced.
            by: who asks.
            now: the clock.
            comment: why.
            instead: numbers of earlier ones whose columns later windows need not have any more.
            comes: returns the columns of the rows that the next load reads; None if that is not
                known. Called if no window has the columns.

        Raises:
            ErasureInvalid: an earlier one does not exist, or the condition does not name values of
                columns in the published files, or in the rows that come.
            StateFileLost: an earlier one is gone that is not named by this one.
        """
        known = erasures(self.storage, self.roots.work, without=instead)
        newest = newest_erasure(self.storage, self.roots.work) or 0
        # The same salt in all of them tells an erasure that was named before.
        salt = known[0].salt if known else os.urandom(16).hex()
        missing = sorted({*instead} - {*range(1, newest + 1)})
        if missing:
            problem = f"no erasure {missing[0]}; there are {newest or 'none'}"
            raise ErasureInvalid(where=where or "", problem=problem)
        if where is not None:
            columns, since = self._values(where, comes)
        else:
            columns, since = {}, self._checkpoint()
        rows = _combined(where or "", columns, salt)
        kinds = tuple(kind_of(values.type) for values in columns.values())
        said = (tuple(columns), kinds, salt, rows)
        made = Erasure(newest + 1, *said, by, now, comment, since, tuple(instead) or None)
        over = {number for item in known for number in item.instead or ()}
        lasting = (item for item in known if item.number not in over)
        return next((item for item in lasting if _said(item) == _said(made)), made)

    def _checkpoint(self) -> Instant:
        """Return the instant after which rows come that are to be read without an erasure.

        Raises:
            ErasureInvalid: rows of all times are still to be read.
        """
        state = self.ledger.pipeline.find()
        if state is None or state.checkpoint is None:
            problem = "no checkpoint after which rows could lack its columns; load first"
            raise ErasureInvalid(where="", problem=problem)
        return state.checkpoint

    def _values(
        self, where: str, comes: Callable[[], pa.Schema | None]
    ) -> tuple[dict[str, pa.Array], Instant | None]:
        """Return column → values, in the order of the columns' names.

        And the instant after which rows lack one of the columns; None if the newest have them all.
        """
        columns, since = self._columns(where)
        try:
            return _values_of(where, columns), since
        except ErasureInvalid:
            # A column may have been renamed, or its values may be of another kind by now.
            coming = comes()
            with contextlib.suppress(ErasureInvalid):
                if coming is not None:
                    return _values_of(where, coming), None
            raise

    def _columns(self, where: str) -> tuple[pa.Schema, Instant | None]:
        """Return the columns of the newest window that has all that a condition names.

        If newer windows lack one of them, also the last instant of all windows that have them. The
        newest of these may end before others do: it may have read history, or begun again. If none
        has them all, the columns of the newest window.

        Raises:
            ErasureInvalid: nothing was loaded yet.
        """
        wanted, newest, found, until = _named(where), None, None, None
        for state in reversed(self.ledger.windows.all()):
            end = state.window.range.end_inclusive
            is_earlier = until is not None and end.time <= until.time
            if not state.sealed or state.plan_digest is None or is_earlier:
                continue
            columns = self.contents.columns_of_plan(state.window.sequence, state.plan_digest)
            if columns is None:
                continue
            if all(it in columns.names and not _problem(columns, it) for it in wanted):
                if newest is None:
                    return columns, None
                found, until = found or columns, end
            newest = newest or columns
        if newest is None:
            raise ErasureInvalid(where=where, problem="no columns, because nothing was loaded yet")
        return found or newest, until

    def record(self, erasure: Erasure) -> Erasure:
        """Write an erasure down: no plan that is made from now on has its rows.

        Returns:
            It, with the number that it got.
        """
        while True:
            path = layout.erasure_file(self.roots.work, erasure.number)
            if self.storage.write_once(path, pretty(erasure.to_json())):
                return erasure
            stored = read_stored(self.storage, path, Erasure)
            if _said(stored) == _said(erasure):
                return stored
            # Another process took the number.
            erasure = replace(erasure, number=erasure.number + 1)


def _values_of(where: str, columns: pa.Schema) -> dict[str, pa.Array]:
    """Return column → the values that a condition names, in the order of the columns' names.

    Raises:
        ErasureInvalid: it does not name values of these columns.
    """
    for name in sorted(set(columns.names).intersection(_named(where))):
        problem = erasable_problem(columns.field(name).type)
        if problem is not None:
            raise ErasureInvalid(where=where, problem=f"in column '{name}': {problem}")
    try:
        found = equalities(Predicate.parse(where, columns, "--where"))
    except PredicateInvalid as refused:
        raise ErasureInvalid(where=where, problem=refused.problem) from refused
    if found is None:
        raise ErasureInvalid(where=where, problem="a condition that names no values")
    return {name: _cast(where, columns.field(name), found[name]) for name in sorted(found)}


def _cast(where: str, column: pa.Field, values: pl.Series) -> pa.Array:
    """Return named values in the type of their column.

    Raises:
        ErasureInvalid: one is of another kind, or one that the column cannot have.
    """
    import pyarrow as pa

    found = values.unique(maintain_order=True).to_arrow()
    is_alike = erasable_problem(found.type) is None and kind_of(found.type) == kind_of(column.type)
    try:
        if is_alike:
            return found.cast(column.type)
    except pa.ArrowException:
        pass
    problem = f"in column '{column.name}': a value that one of type {column.type} cannot have"
    raise ErasureInvalid(where=where, problem=problem)


def _combined(where: str, columns: Mapping[str, pa.Array], salt: str) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of every combination of values, in an order that tells nothing.

    Raises:
        ErasureInvalid: there are more than can be kept.
    """
    import pyarrow as pa

    if not columns:
        return ()
    count = math.prod(len(values) for values in columns.values())
    if count > _MOST:
        problem = f"{count:,} combinations of values, of which {_MOST:,} can be erased at a time"
        raise ErasureInvalid(where=where, problem=problem)
    rows = list(itertools.product(*(values.to_pylist() for values in columns.values())))
    kinds = [values.type for values in columns.values()]
    arrays = [
        pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    return tuple(sorted(fingerprints(arrays, salt), key=lambda row: row.digest))


def _said(erasure: Erasure) -> tuple[object, ...]:
    """Return what an erasure says, whoever said it."""
    return erasure.columns, erasure.kinds, erasure.rows, erasure.since, erasure.instead


def _named(where: str) -> set[str]:
    """Return the columns that a condition names; none if it does not parse."""
    try:
        return set(named_columns(where, "--where"))
    except PredicateInvalid:
        return set()


def _problem(schema: pa.Schema, name: str) -> str | None:
    return erasable_problem(schema.field(name).type)
