"""A load dies, the services of its Hudi table go on, and the files that it planned are gone.

The load is copied at its changes, as a process leaves it that dies there. Then the table stands as
it did after more of its walk, and commands are typed as errors print them, until the rows that
are published are the engine's.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from crash.faults import Stopper, stopping_storage, watch_database
from crash.scenario import in_turn
from golden_hudi import NOW
from small_hudi import Command, commands, typed
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner
from walked_hudi import WalkedLake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEFORE, PLANNED = 5, 6
"""Steps of the walk that were published, and that the load reads."""
CLEANED, ARCHIVED = 8, 11
"""Steps after which its files are gone; after the later one, its writes are as well."""
EVERY = 21
"""Of the changes, every how manieth is a death in the usual suite."""


def deaths(lake: WalkedLake, every: int) -> Iterator[Path]:
    """Load by a process that is gone; give what it left before some of its changes."""
    copies = lake.folder / "copies"

    def leave() -> None:
        if len(stopper.made) % every == 1 % every:
            shutil.copytree(lake.root, copies / f"{len(stopper.made):03}")

    stopper = Stopper(between=leave)
    pipeline = lake.pipeline(stopping_storage(stopper))
    watch_database(pipeline.ledger.engine, stopper)
    pipeline.load(Run("died", gone()), NOW, in_turn)
    yield from sorted(copies.iterdir())


def gone() -> str:
    """Name a process of this host that has ended."""
    kind, host, _, *rest = process_owner("cli").split(":")
    return ":".join([kind, host, "99999999", *rest])


@pytest.mark.follows("SourceFileGone", "HudiChangesLost")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("mode", "later"),
    [
        ("rebuild_partitions", CLEANED),
        ("rebuild_partitions", ARCHIVED),
        ("snapshot", CLEANED),
        ("with_deletes", ARCHIVED),
    ],
)
def test_load_whose_files_were_cleaned_after_its_death_ends_with_the_engines_rows(
    mode: str, later: int, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = WalkedLake(tmp_path, mode)
    tidegate = typed(lake.root, monkeypatch)
    lake.take(BEFORE)
    lake.table.stand_after(PLANNED)
    refused = []

    for left in deaths(lake, every):
        shutil.rmtree(lake.root)
        left.rename(lake.root)
        lake.table.stand_after(later)
        refused.append(recovered(lake, tidegate))

        assert lake.rows == lake.rows_after(later), (left.name, refused)
        lake.table.stand_after(PLANNED)

    # Some died between the plan and the last part file, others before or afterwards.
    assert {"SourceFileGone", ""} <= {*refused}


def recovered(lake: WalkedLake, tidegate: Command) -> str:
    """Load and publish as a person does who types what errors print; the first error."""
    said = tidegate("tidegate load trips", None)
    error = first = _error(said)
    if error == "SourceFileGone":
        _, abandon, take = commands(said)
        tidegate(f"{abandon} --yes")
        said = tidegate(take, None)
        error = _error(said)
    if error:
        (reset,) = commands(said)
        tidegate(f"{reset} --yes")
    tidegate("tidegate publish trips", None)
    return first


def _error(said: str) -> str:
    return next((word for word in ERRORS if word in said), "")


ERRORS = ("SourceFileGone", "HudiChangesLost", "HudiFilesCleaned")
