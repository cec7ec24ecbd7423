from __future__ import annotations

import pytest

from tidegate.demo.silences import SILENT_SECONDS, Silences


def look(silences: Silences, now: float, *silent: str) -> list[str]:
    return list(silences.look(silent, now))


def test_silent_part_is_told_once_and_again_when_it_is_heard() -> None:
    silences = Silences()

    assert look(silences, 0, "triggerer") == []
    assert look(silences, SILENT_SECONDS, "triggerer") == []
    (told,) = look(silences, SILENT_SECONDS + 1, "triggerer")
    assert "its triggerer has sent no heartbeat for more than 60 s. Nothing is ended" in told
    assert look(silences, SILENT_SECONDS + 999, "triggerer") == []
    assert look(silences, 2000) == ["Airflow: its triggerer sends heartbeats again."]
    assert look(silences, 2001) == []


@pytest.mark.parametrize("gap", [0, 30])
def test_short_silences_are_not_added_up(gap: int) -> None:
    silences = Silences()
    for now in range(0, 600, 60):
        assert look(silences, now, "scheduler") == []
        assert look(silences, now + gap) == []
