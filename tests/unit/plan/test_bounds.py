"""A file without bounds fails a plan only where somebody wants them (ICE-5.10)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import PipelineConfig
from tidegate.errors import StatsMissing
from tidegate.model.event_column import EventColumn
from tidegate.model.file_slice import FileSlice
from tidegate.model.plan import Piece
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan.bounds import event_column, with_bounds

KNOWN, READ = (TimeBounds(*[datetime(2026, 1, day, tzinfo=UTC)] * 2) for day in (1, 2))


def _config(order: str = "none", event_time: Any = "at") -> PipelineConfig:
    return PipelineConfig.from_resolved(
        {
            "name": "orders",
            "source": {"kind": "iceberg", "table": "lake.raw.orders", "split": {"order": order}},
            "event_time": event_time,
            "timezone": "Europe/Berlin",
            "target": {"path": "/out"},
        }
    )


class Footers:
    """A source whose footers know some files; counts which were read."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths
        self.asked: list[str] = []

    def __call__(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        assert column == EventColumn("at", "Europe/Berlin", "us")
        self.asked.append(piece.path)
        return READ if piece.path in self.paths else None


def _piece(path: str, bounds: TimeBounds | None = None) -> Piece:
    return Piece(FileSlice(path), 1, 1, event_times=bounds)


PIECES = [_piece("a", KNOWN), _piece("b"), _piece("c")]


@given(known=st.sets(st.sampled_from("abc")))
def test_footers_are_asked_for_what_is_missing_alone(known: set[str]) -> None:
    source = Footers("a", "b", "c")
    pieces = [_piece(path, KNOWN if path in known else None) for path in "abc"]

    said = {"column": "at", "on_missing_bounds": "read_footer"}
    found = with_bounds(pieces, source, _config(event_time=said))

    assert [it.event_times for it in found] == [KNOWN if path in known else READ for path in "abc"]
    assert set(source.asked) == set("abc") - known


@pytest.mark.parametrize(
    ("order", "event_time"),
    [
        ("none", "at"),
        ("none", None),
        ("path", {"column": "at"}),
        ("event_time", {"column": "at", "on_missing_bounds": "null"}),
    ],
    ids=["nobody asks", "no event time", "another order", "null"],
)
def test_missing_bounds_are_nothing_where_nobody_wants_them(order: str, event_time: Any) -> None:
    source = Footers("b")

    assert with_bounds(PIECES, source, _config(order, event_time)) == tuple(PIECES)
    assert source.asked == []


@pytest.mark.parametrize(
    ("order", "policy"),
    [
        ("none", {"on_missing_bounds": "fail"}),
        ("event_time", {}),
        ("event_time", {"on_missing_bounds": "fail"}),
        ("event_time", {"on_missing_bounds": "read_footer"}),
    ],
    ids=["said", "wanted", "both", "nor the footer"],
)
def test_missing_bounds_that_are_wanted_name_the_first_file(
    order: str, policy: dict[str, str]
) -> None:
    with pytest.raises(StatsMissing, match="'at'") as missing:
        with_bounds(PIECES, Footers("c"), _config(order, {"column": "at", **policy}))

    assert missing.value.values["path"] == "b"


def test_footer_that_does_not_say_is_accepted_where_order_does_not_need_it() -> None:
    said = {"column": "at", "on_missing_bounds": "read_footer"}

    found = with_bounds(PIECES, Footers("c"), _config(event_time=said))

    assert [it.event_times for it in found] == [KNOWN, None, READ]


def test_pipeline_without_an_event_time_has_no_column() -> None:
    assert event_column(_config(event_time=None)) is None
