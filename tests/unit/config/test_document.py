"""Every key of a file has its line, and what YAML would swallow is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.document import Document, key_text
from tidegate.errors import ConfigInvalid

if TYPE_CHECKING:
    from pathlib import Path

KEYS = st.sampled_from(["a", "b", "c d", "yes", "1"])
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        st.integers(0, 9) | st.just("text"),
        lambda inner: (
            st.dictionaries(KEYS, inner, min_size=1, max_size=3)
            | st.lists(inner, min_size=1, max_size=2)
        ),
        max_leaves=5,
    ),
    min_size=1,
    max_size=3,
)


@given(tree=TREES)
def test_line_of_each_key_is_the_one_that_it_stands_in(
    tree: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("c") / "p.yaml"
    file.write_text(yaml.safe_dump(tree, sort_keys=False, indent=2))
    lines = file.read_text().splitlines()

    document = Document.read(file)

    assert document.content == tree
    for place, line in document.lines.items():
        step = place[-1]
        expected = "- " if isinstance(step, int) else f"{yaml.safe_dump({step: 0}).split(':')[0]}:"
        assert expected in lines[line - 1]


def _read(folder: Path, text: str) -> Document:
    (folder / "p.yaml").write_text(text)
    return Document.read(folder / "p.yaml")


def test_place_that_the_file_has_not_is_in_the_line_of_the_nearest_above(tmp_path: Path) -> None:
    document = _read(tmp_path, "name: x\nsource:\n  read:\n    mode: append\n")

    assert document.line(("source", "read", "columns", 0)) == 3
    assert document.line(("target",)) == 1


def test_place_of_a_shorthand_is_in_the_line_of_the_short_key(tmp_path: Path) -> None:
    document = _read(tmp_path, "name: x\nschedule: daily\n")

    assert document.line(("dag", "schedule")) == 2


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "b.c", "twice"),
        ("a: 1\nb: '${LAKE}'\n", 2, "b", "unknown placeholder"),
        ("a: [1,\n'${env:1X}']\n", 2, "a[1]", "unknown placeholder"),
        ("- a\n", 1, "file", "expected the keys"),
        ("", 1, "file", "expected the keys"),
        ("a: 1\nb: [\n", 3, "file", "cannot be read as YAML"),
        ("a: 1\nb: {c: 2026-13-01}\n", 2, "b.c", "'2026-13-01' is no date: month must be in"),
        ("a: [1,\n2026-02-30T25:00:00]\n", 2, "a[1]", "'2026-02-30T25:00:00' is no date"),
        ("a: 1\nb: {no: 1,\n'no': 2}\n", 3, "b.no", "twice"),
        ("a: 1\nb: {!own no: 2}\n", 2, "file", "could not determine a constructor"),
        ("a: 1\nb: !!int x\n", 2, "b", "'x' is not what YAML takes it for: invalid literal"),
    ],
    ids=[
        *("twice", "placeholder", "in a list", "list", "empty", "cut"),
        *("no date", "no time in a list", "twice as text", "tag of a key", "no number"),
    ],
)
def test_mistake_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, key: str, problem: str
) -> None:
    with pytest.raises(ConfigInvalid, match=problem) as refused:
        _read(tmp_path, text)

    assert (refused.value.values["line"], refused.value.values["key"]) == (line, key)


@pytest.mark.parametrize(
    ("place", "expected"),
    [((), "file"), (("a",), "a"), (("a", "b"), "a.b"), (("a", 1, "b"), "a[1].b")],
)
def test_place_is_written_as_people_write_it(place: tuple[str | int, ...], expected: str) -> None:
    assert key_text(place) == expected


@pytest.mark.parametrize(
    "key",
    ["null", "~", "no", "On", "1", "1_000", "0x1F", "1.50", "2026-01-01", "2026-13-01", "=", "a"],
)
def test_key_is_its_text_whatever_yaml_takes_it_for(tmp_path: Path, key: str) -> None:
    document = _read(tmp_path, f"a:\n  b:\n    {key}: no\n")

    assert document.content == {"a": {"b": {key: False}}}
    assert document.line(("a", "b", key)) == 3


def test_keys_are_text_also_where_a_mapping_is_merged_or_used_again(tmp_path: Path) -> None:
    text = "a: &a {no: 1, on: 2}\nb: {<<: *a, on: 3}\nc: *a\nd: [&d no]\ne: {*d : 4}\n"

    document = _read(tmp_path, text)

    assert document.content == {
        "a": {"no": 1, "on": 2},
        "b": {"no": 1, "on": 3},
        "c": {"no": 1, "on": 2},
        "d": [False],
        "e": {"no": 4},
    }
