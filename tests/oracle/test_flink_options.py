"""Every option of Flink's connector has an answer in the page for those who come from it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oracle.recorded import recorded
from tidegate.config import json_schema

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-flink.md"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
WORD = re.compile(r"`([^`]+)`")
SECTIONS = ("source", "event_time", "target", "rows", "gate", "commit", "execute", "dag")
KEY = re.compile(rf"`((?:{'|'.join(SECTIONS)})(?:\.\w+)*|timezone)\b")
SHOWN = {"PT0S": "0 s", "PT1M": "1 min", "PT30M": "30 min", "128 mb": "128 MB", "False": "false"}
"""As Flink prints a default → as the page does."""


@cache
def rows() -> tuple[tuple[str, ...], ...]:
    """Read the rows of all tables that have a default of Flink: four columns."""
    return tuple(row for row in ROW.findall(PAGE.read_text("utf-8")) if row[0] != "Flink")


@pytest.mark.parametrize("case", recorded("options"), ids=lambda case: case["option"])
def test_option_of_flink_has_a_row_with_its_default(case: dict[str, Any]) -> None:
    found = [row for row in rows() if case["option"] in WORD.findall(row[0])]
    default = case["default"]
    shown = SHOWN.get(default, default)

    assert found, "no row"
    assert all(row[3].strip() for row in found)
    if default is not None:
        assert any(shown in row[1] for row in found)


def test_each_metadata_column_of_flink_has_a_row() -> None:
    named = {word for row in rows() for word in WORD.findall(row[0])}

    assert {case["column"] for case in recorded("metadata_columns")} <= named


def _has(schema: dict[str, Any], path: list[str], whole: dict[str, Any]) -> bool:
    """Whether a place is in a JSON schema, in any of its alternatives."""
    if "$ref" in schema:
        return _has(whole["$defs"][schema["$ref"].rpartition("/")[2]], path, whole)
    others = [item for key in ("anyOf", "oneOf", "allOf") for item in schema.get(key, [])]
    if not path or any(_has(item, path, whole) for item in others):
        return True
    inner = schema.get("properties", {}).get(path[0])
    return inner is not None and _has(inner, path[1:], whole)


def test_keys_of_the_page_are_those_of_a_pipeline_file() -> None:
    schema = json_schema()
    named = {key for row in rows() for text in row[2:] for key in KEY.findall(text)}

    assert len(named) > 20
    assert {key for key in named if not _has(schema, key.split("."), schema)} == set()
