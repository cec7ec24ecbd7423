"""The rules of a merge follow from the mode, the strategy or the payload, in that order."""

from __future__ import annotations

import pytest

from tidegate.errors import HudiPropertyUnsupported
from tidegate.source.hudi.table.merge_rules import Filling, MergeMode, merge_rules
from tidegate.source.hudi.table.properties import DeleteMarker, TableProperties

MODE = "hoodie.record.merge.mode"
STRATEGY = "hoodie.record.merge.strategy.id"
PAYLOAD = "hoodie.compaction.payload.class"
COMMIT = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
BY_PAYLOAD = "00000000-0000-0000-0000-000000000000"
CLASSES = "org.apache.hudi.common.model."


def table(version: int, **keys: str) -> TableProperties:
    raw = {"hoodie.table.version": str(version), "hoodie.table.type": "MERGE_ON_READ"}
    return TableProperties("lake", {**raw, **keys})


@pytest.mark.parametrize(
    ("version", "keys", "mode"),
    [
        pytest.param(9, {MODE: "EVENT_TIME_ORDERING"}, MergeMode.EVENT_TIME, id="mode"),
        pytest.param(
            9,
            {MODE: "COMMIT_TIME_ORDERING", STRATEGY: EVENT},
            MergeMode.COMMIT_TIME,
            id="mode before strategy",
        ),
        pytest.param(6, {}, MergeMode.COMMIT_TIME, id="nothing said"),
        pytest.param(
            6, {"hoodie.table.precombine.field": "ts"}, MergeMode.EVENT_TIME, id="ordering field"
        ),
        pytest.param(
            8,
            {STRATEGY: COMMIT, PAYLOAD: CLASSES + "DefaultHoodieRecordPayload"},
            MergeMode.COMMIT_TIME,
            id="strategy before payload",
        ),
        pytest.param(
            6,
            {STRATEGY: COMMIT, PAYLOAD: CLASSES + "DefaultHoodieRecordPayload"},
            MergeMode.EVENT_TIME,
            id="payload before strategy",
        ),
        pytest.param(
            8,
            {MODE: "CUSTOM", STRATEGY: BY_PAYLOAD, PAYLOAD: CLASSES + "AWSDmsAvroPayload"},
            MergeMode.COMMIT_TIME,
            id="known payload",
        ),
    ],
)
def test_mode_is_that_of_the_first_property_that_says_it(
    version: int, keys: dict[str, str], mode: MergeMode
) -> None:
    assert merge_rules(table(version, **keys)).mode is mode


def test_payload_of_a_service_implies_its_marker_of_deletes() -> None:
    rules = merge_rules(table(6, **{PAYLOAD: CLASSES + "AWSDmsAvroPayload"}))

    assert rules.marker == DeleteMarker("Op", "D")


@pytest.mark.parametrize(
    ("said", "filling"),
    [("IGNORE_DEFAULTS", Filling.DEFAULTS), ("FILL_UNAVAILABLE", Filling.UNAVAILABLE)],
)
def test_filling_is_that_of_the_table(said: str, filling: Filling) -> None:
    keys = {MODE: "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": said}

    assert merge_rules(table(9, **keys)).filling is filling


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({MODE: "CUSTOM"}, id="custom mode"),
        pytest.param({MODE: "CUSTOM", STRATEGY: "my-merger"}, id="custom strategy"),
        pytest.param({PAYLOAD: "my.own.Payload"}, id="custom payload"),
        pytest.param(
            {MODE: "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "X"}, id="filling"
        ),
    ],
)
def test_merge_by_code_of_the_writer_is_refused(keys: dict[str, str]) -> None:
    with pytest.raises(HudiPropertyUnsupported):
        merge_rules(table(8, **keys))
