"""Turn a condition that a person types into an erasure, and write it down."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import ErasureInvalid, PredicateInvalid
from tidegate.model.erasure import Erasure, Fingerprint
from tidegate.model.wire import pretty
from tidegate.pipeline.state.erasures import erasures
from tidegate.predicate import Predicate, equalities, named_columns
from tidegate.read.erased_rows import erasable_problem, fingerprints
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from tidegate.ledger import Ledger
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


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
    ) -> Erasure:
        """Return the erasure that a condition describes: a new one, or the one that it was before.

        Args:
            where: such as `customer_id in (17, 18)`; None: only that others are replaced.
            by: who asks.
            now: the clock.
            comment: why.
            instead: numbers of earlier ones whose columns later windows need not have any more.

        Raises:
            ErasureInvalid: an earlier one does not exist, or the condition does not name values of
                columns in the published files.
        """
        known = erasures(self.storage, self.roots.work)
        # The same salt in all of them tells an erasure that was named before.
        salt = known[0].salt if known else os.urandom(16).hex()
        missing = sorted({*instead} - {item.number for item in known})
        if missing:
            problem = f"no erasure {missing[0]}; there are {len(known) or 'none'}"
            raise ErasureInvalid(where=where or "", problem=problem)
        columns, is_past = self._values(where) if where is not None else ({}, True)
        rows = _combined(columns, salt)
        told = (is_past or None, tuple(instead) or None)
        number = len(known) + 1
        made = Erasure(number, tuple(columns), salt, rows, by, now, comment, *told)
        return next((item for item in known if _said(item) == _said(made)), made)

    def _values(self, where: str) -> tuple[dict[str, pa.Array], bool]:
        """Return column → values, in the order of the columns' names.

        And whether the newest window lacks one of them.
        """
        import pyarrow as pa

        newest, schema = self._schemas(where)
        for name in sorted(set(schema.names).intersection(_named(where))):
            problem = _problem(schema, name)
            if problem is not None:
                raise ErasureInvalid(where=where, problem=f"in column '{name}': {problem}")
        try:
            found = equalities(Predicate.parse(where, schema, "--where"))
        except PredicateInvalid as refused:
            raise ErasureInvalid(where=where, problem=refused.problem) from refused
        if found is None:
            raise ErasureInvalid(where=where, problem="a condition that names no values")
        arrays = {}
        for name in sorted(found):
            kind = schema.field(name).type
            try:
                arrays[name] = found[name].unique(maintain_order=True).to_arrow().cast(kind)
            except pa.ArrowException as unfit:
                problem = f"in column '{name}': a value that one of type {kind} cannot have"
                raise ErasureInvalid(where=where, problem=problem) from unfit
        is_past = not all(
            name in newest.names and erasable_problem(newest.field(name).type) is None
            for name in arrays
        )
        return arrays, is_past

    def _schemas(self, where: str) -> tuple[pa.Schema, pa.Schema]:
        """Return the columns of the newest window, and those among which a condition names some.

        A column that only earlier windows had is taken from the newest of them.
        """
        import pyarrow as pa

        newest, found = None, pa.schema([])
        wanted = _named(where)
        for state in reversed(self.ledger.windows.all()):
            if not state.sealed or state.plan_digest is None:
                continue
            columns = self.contents.columns_of_plan(state.window.sequence, state.plan_digest)
            if columns is None:
                continue
            newest = columns if newest is None else newest
            fits = [it for it in columns if it.name not in found.names or _is_better(it, found)]
            others = [it for it in found if it.name not in {fit.name for fit in fits}]
            found = pa.schema([*others, *fits])
            if all(it in found.names and not _problem(found, it) for it in wanted):
                break
        if newest is None:
            raise ErasureInvalid(where=where, problem="no columns, because nothing was loaded yet")
        return newest, found

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


def _combined(columns: Mapping[str, pa.Array], salt: str) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of every combination of values, in an order that tells nothing."""
    import pyarrow as pa

    if not columns:
        return ()
    rows = list(itertools.product(*(values.to_pylist() for values in columns.values())))
    kinds = [values.type for values in columns.values()]
    arrays = [
        pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    return tuple(sorted(fingerprints(arrays, salt), key=lambda row: row.digest))


def _said(erasure: Erasure) -> tuple[object, ...]:
    """Return what an erasure says, whoever said it."""
    return erasure.columns, erasure.salt, erasure.rows, erasure.is_past, erasure.instead


def _named(where: str) -> set[str]:
    """Return the columns that a condition names; none if it does not parse."""
    try:
        return set(named_columns(where, "--where"))
    except PredicateInvalid:
        return set()


def _problem(schema: pa.Schema, name: str) -> str | None:
    return erasable_problem(schema.field(name).type)


def _is_better(column: pa.Field, known: pa.Schema) -> bool:
    """Return whether rows are named by a column of an earlier type, but not by the later one."""
    return _problem(known, column.name) is not None and erasable_problem(column.type) is None
