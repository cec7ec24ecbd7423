"""Commit metadata is read in JSON and Avro, and anything else refused."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from tidegate.source.hudi.timeline.metadata import (
    NOTHING,
    Role,
    earliest_retained,
    is_clustering_plan,
    parse_metadata,
)

STAT = {
    "fileId": "g",
    "path": "p/g_1_1.parquet",
    "fileSizeInBytes": 7,
    "prevCommit": "null",
    "numDeletes": 1,
    "numWrites": 3,
    "cdcStats": {"p/.g_1.log.1.cdc": 5},
}
RAW = {
    "operationType": "UPSERT",
    "partitionToWriteStats": {"p": [STAT]},
    "partitionToReplaceFileIds": {"q": ["h"]},
    "extraMetadata": {"schema": "{}"},
}


def avro(record: dict[str, Any], schema: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), [record])
    return file.getvalue()


PLAN = {
    "type": "record",
    "name": "Requested",
    "fields": [{"name": "operationType", "type": ["null", "string"]}],
}


def test_json_has_files_replacements_and_schema() -> None:
    found = parse_metadata(json.dumps(RAW).encode())

    (stat,) = found.files
    assert (stat.file_id, stat.size_bytes, stat.rows, stat.deletes) == ("g", 7, 3, 1)
    assert stat.changes == (("p/.g_1.log.1.cdc", 5),)
    assert (found.partitions, found.replaced) == (frozenset("pq"), {"q": ("h",)})
    assert (found.role, found.schema, found.evolution) == (Role.WRITE, "{}", None)


@pytest.mark.parametrize(
    ("told", "schema", "may_delete"),
    [
        ({"numDeletes": 0}, "{}", False),
        ({"numDeletes": 2}, "{}", True),
        ({"numDeletes": None}, "{}", True),
        ({}, "{}", True),
        ({"numDeletes": 0}, '{"fields": [{"name": "_hoodie_operation"}]}', True),
    ],
    ids=["none", "some", "unknown", "not told", "rows that say their kind"],
)
def test_log_may_have_deletes_unless_their_number_is_known_to_be_none(
    told: dict[str, Any], schema: str, *, may_delete: bool
) -> None:
    stat = {"fileId": "g", "path": "p/.g_1.log.1", **told}
    raw = {"partitionToWriteStats": {"p": [stat]}, "extraMetadata": {"schema": schema}}

    (found,) = parse_metadata(json.dumps(raw).encode()).files

    assert found.may_delete == may_delete


@pytest.mark.parametrize("operation", ["COMPACT", "LOG_COMPACT", "CLUSTER"])
def test_service_is_no_write(operation: str) -> None:
    found = parse_metadata(json.dumps({**RAW, "operationType": operation}).encode())

    assert found.role is Role.SERVICE


@pytest.mark.parametrize(
    ("operation", "replaced", "unknown"),
    [
        ("INSERT_OVERWRITE", ["h"], False),
        ("INSERT_OVERWRITE_TABLE", ["h"], False),
        ("DELETE_PARTITION", ["h"], False),
        ("CLUSTER", ["h"], False),
        ("BUCKET_RESCALE", ["h"], True),
        (None, ["h"], True),
        ("BUCKET_RESCALE", None, False),
    ],
)
def test_replacement_by_another_operation_is_unknown(
    operation: str | None, replaced: list[str] | None, unknown: bool
) -> None:
    groups = {"q": replaced} if replaced else {}
    raw = {**RAW, "operationType": operation, "partitionToReplaceFileIds": groups}
    found = parse_metadata(json.dumps(raw).encode())

    assert found.is_unknown_replacement is unknown


def test_file_without_a_path_has_an_empty_one() -> None:
    raw = {"partitionToWriteStats": {"p": [{**STAT, "path": None}]}}
    (stat,) = parse_metadata(json.dumps(raw).encode()).files

    assert stat.path == ""


def test_empty_file_did_nothing() -> None:
    assert parse_metadata(b"") == NOTHING


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(json.dumps(RAW).encode()[:-9], id="half written"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"Obj\x01\x00", id="half an Avro file"),
        pytest.param(b'{"partitionToWriteStats": {"p": [{}]}}', id="no file id"),
    ],
)
def test_other_content_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="no commit metadata"):
        parse_metadata(content)


@pytest.mark.parametrize(
    ("content", "planned"),
    [
        pytest.param(avro({"operationType": "CLUSTER"}, PLAN), True, id="clustering"),
        pytest.param(avro({"operationType": "INSERT_OVERWRITE"}, PLAN), False, id="overwrite"),
        pytest.param(b"", False, id="empty"),
        pytest.param(b"{}", False, id="json"),
    ],
)
def test_plan_of_a_clustering_is_told_from_an_overwrite(content: bytes, planned: bool) -> None:
    assert is_clustering_plan(content) is planned


def test_clean_names_the_instant_that_it_kept() -> None:
    assert earliest_retained(b'{"earliestCommitToRetain": "2026"}') == "2026"
    assert earliest_retained(b'{"earliestCommitToRetain": ""}') is None
    assert earliest_retained(b"") is None


def test_damaged_clean_is_refused() -> None:
    with pytest.raises(ValueError, match="no metadata of a clean"):
        earliest_retained(b"{")
