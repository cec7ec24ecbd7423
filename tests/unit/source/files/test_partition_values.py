"""Directory names are read as canonical text of their declared types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import (
    PartitionValueInvalid,
)
from tidegate.model.partition import Partition
from tidegate.source.files.partition_values import arrow_type, parse_values


def _value(declared: str, text: str) -> Any:
    partition = Partition((("k", text),))
    return parse_values(partition, {"k": declared}, "__NONE__", "p")["k"].as_py()


@pytest.mark.parametrize(
    ("declared", "text", "shown"),
    [
        ("string", "a=b", "a=b"),
        ("int", "-5", "-5"),
        ("long", "3000000000", "3000000000"),
        ("date", "2020-12-01", "2020-12-01"),
        ("timestamp", "2020-12-01T11:00:00", "2020-12-01 11:00:00"),
        ("timestamp", "2020-12-01 11:00:00.5", "2020-12-01 11:00:00.500000"),
        ("boolean", "false", "False"),
        ("decimal(9,2)", "12.30", "12.30"),
    ],
    ids=lambda value: str(value).replace(" ", "_"),
)
def test_canonical_text_reads_as_its_type(declared: str, text: str, shown: str) -> None:
    assert str(_value(declared, text)) == shown


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("int", "05"),
        ("int", "3000000000"),
        ("int", "1.0"),
        ("date", "2020-13-01"),
        ("date", "18597"),
        ("timestamp", "2020-12-01"),
        ("boolean", "TRUE"),
        ("decimal(4,2)", "123.45"),
        ("decimal(9,2)", "1e3"),
        ("decimal(9,2)", "1.234"),
    ],
)
def test_other_text_names_path_value_and_type(declared: str, text: str) -> None:
    with pytest.raises(PartitionValueInvalid) as refused:
        _value(declared, text)

    assert refused.value.values == {"path": "p", "value": text, "type": declared}


@pytest.mark.parametrize("text", ["__NONE__", None])
def test_default_partition_reads_as_null_of_the_type(text: str | None) -> None:
    value = parse_values(Partition((("k", text),)), {"k": "date"}, "__NONE__", "p")["k"]

    assert not value.is_valid
    assert value.type == arrow_type("date")


@given(st.integers(-(2**31), 2**31 - 1) | st.integers(-9, 9))
def test_whole_number_has_one_spelling(number: int) -> None:
    """PC-P06."""
    assert _value("int", str(number)) == number
    for other in (f"0{number}", f"+{number}", f" {number}", f"{number}.0"):
        with pytest.raises(PartitionValueInvalid):
            _value("int", other)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("int", "1\N{FULLWIDTH DIGIT TWO}"),
        ("long", "1\N{FULLWIDTH DIGIT TWO}"),
        ("decimal(9,2)", "\N{FULLWIDTH DIGIT ONE}.50"),
        ("date", "\N{FULLWIDTH DIGIT TWO}020-01-01"),
        ("timestamp", "\N{FULLWIDTH DIGIT TWO}020-01-01T00:00:00"),
    ],
    ids=["int", "long", "decimal", "date", "timestamp"],
)
def test_digits_of_another_script_are_no_number(declared: str, text: str) -> None:
    """Python reads them; two directories would be one value (PC-P06)."""
    with pytest.raises(PartitionValueInvalid):
        _value(declared, text)
