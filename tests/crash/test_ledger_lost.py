"""A ledger that is gone: refused while it is missing, and the same again after `fsck --rebuild`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from crash.scenario import HELD, Life, ending, in_turn, make_source
from small_lake import look_again
from tidegate.errors import LedgerLost, WorkUnknown
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life = Life(tmp_path / "root", *make_source(tmp_path / "source"))
    life.prepare()
    return life


def lose_ledger(life: Life) -> None:
    for path in life.root.glob("ledger.db*"):
        path.unlink()


def test_restore_after_whole_life_gives_the_same_content(life: Life) -> None:
    life.live()
    before = ending(life.root)
    lose_ledger(life)

    pipeline = life.pipeline(None, "quarantine", None)
    restored = pipeline.restore_ledger()
    look_again(pipeline, datetime.now(UTC))

    assert (restored.windows, restored.unfinished) == (3, ())
    assert ending(life.root) == before


def test_load_with_an_empty_ledger_over_a_used_target_names_the_remedy(life: Life) -> None:
    life.live()
    lose_ledger(life)

    with pytest.raises(LedgerLost, match="fsck orders --rebuild"):
        life.pipeline(None, "hold", None).load(Run("r", "cli"), NOW, in_turn)


def test_restore_gives_a_held_partition_its_verdict_and_decision_back(life: Life) -> None:
    pipeline = life.pipeline(None, "hold", None)
    pipeline.load(Run("r", "cli"), NOW, in_turn)
    list(pipeline.publish_all("cli", NOW))
    shown = pipeline.ledger.publications.proposed(HELD)
    assert shown is not None
    pipeline.decide(
        HELD,
        publication=shown.publication.digest,
        approved=False,
        by="ada",
        comment="too odd",
        now=NOW + timedelta(hours=1),
    )
    before = pipeline.ledger.publications.proposed(HELD), pipeline.ledger.partitions.get(HELD)
    lose_ledger(life)

    again = life.pipeline(None, "hold", None)
    again.restore_ledger()

    after = again.ledger.publications.proposed(HELD), again.ledger.partitions.get(HELD)
    assert before[0] == after[0]
    assert (after[1].pending, after[1].why) == ("held", before[1].why)


def test_restore_goes_on_as_if_nothing_had_happened(life: Life) -> None:
    life.live()
    before = ending(life.root)
    lose_ledger(life)
    life.pipeline(None, "quarantine", None).restore_ledger()

    life.live()

    assert ending(life.root) == before


def test_restore_over_a_ledger_that_knows_the_pipeline_gives_the_same_content(
    life: Life,
) -> None:
    life.live()
    before = ending(life.root)

    pipeline = life.pipeline(None, "quarantine", None)
    restored = pipeline.restore_ledger()
    look_again(pipeline, datetime.now(UTC))

    assert (restored.windows, restored.unfinished) == (3, ())
    assert ending(life.root) == before


def test_restore_without_a_work_directory_is_refused(life: Life) -> None:
    with pytest.raises(WorkUnknown):
        life.pipeline(None, "hold", None).restore_ledger()
