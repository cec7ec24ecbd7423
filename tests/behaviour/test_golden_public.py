"""Public tables of other projects have the rows that those projects publish (ICE-10.3, 10.4).

They are not part of this repository (ICE-10.1): `TIDEGATE_PUBLIC_GOLDEN` names the folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import Golden, answers, fits
from golden_questions import question
from tidegate import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "TIDEGATE_PUBLIC_GOLDEN"
FOLDER = os.environ.get(VARIABLE)
TABLES = sorted(Path(FOLDER).glob("*/*/answers.json")) if FOLDER else []
CASES = [f"{path.parent.parent.name}/{path.parent.name}" for path in TABLES]
PUBLISHED = {
    "duckdb/add_columns_with_defaults": 3,
    "duckdb/equality_delete_extra_column": 2,
    "duckdb/equality_deletes_mytable": 2,
    "duckdb/hive_partitioned_table": 6,
    "duckdb/lineitem_iceberg": 51_793,
    "duckdb/name_mapping": 10_000,
    "impala/iceberg_legacy_partition_schema_evolution": 2,
    "impala/iceberg_lineitem_multiblock": 17_886,
    "impala/iceberg_mixed_file_format_test": 4,
    "impala/iceberg_v2_delete_both_eq_and_pos": 2,
    "impala/iceberg_v2_delete_equality": 2,
    "impala/iceberg_v2_delete_equality_multi_eq_ids": 5,
    "impala/iceberg_v2_delete_equality_partitioned": 6,
    "impala/iceberg_v2_delete_positional": 2,
    "impala/iceberg_v2_no_deletes": 3,
    "impala/iceberg_v2_null_delete_record": 6,
    "impala/iceberg_v2_partitioned_position_deletes": 10,
    "impala/iceberg_v2_positional_delete_all_rows": 0,
    "impala/iceberg_v2_positional_not_all_data_files_have_delete_files": 6,
    "impala/iceberg_v2_positional_not_all_data_files_have_delete_files_orc": 6,
    "impala/iceberg_v3_default_value": 2,
    "impala/iceberg_v3_default_value_avro": 2,
    "impala/iceberg_v3_deletion_vectors": 3,
    "impala/iceberg_v3_row_lineage": 3,
}
"""Counts of the projects' own tests, written down apart from the folder's answers (ICE-10.8)."""

pytestmark = pytest.mark.skipif(
    not FOLDER, reason=f"{VARIABLE} names no folder of public tables (see CONTRIBUTING.md)"
)


def table(case: str) -> Golden:
    """A public table in its place."""
    assert FOLDER
    owner, _, name = case.partition("/")
    return Golden(name, Path(FOLDER) / owner / name)


def told(case: str) -> Mapping[str, Any]:
    """What its project says of a public table."""
    assert FOLDER
    owner, _, name = case.partition("/")
    return answers(name, Path(FOLDER) / owner)


READABLE = [case for case in CASES if "error" not in told(case)]
REFUSED = [case for case in CASES if "error" in told(case)]
EARLIER = [
    (case, number, state) for case in READABLE for number, state in enumerate(told(case)["as_of"])
]


def test_folder_has_every_table_whose_count_is_published() -> None:
    assert set(PUBLISHED) <= set(CASES)


@pytest.mark.parametrize("case", [question(case) for case in READABLE])
def test_public_table_has_the_published_rows(case: str) -> None:
    head = told(case)["head"]
    columns = head.get("columns")

    found = table(case).changes("snapshot", columns=columns)

    assert found.num_rows == PUBLISHED.get(case, head["row_count"])
    assert "rows" not in head or fits(found, head)


@pytest.mark.parametrize("case", [question(case) for case in REFUSED])
def test_public_table_that_cannot_be_read_rightly_is_refused(case: str) -> None:
    name = told(case)["error"].partition("(")[0]

    with pytest.raises(errors.TidegateError) as refused:
        table(case).changes("snapshot")

    assert type(refused.value).__name__ == name


@pytest.mark.parametrize(
    ("case", "state"),
    [question(case, number, state) for case, number, state in EARLIER],
)
def test_public_table_as_of_an_earlier_snapshot_has_the_published_rows(
    case: str, state: Mapping[str, Any]
) -> None:
    found = table(case).changes("snapshot", end=state["snapshot_id"])

    assert found.num_rows == state["row_count"]
    assert "rows" not in state or fits(found, state)


LINEAGE = "impala/iceberg_v3_row_lineage"
MAPPED = "duckdb/name_mapping"


@pytest.mark.parametrize("case", [question(LINEAGE)])
def test_row_lineage_that_a_compaction_wrote_is_read_from_the_files(case: str) -> None:
    lineage = told(case)["head"]["lineage"]

    found = table(case).changes("snapshot", columns=lineage["columns"])

    assert fits(found, lineage)


@pytest.mark.parametrize(
    ("case", "version", "nulls"),
    [
        question(MAPPED, version, version, nulls)
        for version, nulls in {
            "v3": {"b": 0},
            "v3.1": {"b": 10_000},
            "v4": {"b": 0},
            "v4.1": {"b": 10_000},
        }.items()
    ],
)
def test_name_mapping_of_each_metadata_version_serves_the_columns_that_it_names(
    case: str, version: str, nulls: Mapping[str, int]
) -> None:
    metadata = table(case).folder / f"table/metadata/{version}.metadata.json"

    found = table(case).changes("snapshot", end=6597550917742534971, metadata=str(metadata))

    assert found.num_rows == 10_000
    assert {name: found.column(name).null_count for name in nulls} == nulls


def test_name_mapping_that_leaves_out_a_required_column_is_refused() -> None:
    """DuckDB reads NULL; the specification has no value for a required column (ICE-6.12)."""
    metadata = table(MAPPED).folder / "table/metadata/v3.2.metadata.json"

    with pytest.raises(errors.SchemaIncompatible, match="column 'a'"):
        table(MAPPED).changes("snapshot", end=6597550917742534971, metadata=str(metadata))


def test_columns_beside_a_variant_have_all_published_rows() -> None:
    case = "impala/trino_variant"

    found = table(case).changes("snapshot", columns=["id", "descr"])

    assert found.num_rows == told(case)["head"]["row_count"]
