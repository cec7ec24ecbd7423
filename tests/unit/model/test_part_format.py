"""Names of part files tell their format and compression, as Spark names them."""

from __future__ import annotations

import pytest

from tidegate.model.part_format import EXTENSIONS, KINDS, PARQUET, PartFormat, form_of_name
from tidegate.stage.layout import is_part_file, part_name

ALL = [(name, word) for name, kind in KINDS.items() for word in kind.extensions]


@pytest.mark.parametrize(("name", "compression"), ALL)
def test_name_of_a_part_file_tells_how_to_read_it(name: str, compression: str) -> None:
    form = PartFormat(name, compression)
    path = part_name("0a", "1b", 2, form.extension)

    assert is_part_file(f"dt=1/{path}")
    found = form_of_name(path)
    assert (found.name, found.extension) == (name, form.extension)
    # A table whose compression was changed has files of both.
    other = PartFormat(name, KINDS[name].default_compression)
    assert other.of_file(path).extension == form.extension


def test_name_is_that_of_early_versions_unless_a_format_is_named() -> None:
    assert part_name("0a", "1b", 2) == "part-0a-1b-2.zstd.parquet"
    assert PARQUET.extension == ".zstd.parquet"


@pytest.mark.parametrize("name", ["part-0a-1b-2.txt", "part-0a-1b-2.parquet.bak", "x.csv"])
def test_other_file_is_no_part_file(name: str) -> None:
    assert not is_part_file(name)


def test_extensions_are_all_of_them() -> None:
    assert {".csv", ".json.gz", ".avro", ".snappy.orc", ".parquet"} <= set(EXTENSIONS)
