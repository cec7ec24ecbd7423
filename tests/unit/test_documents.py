"""Examples of the documents are what a user can copy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import load_pipeline
from tidegate.model.partition import Transform

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def _examples(pattern: str) -> list[Any]:
    """Return the YAML of the documents in which something is found."""
    return [
        pytest.param(text, id=f"{document.name}-{number}")
        for document in DOCUMENTS
        for number, text in enumerate(FENCED.findall(document.read_text()))
        if re.search(pattern, text, re.MULTILINE)
    ]


@pytest.mark.parametrize("text", _examples(r"^name:"))
def test_pipeline_file_of_a_document_is_valid(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)

    assert load_pipeline(path).name


@pytest.mark.parametrize("text", _examples(r"\Asource:"))
def test_source_of_a_document_is_valid(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(f"name: orders\ntarget: {{path: /lake/mart/orders}}\n{text}")

    assert load_pipeline(path).source


@pytest.mark.parametrize("text", _examples("require_marker: true"))
def test_pipeline_that_reads_another_names_its_keys(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    if not text.startswith("name:"):
        text = f"name: below\ntarget: {{path: /lake/mart/orders}}\n{text}"
    path.write_text(text)
    source = load_pipeline(path).source.model_dump()
    made = []
    for example in _examples(rf"^name:(?s:.)*{re.escape(source['path'])}\b"):
        path.write_text(example.values[0])
        target = load_pipeline(path).target
        if target.path == source["path"]:
            made.append({key.name: key.transform for key in target.partition_by})

    assert {"dt": Transform.DAY} in made
    assert source["partition_by"] == {"dt": "date"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_of_a_document_lead_to_files(document: Path) -> None:
    links = LINK.findall(document.read_text())

    assert [link for link in links if not (document.parent / link).exists()] == []
