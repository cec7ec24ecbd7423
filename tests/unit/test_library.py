"""The examples in the library's docstrings, run as they stand, in order."""

from __future__ import annotations

import doctest
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate
from tidegate import library
from tidegate.pipeline import changes
from tidegate.target import committed

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
name: orders
source: {{kind: files, path: {root}/orders}}
event_time: at
target: {{path: {root}/published, partition_by: {{dt: day(at)}}}}
execute: {{engine: local}}
"""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "home"))
    (tmp_path / "orders").mkdir()
    table = pa.table(
        {
            "id": [1, 2, 3],
            "at": pa.array([datetime(2026, 2, day, 12, tzinfo=UTC) for day in (1, 1, 2)]),
            "amount": [10.0, 20.0, 30.0],
        }
    )
    pq.write_table(table, tmp_path / "orders" / "one.parquet")
    path = tmp_path / "orders.yaml"
    path.write_text(PIPELINE.format(root=tmp_path))
    return {
        "orders": f"{tmp_path}/orders",
        "published": f"{tmp_path}/published",
        "pipeline_file": path,
        "load_pipeline": tidegate.load_pipeline,
        "read_changes": tidegate.read_changes,
        "read_committed": tidegate.read_committed,
    }


def run_examples(module: object, name: str, names: dict[str, object]) -> doctest.TestResults:
    found = {test.name: test for test in doctest.DocTestFinder().find(module, globs=names)}
    test = found[f"{module.__name__}.{name}"]
    assert test.examples
    return doctest.DocTestRunner().run(test)


@pytest.mark.parametrize("name", library.__all__)
def test_package_offers_the_name(name: str) -> None:
    assert getattr(tidegate, name) is getattr(library, name)


def test_package_lists_its_names_beside_its_modules() -> None:
    listed = dir(tidegate)

    assert {*tidegate.__all__, "__version__", "errors"} <= set(listed)
    assert len(listed) == len(set(listed))
    assert {"Any", "annotations", "import_module"}.isdisjoint(listed)


def test_pipeline_in_a_notebook_is_shown_by_its_name_and_file(names: dict[str, object]) -> None:
    loaded = tidegate.load_pipeline(str(names["pipeline_file"]))

    assert repr(loaded) == f"LoadedPipeline('orders', '{names['pipeline_file']}')"
    assert repr(loaded.pipeline) == f"Pipeline('orders', '{names['pipeline_file']}')"


def test_package_without_the_name_says_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tidegate.nonsense


def test_examples_in_order_give_what_they_say(names: dict[str, object]) -> None:
    order = (
        (library, "load_pipeline"),
        (library, "LoadedPipeline.changes"),
        (library, "LoadedPipeline.plan"),
        (library, "LoadedPipeline.load"),
        (library, "LoadedPipeline.publish"),
        (library, "LoadedPipeline.status"),
        (library, "LoadedPipeline.explain"),
        (changes, "read_changes"),
        (committed, "read_committed"),
    )

    failures = [(name, run_examples(module, name, names).failed) for module, name in order]

    assert failures == [(name, 0) for _, name in order]
