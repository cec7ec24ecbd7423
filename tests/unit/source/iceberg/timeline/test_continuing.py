"""A checkpoint goes on as its state, the policy and the read mode say (ICE-2.17 to 2.20)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from golden_iceberg import answers, golden
from tidegate.errors import CursorExpired
from tidegate.model.instant import Instant, InstantRange
from tidegate.model.plan import WindowKind

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policy", "kind", "ends"),
    [
        ("full_reload", WindowKind.RELOAD, 2),
        ("from_oldest", WindowKind.LOAD, 2),
    ],
)
def test_policy_says_what_a_window_means(policy: str, kind: WindowKind, ends: int) -> None:
    source = golden("expired_head_v2").source(on_expired_cursor=policy)
    pin = source.timeline.pin(NOW)
    checkpoint = Instant("1184756282218802032", NOW, 2)

    following = source.timeline.following(pin, checkpoint)

    assert following.kind is kind
    assert len(following.instants) == ends
    assert following.start == (None if kind is WindowKind.RELOAD else checkpoint)
    assert policy in source.timeline.checkpoint_state(pin, checkpoint).detail


def test_policy_that_the_state_does_not_allow_is_refused() -> None:
    source = golden("expired_head_v2").source(
        on_expired_cursor="snapshot_diff", read={"mode": "changelog"}
    )

    with pytest.raises(CursorExpired, match="full_reload"):
        source.timeline.following(source.timeline.pin(NOW), Instant("1184756282218802032", NOW, 2))


def test_replayed_window_whose_start_expired_is_not_reloaded() -> None:
    source = golden("expired_head_v2").source(on_expired_cursor="full_reload")
    pin = source.timeline.pin(NOW)
    assert pin.head

    with pytest.raises(CursorExpired):
        source.slicing.units(pin, InstantRange(Instant("1184756282218802032", NOW, 2), pin.head))


def test_checkpoint_past_the_configured_end_waits() -> None:
    lineage = answers("append_v2")["lineage"]
    source = golden("append_v2").source(end=lineage[1])
    pin = source.timeline.pin(NOW)
    assert pin.head

    assert pin.head.id == str(lineage[1])
    assert source.timeline.following(pin, Instant(str(lineage[2]), NOW)).instants == ()
    assert [item.id for item in source.timeline.following(pin, None).instants] == [
        str(item) for item in lineage[:2]
    ]
