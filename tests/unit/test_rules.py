"""Every rule that is cited by number stands in docs/rules, and every rule there is cited."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tidegate.cli.app import app
from tidegate.config import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = "docs/rules/"
# Its examples are no citations.
THIS_FILE = Path(__file__).relative_to(ROOT).as_posix()

MADE_ELSEWHERE = "tests/golden/hudi/"
"""Answers of the engine that name more rules than are built."""

NUMBER = r"(?:\d+\.\d+|[A-Z]\d\d?)"
BETWEEN = r"\s*[–-]\s*|\s+to\s+|,\s+|\s+and\s+"
CITATION = re.compile(
    rf"\b(ICE|PC|AF|HUDI)-((?:{NUMBER}|\d+)(?:(?:{BETWEEN}){NUMBER}(?!\w))*)"
    r"|\b[Dd]esign §(\d+[a-z]?)"
)
"""`ICE-5.9, 5.10`, `HUDI-M8 to M10`, `PC-F21–F26`, `ICE-2.7 to 2.10`, `PC-F21 and F23`,
`design §4`."""
ENTRY = re.compile(r'<a id="([^"]*)"></a>(?:\*\*)?([A-Z]+-[A-Z\d.]+|design §\d+[a-z]?)')
MARKS = ("ICE-", "PC-", "AF-", "HUDI-", "esign §")


class Citation(NamedTuple):
    """A rule and where it is named."""

    rule: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


def cited_in(text: str, file: str = "text") -> Iterator[Citation]:
    """Find the rules that a text cites, each with the line where its citation begins."""
    for found in CITATION.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        prefix, numbers, section = found.groups()
        if section:
            yield Citation(f"design §{section}", file, line)
            continue
        for number in expanded(numbers):
            yield Citation(f"{prefix}-{number}", file, line)


def expanded(numbers: str) -> Iterator[str]:
    """Give each number of a list, and each one of a range."""
    parts = re.split(f"({BETWEEN})", numbers)
    yield parts[0]
    for known, joined, number in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        yield from through(known, number) if joined.strip() in {"–", "-", "to"} else [number]


def through(first: str, last: str) -> list[str]:
    """Give what follows the first number of a range, up to the last; both are of one section."""
    section, low = re.findall(r"^(.*?)(\d+)$", first)[0]
    numbers = range(int(low) + 1, int(last.removeprefix(section)) + 1)
    return [f"{section}{number:0{len(low)}}" for number in numbers]


@cache
def citations() -> tuple[Citation, ...]:
    """Find all citations in the text files under version control."""
    marks = [part for mark in MARKS for part in ("-e", mark)]
    listed = subprocess.run(
        ["git", "grep", "-I", "--name-only", "-F", *marks], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    files = [
        name
        for name in listed.stdout.splitlines()
        if name != THIS_FILE and not name.startswith((PAGES, MADE_ELSEWHERE))
    ]
    return tuple(
        cited for file in files for cited in cited_in((ROOT / file).read_text("utf-8"), file)
    )


@cache
def pages() -> dict[str, str]:
    """Read the pages of rules."""
    found = sorted((ROOT / PAGES).glob("*.md"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in found}


@cache
def entries() -> tuple[Citation, ...]:
    """Find the entries of all pages."""
    return tuple(
        Citation(found[2], file, text.count("\n", 0, found.start()) + 1)
        for file, text in pages().items()
        for found in ENTRY.finditer(text)
    )


def test_every_cited_rule_has_an_entry() -> None:
    known = {entry.rule for entry in entries()}
    beside = [cited for file, text in pages().items() for cited in cited_in(text, file)]

    missing = [str(cited) for cited in (*citations(), *beside) if cited.rule not in known]

    assert not missing, "\n".join(["cited, without an entry in docs/rules:", *missing])


def test_every_entry_is_cited_by_code_or_a_test() -> None:
    cited = {
        found.rule
        for found in citations()
        if not found.file.startswith("docs/") and not found.file.endswith(".md")
    }

    unused = [str(entry) for entry in entries() if entry.rule not in cited]

    assert not unused, "\n".join(["cited by neither code nor a test:", *unused])


def test_every_entry_stands_once_under_its_own_anchor() -> None:
    rules = [entry.rule for entry in entries()]
    anchors = [found for text in pages().values() for found in ENTRY.findall(text)]

    assert [rule for rule in rules if rules.count(rule) > 1] == []
    assert [anchor for anchor, rule in anchors if anchor != rule.lower().replace(" §", "-")] == []
    assert sum(text.count("<a id=") for text in pages().values()) == len(rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one (ICE-2.14).", "ICE-2.14"),
        ("a list, ICE-3.12, 3.13 and more", "ICE-3.12 ICE-3.13"),
        ("a list (PC-F17, F21, F23)", "PC-F17 PC-F21 PC-F23"),
        ("both PC-F21 and F23.", "PC-F21 PC-F23"),
        ("a range AF-3.8–3.12)", "AF-3.8 AF-3.9 AF-3.10 AF-3.11 AF-3.12"),
        ("a range PC-T08–T11", "PC-T08 PC-T09 PC-T10 PC-T11"),
        ("in words, ICE-2.7 to 2.9", "ICE-2.7 ICE-2.8 ICE-2.9"),
        ("both ICE-4.6, 4.10, 4.14–4.16:", "ICE-4.6 ICE-4.10 ICE-4.14 ICE-4.15 ICE-4.16"),
        ("of two pages (AF-3.11, PC-C06)", "AF-3.11 PC-C06"),
        ("of two, ICE-3.22 and ICE-8.2", "ICE-3.22 ICE-8.2"),
        ("over lines (ICE-2.14,\n    2.17)", "ICE-2.14 ICE-2.17"),
        ("a section AF-6, 10 files", "AF-6"),
        ("a sentence ends with PC-W04. 17 files", "PC-W04"),
        ("Design §7: and (design §4, case 2)", "design §7, design §4"),
        ("VOICE-1.2, SPICE-2.3, PC-DOS, PC-like", ""),
    ],
)
def test_citation_read_gives_each_rule(text: str, expected: str) -> None:
    separator = ", " if "design" in expected else " "

    assert [cited.rule for cited in cited_in(text)] == [
        rule for rule in expected.split(separator) if rule
    ]


def test_citation_read_names_its_line() -> None:
    assert [*map(str, cited_in("\n(ICE-2.14,\n2.17)\nPC-C06", "a.py"))] == [
        "a.py:2: ICE-2.14",
        "a.py:2: ICE-2.17",
        "a.py:4: PC-C06",
    ]


MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("include", "plugins", "jobs", "dags")
    for path in (ROOT / folder).rglob("*.py")
)


def texts_of(module: str) -> Iterator[ast.Constant]:
    """Find the texts of a module that are no docstrings."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    docstrings = {id(node.value) for node in statements}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node


def test_no_rule_is_cited_to_a_user() -> None:
    """Messages say what is the matter; a number is looked up by those who read the code."""
    found = [
        str(cited)
        for module in MODULES
        for text in texts_of(module)
        for cited in cited_in(text.value, f"{module}:{text.lineno}")
    ]
    help_texts = json.dumps(json_schema()) + "".join(
        command.callback.__doc__ or "" for command in app.registered_commands if command.callback
    )

    assert found == []
    assert [str(cited) for cited in cited_in(help_texts)] == []
