"""Check that the name of a new pipeline is not that of another one in the ledger."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.config import ledger_url
from tidegate.config.loading import pipeline_names
from tidegate.errors import NameKnown, TidegateError
from tidegate.ledger import Ledger, open_engine

if TYPE_CHECKING:
    from tidegate.cli.first_file import DraftFile

_SQLITE = "sqlite:///"


def check_name(draft: DraftFile) -> None:
    """Check that the ledger knows the name only for the same source and target, if at all.

    A ledger that is not there yet is not created, and one that does not answer is left to `check`.

    Raises:
        NameKnown: a pipeline of that name has another source or another target.
    """
    url = ledger_url()
    if url.startswith(_SQLITE) and not Path(url.removeprefix(_SQLITE)).exists():
        return
    try:
        engine = open_engine(url)
    except TidegateError:
        return
    try:
        _compare(Ledger(engine, draft.name), draft)
    finally:
        engine.dispose()


def _compare(ledger: Ledger, draft: DraftFile) -> None:
    state, identity = ledger.pipeline.find(), ledger.pipeline.identity()
    if state is None or identity is None:
        return
    for key, before, now in (
        ("source", identity["source"], draft.source),
        ("target.path", os.path.realpath(state.target), os.path.realpath(draft.target)),
    ):
        if before != now:
            raise NameKnown(
                name=draft.name,
                key=key,
                expected=before,
                found=now,
                target=state.target,
                proposal=_free_name(ledger),
            )


def _free_name(ledger: Ledger) -> str:
    taken = pipeline_names()
    return next(
        other
        for number in itertools.count(2)
        if (other := f"{ledger.name}_{number}") not in taken
        and replace(ledger, name=other).pipeline.find() is None
    )
