"""A table's properties are typed, and what is not read is refused by name."""

from __future__ import annotations

import pytest

from tidegate.errors import HudiPropertyUnsupported
from tidegate.source.hudi.table.properties import DeleteMarker, TableProperties

OLD = "hoodie.table.version=6\nhoodie.table.type=MERGE_ON_READ\n"
NEW = "hoodie.table.version=9\nhoodie.table.type=COPY_ON_WRITE\n"


def parsed(text: str) -> TableProperties:
    return TableProperties.parse("lake", text)


def test_folders_of_the_first_layout_lie_directly_in_the_tables_own() -> None:
    table = parsed(OLD)

    assert (table.layout, table.timeline_folder) == (1, ".hoodie")
    assert table.history_folder == ".hoodie/archived"


def test_folders_of_the_second_layout_are_those_that_the_properties_name() -> None:
    table = parsed(NEW + "hoodie.timeline.path=tl\nhoodie.timeline.history.path=old\n")

    assert (table.layout, table.timeline_folder) == (2, ".hoodie/tl")
    assert table.history_folder == ".hoodie/tl/old"


def test_values_with_escaped_colons_are_read_as_java_writes_them() -> None:
    table = parsed(OLD + r"hoodie.table.recordkey.fields=a\:b,c" + "\n")

    assert table.key_fields == ("a:b", "c")


@pytest.mark.parametrize("key", ["hoodie.table.ordering.fields", "hoodie.table.precombine.field"])
def test_ordering_fields_are_found_under_either_name(key: str) -> None:
    assert parsed(f"{NEW}{key}=ts,seq\n").ordering_fields == ("ts", "seq")


def test_kinds_of_partition_fields_are_left_out() -> None:
    table = parsed(NEW + "hoodie.table.partition.fields=day:timestamp,region:simple\n")

    assert table.partition_fields == ("day", "region")


@pytest.mark.parametrize("prefix", ["", "hoodie.record.merge.property."])
def test_delete_marker_is_found_with_and_without_prefix(prefix: str) -> None:
    said = "hoodie.payload.delete"
    text = f"{NEW}{prefix}{said}.field=op\n{prefix}{said}.marker=d\n"

    assert parsed(text).delete_marker == DeleteMarker("op", "d")


@pytest.mark.parametrize(
    ("text", "mixed"),
    [
        pytest.param(OLD, True, id="old"),
        pytest.param(NEW + "hoodie.table.initial.version=9\n", False, id="new"),
        pytest.param(NEW + "hoodie.table.initial.version=6\n", True, id="upgraded"),
        pytest.param(NEW, True, id="unknown origin"),
    ],
)
def test_logs_may_be_mixed_in_tables_that_began_before_version_8(text: str, mixed: bool) -> None:
    assert parsed(text).has_mixed_logs is mixed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", "hoodie.table.version", id="no version"),
        pytest.param("hoodie.table.version=7", "hoodie.table.version", id="bridge release"),
        pytest.param("hoodie.table.version=4", "hoodie.table.version", id="too old"),
        pytest.param("hoodie.table.version=11", "hoodie.table.version", id="too new"),
        pytest.param("hoodie.table.version=nine", "hoodie.table.version", id="no number"),
        pytest.param("hoodie.table.version=9", "hoodie.table.type", id="no type"),
        pytest.param(NEW + "hoodie.timeline.layout.version=3", "layout.version", id="layout"),
        pytest.param(NEW + "hoodie.table.base.file.format=LANCE", "base.file.format", id="format"),
        pytest.param(NEW + "hoodie.bootstrap.base.path=/x", "bootstrap.base.path", id="bootstrap"),
        pytest.param(
            NEW + "hoodie.datasource.write.drop.partition.columns=true",
            "drop.partition.columns",
            id="dropped columns",
        ),
    ],
)
def test_table_that_is_not_read_is_refused_with_property_and_value(text: str, named: str) -> None:
    with pytest.raises(HudiPropertyUnsupported, match=named):
        parsed(text)


@pytest.mark.parametrize("layout", ["W", "", "3", "²"])
def test_timeline_of_a_layout_that_is_not_known_is_refused(layout: str) -> None:
    with pytest.raises(HudiPropertyUnsupported, match="expected 1 or 2"):
        TableProperties.parse(
            "/t",
            "hoodie.table.version=6\nhoodie.table.type=COPY_ON_WRITE\n"
            f"hoodie.timeline.layout.version={layout}\n",
        )


TEN = "hoodie.table.version=10\nhoodie.table.type=MERGE_ON_READ\n"
MODE, LEGACY = "hoodie.meta.fields.mode", "hoodie.populate.meta.fields"


@pytest.mark.parametrize(
    ("text", "has_them", "key"),
    [
        pytest.param("", True, LEGACY, id="neither"),
        pytest.param(f"{LEGACY}=false", False, LEGACY, id="the older one"),
        pytest.param(f"{MODE}=\n{LEGACY}=false", False, LEGACY, id="empty mode"),
        pytest.param(f"{MODE}=ALL", True, MODE, id="all"),
        pytest.param(f"{MODE}=all \n{LEGACY}=true", True, MODE, id="both"),
        pytest.param(f"{MODE}=NONE", False, MODE, id="none"),
        pytest.param(f"{MODE}=COMMIT_TIME_ONLY\n{LEGACY}=false", False, MODE, id="some"),
        pytest.param(f"{MODE}=FILE_NAME_ONLY", False, MODE, id="without times"),
    ],
)
def test_version_10_says_by_a_mode_which_columns_the_writer_adds(
    text: str, has_them: bool, key: str
) -> None:
    table = parsed(TEN + text)

    assert (table.has_meta_fields, table.meta_fields_key) == (has_them, key)


def test_mode_of_meta_fields_means_nothing_before_version_10() -> None:
    assert parsed(f"{NEW}{MODE}=NONE\n").has_meta_fields


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(f"{MODE}=SOME", "one of ALL, NONE", id="unknown"),
        pytest.param(f"{MODE}=NONE\n{LEGACY}=true", "populate.meta.fields", id="older says all"),
        pytest.param(f"{MODE}=ALL\n{LEGACY}=false", "populate.meta.fields", id="older says none"),
        pytest.param("hoodie.table.storage.layout=lsm_tree", "expected default", id="sorted"),
    ],
)
def test_table_of_version_10_that_is_not_read_is_refused(text: str, named: str) -> None:
    with pytest.raises(HudiPropertyUnsupported, match=named):
        parsed(TEN + text)


@pytest.mark.parametrize(
    "text",
    [
        f"{TEN}hoodie.table.storage.layout=default\n",
        "hoodie.table.version=10\nhoodie.table.type=COPY_ON_WRITE\n"
        "hoodie.table.storage.layout=lsm_tree\n",
    ],
    ids=["default", "without logs"],
)
def test_storage_layout_without_sorted_logs_is_read(text: str) -> None:
    assert parsed(text).version == 10
