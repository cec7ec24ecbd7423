"""Suite files: what they may say, and which columns they need."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.errors import SuiteInvalid
from tidegate.gate import load_suite

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.gate.suite import Suite


def load(folder: Path, raw: Any) -> Suite:
    file = folder / "suite.json"
    file.write_text(raw if isinstance(raw, str) else json.dumps(raw))
    return load_suite(str(file))


def load_one(folder: Path, **expectation: Any) -> Suite:
    return load(folder, {"name": "s", "expectations": [expectation]})


def test_load_suite_severity_left_out_is_critical(tmp_path: Path) -> None:
    suite = load_one(tmp_path, type="expect_x", kwargs={"column": "a"})

    assert suite.expectations[0].severity == "critical"


def test_load_suite_what_the_library_itself_writes_is_accepted(tmp_path: Path) -> None:
    suite = load(
        tmp_path,
        {
            "name": "s",
            "id": "6f0e",
            "meta": {"great_expectations_version": "1.24.1"},
            "notes": None,
            "suite_parameters": {},
            "expectations": [
                {
                    "type": "expect_x",
                    "kwargs": {},
                    "id": "1",
                    "meta": {"who": "us"},
                    "severity": "warning",
                    "description": "why",
                    "rendered_content": [],
                }
            ],
        },
    )

    assert suite.expectations[0].meta == {"who": "us"}
    assert suite.expectations[0].description == "why"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param("{", "line 1: no JSON", id="no json"),
        pytest.param([], "expected an object", id="no object"),
        pytest.param({"expectations": [{}]}, "expected `name`", id="no name"),
        pytest.param({"name": "s"}, "expected `expectations`", id="no list"),
        pytest.param(
            {"name": "s", "expectations": [{"type": "t"}], "suite_parameters": [1]},
            "expected `suite_parameters`",
            id="parameters no object",
        ),
        pytest.param({"name": "s", "expectations": []}, "checks nothing", id="empty list"),
        pytest.param(
            {"name": "s", "expectation": []}, "did you mean 'expectations'", id="misspelt list"
        ),
        pytest.param({"name": "s", "expectations": ["x"]}, "expectation 1", id="no expectation"),
        pytest.param({"name": "s", "expectations": [{}]}, "expected `type`", id="no type"),
        pytest.param(
            {"name": "s", "expectations": [{"type": "t", "kwargs": 3}]},
            "expected `kwargs`",
            id="no arguments",
        ),
        pytest.param(
            {"name": "s", "expectations": [{"type": "t", "severty": "warning"}]},
            "did you mean 'severity'",
            id="misspelt key",
        ),
        pytest.param(
            {"name": "s", "expectations": [{"type": "t", "severity": "warn"}]},
            "did you mean 'warning'",
            id="misspelt severity",
        ),
        pytest.param(
            {"name": "s", "expectations": [{"expectation_type": "t", "kwargs": {}}]},
            "unknown key 'expectation_type'; known: type",
            id="old form of the library",
        ),
    ],
)
def test_load_suite_what_cannot_be_meant_names_the_place(
    tmp_path: Path, raw: Any, said: str
) -> None:
    with pytest.raises(SuiteInvalid, match=said) as caught:
        load(tmp_path, raw)

    assert caught.value.suite == str(tmp_path / "suite.json")


def test_load_suite_no_such_file_names_it(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.json")

    with pytest.raises(SuiteInvalid, match=r"none\.json: cannot be read"):
        load_suite(missing)


def compare(column: str) -> dict[str, Any]:
    return {"type": "comparison", "column": {"name": column}, "operator": ">", "parameter": 1}


@pytest.mark.parametrize(
    "content",
    [
        '{"name": "Größe"}'.encode("latin-1"),
        '{"name": "s"}'.encode("utf-16"),
        b'{"name": "\\ud800"}',
        b"[" * 100_000,
        b'{"name": ' + b"9" * 5_000 + b"}",
    ],
    ids=["latin-1", "utf-16", "surrogate", "nested", "digits"],
)
def test_file_that_no_suite_can_be_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "suite.json"
    path.write_bytes(content)

    with pytest.raises(SuiteInvalid, match=r"suite\.json"):
        load_suite(str(path))


@pytest.mark.parametrize(
    ("kwargs", "columns"),
    [
        pytest.param({"column": "a", "mostly": 0.5}, {"a"}, id="one"),
        pytest.param({"column_A": "a", "column_B": "b"}, {"a", "b"}, id="pair"),
        pytest.param({"column_list": ["a", "b", "c"]}, {"a", "b", "c"}, id="list"),
        pytest.param({"min_value": 1}, set(), id="whole table"),
        pytest.param({"column": "a", "row_condition": None}, {"a"}, id="no condition"),
        pytest.param({"row_condition": 'col("x") > 1'}, {"x"}, id="condition as text"),
        pytest.param({"row_condition": compare("x")}, {"x"}, id="condition as object"),
        pytest.param(
            {"row_condition": {"type": "and", "conditions": [compare("x"), compare("y")]}},
            {"x", "y"},
            id="conditions joined",
        ),
        pytest.param({"row_condition": "x > 1"}, None, id="condition in another language"),
        pytest.param({"row_condition": {"type": "pass_through"}}, None, id="condition unknown"),
        pytest.param(
            {"row_condition": {"type": "or", "conditions": [compare("x"), {"type": "new"}]}},
            None,
            id="condition partly unknown",
        ),
        pytest.param({"row_condition": 7}, None, id="condition of no kind"),
        pytest.param({"column_map": {"a": 1}}, None, id="argument unknown"),
        pytest.param({"unexpected_rows_query": "SELECT 1"}, None, id="query"),
    ],
)
def test_columns_of_an_expectation_are_those_it_names(
    tmp_path: Path, kwargs: dict[str, Any], columns: set[str] | None
) -> None:
    suite = load_one(tmp_path, type="expect_x", kwargs=kwargs)

    assert suite.columns == columns


@pytest.mark.parametrize(
    "kind",
    [
        "expect_column_to_exist",
        "expect_table_columns_to_match_set",
        "expect_table_columns_to_match_ordered_list",
        "expect_table_column_count_to_equal",
        "expect_table_column_count_to_be_between",
    ],
)
def test_columns_of_a_check_on_names_are_none(tmp_path: Path, kind: str) -> None:
    suite = load_one(tmp_path, type=kind, kwargs={"column": "a", "column_set": ["b"]})

    assert suite.expectations[0].is_about_schema
    assert suite.columns == set()


def test_columns_of_a_suite_join_those_of_its_expectations(tmp_path: Path) -> None:
    known = {"type": "expect_x", "kwargs": {"column": "a"}}
    other = {"type": "expect_y", "kwargs": {"column": "b"}}
    unknown = {"type": "expect_z", "kwargs": {"row_condition": "c > 1"}}

    assert load(tmp_path, {"name": "s", "expectations": [known, other]}).columns == {"a", "b"}
    assert load(tmp_path, {"name": "s", "expectations": [known, unknown]}).columns is None


def test_digest_of_a_suite_changes_with_what_it_says_not_with_its_layout(tmp_path: Path) -> None:
    raw = {"name": "s", "expectations": [{"type": "t", "kwargs": {"mostly": 0.8}}]}
    changed = {"name": "s", "expectations": [{"type": "t", "kwargs": {"mostly": 0.7}}]}

    same = load(tmp_path, json.dumps(raw, indent=3)).digest == load(tmp_path, raw).digest

    assert same
    assert load(tmp_path, raw).digest != load(tmp_path, changed).digest


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"column": "a"}, "expect_x(a)"),
        ({"column_A": "a", "column_B": "b"}, "expect_x(a, b)"),
        ({"column_list": ["a", "b"]}, "expect_x(a, b)"),
        ({"min_value": 1}, "expect_x"),
    ],
)
def test_name_of_an_expectation_says_its_columns(
    tmp_path: Path, kwargs: dict[str, Any], name: str
) -> None:
    assert load_one(tmp_path, type="expect_x", kwargs=kwargs).expectations[0].name == name
