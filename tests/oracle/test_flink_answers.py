"""Tidegate answers as Flink does, or by its own rule: each case says which (PC-V40, V41).

Which partitions are committed after each of several loads is asked of whole pipelines, in
`tests/behaviour/test_flink_steps.py`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from oracle.questions import AREAS
from oracle.questions.question import REFUSED, SAME
from oracle.recorded import recorded
from tidegate.commit.partition_time import NoPartitionTime, PartitionClock
from tidegate.commit.triggers import Tide, evaluate
from tidegate.config import PipelineConfig
from tidegate.config.sources.files import FilesSourceConfig
from tidegate.errors import PartitionPathInvalid, PartitionValueInvalid
from tidegate.model.partition import (
    DEFAULT_NAME,
    Partition,
    PartitionField,
    Transform,
    escape,
    unescape,
)
from tidegate.source.files.partition_values import arrow_type, parse_value
from tidegate.source.files.walk import list_directory
from tidegate.stage.value_text import identity_writer
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Ask = dict[str, Any]

MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 20, tzinfo=UTC)
REFUSALS = (PartitionPathInvalid, PartitionValueInvalid, NoPartitionTime, ValueError)


def pipeline(partition_by: dict[str, str], zone: str = "UTC", **commit: Any) -> PipelineConfig:
    """Make a pipeline with these partition keys and this `commit`."""
    return PipelineConfig.from_resolved(
        {
            "name": "p",
            "timezone": zone,
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": partition_by},
            "commit": commit,
        }
    )


def partition_of(ask: Ask) -> Partition:
    return Partition(tuple((key, value) for key, value in ask["values"]))


def keys_of(ask: Ask) -> dict[str, str]:
    return {key: key for key, _ in ask["values"]}


def at(milliseconds: int) -> datetime:
    return EPOCH + milliseconds * MILLISECOND


def text(ask: Ask) -> str:
    return {"escape": escape, "unescape": unescape}[ask["do"]](ask["text"])


def path(ask: Ask) -> str:
    return partition_of(ask).path


def spec(ask: Ask) -> list[list[str | None]]:
    found = Partition.parse(ask["path"], tuple(ask["keys"]), DEFAULT_NAME)
    return [list(pair) for pair in found.values]


def value_written(ask: Ask) -> str:
    kind = arrow_type(ask["type"])
    value = date.fromisoformat(ask["value"]) if ask["type"] == "date" and ask["value"] else None
    write = identity_writer(PartitionField("k", "k", Transform.IDENTITY), kind, timezone="UTC")
    (found,) = write(pa.array([value or ask["value"]], kind))
    return Partition((("k", found),)).path.removeprefix("k=")


def value_read(ask: Ask) -> str:
    found = parse_value(ask["text"], ask["type"], "k=…").as_py()
    if isinstance(found, bool):
        return str(found).lower()
    return found.isoformat() if isinstance(found, date) else str(found)


def time(ask: Ask, *, lenient: bool = True) -> str:
    said = {name: ask[name] for name in ("pattern", "formatter") if ask[name] is not None}
    config = pipeline(keys_of(ask), partition_time={**said, "lenient": lenient})
    return PartitionClock.of(config).time(partition_of(ask)).local.isoformat()


def process_time(ask: Ask) -> bool:
    delay = f"{ask['delay_ms']} ms"
    config = pipeline({"k": "k"}, trigger="process-time", delay=delay)
    tide = Tide(at(ask["clock_ms"]), None)
    seen = at(ask["first_seen_ms"])
    return evaluate(config, Partition((("k", "1"),)), first_seen=seen, tide=tide).committable


def last_without(config: PipelineConfig, partition: Partition) -> int:
    """The largest watermark, in milliseconds, at which a partition is not committed."""

    def committable(watermark: int) -> bool:
        tide = Tide(NOW, at(watermark))
        return evaluate(config, partition, first_seen=NOW, tide=tide).committable

    due = evaluate(config, partition, first_seen=NOW, tide=Tide(NOW, EPOCH)).due
    assert due is not None
    found = (due - EPOCH) // MILLISECOND
    assert [committable(found + step) for step in (-1, 0, 1)] == [False, False, True]
    return found


def boundary(ask: Ask) -> int:
    said = {"pattern": ask["pattern"]}
    delay = f"{ask['delay_ms']} ms"
    config = pipeline(keys_of(ask), ask["zone"], delay=delay, partition_time=said)
    return last_without(config, partition_of(ask))


OURS: dict[str, Callable[[Ask], Any]] = {
    "texts": text,
    "paths": path,
    "specs": spec,
    "values_written": value_written,
    "values_read": value_read,
    "times": time,
    "process_times": process_time,
    "boundaries": boundary,
}


def answer(ours: Callable[[Ask], Any], ask: Ask) -> Any:
    try:
        return ours(ask)
    except REFUSALS:
        return REFUSED


def as_labelled(case: dict[str, Any], found: Any) -> bool:
    """Whether Tidegate's answer is what the label says: Flink's, or the other one of the rule."""
    if case["label"] == SAME:
        return bool(found == case["flink"])
    return bool(found == case["ours"] != case["flink"])


@pytest.mark.parametrize("area", AREAS)
def test_answers_are_those_to_the_questions(area: str) -> None:
    """Labels stand in the questions; a case cannot change its label in one place alone."""
    asked = [item.record() for item in AREAS[area]]

    assert [{k: v for k, v in case.items() if k != "flink"} for case in recorded(area)] == asked
    assert len({repr(item["ask"]) for item in asked}) == len(asked)


@pytest.mark.parametrize("area", OURS)
def test_answer_is_as_its_label_says(area: str) -> None:
    found = [(case, answer(OURS[area], case["ask"])) for case in recorded(area)]

    assert [(case, said) for case, said in found if not as_labelled(case, said)] == []


@pytest.mark.parametrize(
    "case", recorded("listings"), ids=lambda case: " ".join(case["ask"]["files"])
)
def test_partitions_of_a_folder_are_as_the_label_says(case: dict[str, Any], tmp_path: Path) -> None:
    keys = case["ask"]["keys"]
    for name in case["ask"]["files"]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    source = FilesSourceConfig(
        kind="files", path=str(tmp_path), partition_by=dict.fromkeys(keys, "string")
    )

    def partitions(_: Ask) -> list[list[list[str | None]]]:
        folders = {
            file.path.rpartition("/")[0] for file in list_directory(source, LocalStorage()).files
        }
        return [spec({"path": folder, "keys": keys}) for folder in sorted(folders)]

    assert as_labelled(case, answer(partitions, case["ask"]))


def test_time_read_strictly_is_the_lenient_one_or_refused() -> None:
    """PC-T14: where the text is a real date and time both are the same."""
    found = [
        (case, case.get("strict", case.get("ours", case["flink"])), answer(_strictly, case["ask"]))
        for case in recorded("times")
    ]
    java = [(case, said) for case, expected, said in found if expected == UNSAID]

    assert [item for item in found if item[1] not in {item[2], UNSAID}] == []
    assert [item for item in java if item[1] not in {item[0]["flink"], REFUSED}] == []


UNSAID = "unsaid"
"""Of these texts only what java.time makes of them is known."""


def _strictly(ask: Ask) -> str:
    return time(ask, lenient=False)


def test_partition_of_known_length_is_over_when_the_clock_shows_it_no_more() -> None:
    """PC-T20; where clocks change this is another moment than Flink's."""
    cases = [case for case in recorded("boundaries") if "by_end" in case]
    found = [(case, last_without(by_end(case["ask"]), partition_of(case["ask"]))) for case in cases]

    assert [item for item in found if item[0]["by_end"] != item[1]] == []
    assert sum(case["by_end"] != case["flink"] for case in cases) > 0


def by_end(ask: Ask) -> PipelineConfig:
    return pipeline(
        keys_of(ask),
        ask["zone"],
        delay=f"{ask['slack_ms']} ms",
        partition_time={"pattern": ask["pattern"], "interval": f"1 {ask['length'][0]}"},
    )
