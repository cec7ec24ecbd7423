"""A file that does not use a key is written as by a version that did not know it."""

from __future__ import annotations

from tidegate.config.commit import CommitConfig, PartitionTimeConfig


def test_unused_keys_are_left_out() -> None:
    assert set(CommitConfig().model_dump(mode="json", by_alias=True)) == {
        "trigger", "delay", "late_data", "policies", "partition_time", "marker",
    }  # fmt: skip
    assert set(PartitionTimeConfig().model_dump(by_alias=True)) == {
        "pattern", "formatter", "lenient", "interval",
    }  # fmt: skip


def test_used_keys_are_written_by_their_names_in_the_file() -> None:
    said = PartitionTimeConfig.model_validate({"class": "shop:Weeks"})

    assert said.model_dump(mode="json", by_alias=True)["class"] == "shop:Weeks"
    assert "parameters" not in said.model_dump(mode="json", by_alias=True)
