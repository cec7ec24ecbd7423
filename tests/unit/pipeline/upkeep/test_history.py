"""Each commit of the source is shown with the window that took it in."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.model.instant import Instant, InstantRange
from tidegate.model.plan import Window, WindowKind
from tidegate.pipeline.upkeep.history import source_instants

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INSTANTS = tuple(Instant(f"s{number}", NOW) for number in range(1, 6))
LOAD, REBUILD, RELOAD = WindowKind.LOAD, WindowKind.REBUILD, WindowKind.RELOAD


def _window(sequence: int, start: str | None, end: str, kind: WindowKind = LOAD) -> Any:
    taken = InstantRange(Instant(start, NOW) if start else None, Instant(end, NOW))
    return SimpleNamespace(window=Window(sequence, taken, kind, None, "run"))


def _taken(*windows: Any, known: bool = True) -> list[int | None]:
    state = SimpleNamespace(source_identity="uuid", checkpoint=None) if known else None
    ledger: Any = SimpleNamespace(
        pipeline=SimpleNamespace(find=lambda: state),
        windows=SimpleNamespace(all=lambda: windows),
    )
    timeline = SimpleNamespace(
        pin=lambda *_, **__: None,
        retained=lambda _: INSTANTS,
        describe=lambda _, instants: [SimpleNamespace(instant=it) for it in instants],
    )
    source: Any = SimpleNamespace(timeline=timeline)
    return [it.window for it in source_instants(source, ledger, NOW)]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([], [None] * 5),
        ([_window(1, None, "s2"), _window(2, "s2", "s3")], [1, 1, 2, None, None]),
        ([_window(1, "s2", "s4")], [None, None, 1, 1, None]),
        ([_window(1, "s1", "s3"), _window(2, None, "s3", REBUILD)], [None, 1, 1, None, None]),
        (
            [_window(1, None, "s2"), _window(2, "s2", "s4", REBUILD), _window(3, "s4", "s5")],
            [1, 1, None, 2, 3],
        ),
        ([_window(1, None, "s2"), _window(2, "s2", "s5", RELOAD)], [1, 1, 2, 2, 2]),
        ([_window(1, None, "s2"), _window(2, None, "s3", RELOAD)], [2, 2, 2, None, None]),
        ([_window(1, None, "s2"), _window(2, "gone", "s4")], [1, 1, 2, 2, None]),
        ([_window(1, None, "gone")], [None] * 5),
    ],
    ids=[
        *("none", "one after the other", "in the middle", "rebuild", "rebuild of changed files"),
        "reload of the rest",
        *("reload of all", "start expired", "end expired"),
    ],
)
def test_commit_belongs_to_the_window_that_took_it_in(
    windows: list[Any], expected: list[int | None]
) -> None:
    assert _taken(*windows) == expected


def test_pipeline_that_the_ledger_does_not_know_took_nothing_in() -> None:
    assert _taken(_window(1, None, "s2"), known=False) == [None] * 5
