"""Commits that are refused: what the message says, typed as it stands, ends well."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, decide, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import PolicyFailed, PolicyRefused, PolicyUnknown, PublicationLapsed
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.testing import Result

FIRST = "dt=2026-02-01"
NOTED = """
class Noted:
    def commit(self, context):
        pass
"""
FAILING = """
class Noted:
    def __init__(self, catalog="gone"):
        self.catalog = catalog

    def commit(self, context):
        if self.catalog == "gone":
            raise RuntimeError("the catalog was decommissioned")
"""
FAILS: Sequence[Any] = [{"custom": "noted:Noted"}, "success-file"]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    return lake


def typed(line: str) -> Result:
    program, *arguments = shlex.split(line)
    assert program == "tidegate"
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def command(text: str) -> str:
    """Find the one command of a message."""
    (found,) = re.findall("`(tidegate [^`]*)`", text)
    return found


def custom(reference: str) -> dict[str, Any]:
    return {"commit": {"policies": [{"custom": reference}, "success-file"]}}


UNKNOWN = {"module": "no_such_module:Noted", "class": "json:Noted", "method": "json:JSONDecoder"}
CORRECTED = [(name, way) for name in UNKNOWN for way in ("success-file", "noted:Noted")]


def unknown_until_imported(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import `module` anew in this test, and leave no trace of it to the next one."""
    monkeypatch.setitem(sys.modules, module, sys)
    del sys.modules[module]


@pytest.mark.follows("PolicyUnknown")
@pytest.mark.parametrize(("name", "way"), [*CORRECTED, ("module", "no_such_module:Noted")])
def test_partition_whose_policy_is_unknown_comes_out_once_it_is_corrected(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    reference = UNKNOWN[name]
    for module in ("noted", "no_such_module"):
        unknown_until_imported(module, monkeypatch)
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline(**custom(reference)))
    with pytest.raises(PolicyUnknown, match=r"commit\.policies"):
        lake.pipeline(**custom(reference)).publish(day(1), process_owner("cli"), NOW)
    assert lake.listed_ids() == {}

    (lake.root / f"{way.partition(':')[0]}.py").write_text(NOTED)
    monkeypatch.syspath_prepend(lake.root)
    publish(lake.pipeline(**({} if way == "success-file" else custom(way))))

    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids


def write_module(lake: SmallLake, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """Change what `noted` holds where commits run, as another process would find it."""
    unknown_until_imported("noted", monkeypatch)
    (lake.root / "noted.py").unlink(missing_ok=True)
    if text is not None:
        (lake.root / "noted.py").write_text(text)
    importlib.invalidate_caches()


BROKEN = {"syntax": "class Noted", "import": "1 / 0", "class": "class Noted:\n    {}['key']"}


@pytest.mark.follows("PolicyUnknown")
@pytest.mark.parametrize("name", BROKEN)
def test_policy_whose_module_raises_anything_is_unknown_until_it_is_corrected(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(lake.root)
    write_module(lake, monkeypatch, BROKEN[name])
    lake.keys = {"commit": {"trigger": "process-time", "policies": FAILS}}
    ids = lake.commit({1: 4})
    load(lake.pipeline())
    with pytest.raises(PolicyUnknown, match="Error: "):
        lake.pipeline().publish(day(1), process_owner("cli"), NOW)

    write_module(lake, monkeypatch, NOTED)

    check_ends_well(lake, ids)


def begin(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, policies: Sequence[Any] = FAILS
) -> list[int]:
    """Begin a commit whose policy fails whenever it is asked; the ids of its rows."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(lake.root)
    (lake.root / "other.py").write_text(NOTED)
    write_module(lake, monkeypatch, FAILING)
    lake.keys = {"commit": {"trigger": "process-time", "policies": policies}}
    ids = lake.commit({1: 4})
    load(lake.pipeline())
    for _ in range(2):
        with pytest.raises(PolicyFailed, match=r"'noted:Noted' failed.*`commit\.policies`"):
            lake.pipeline().publish(day(1), process_owner("cli"), NOW)
    return ids


def check_ends_well(lake: SmallLake, ids: list[int]) -> None:
    for line in (f"tidegate publish orders {FIRST}", "tidegate fsck orders"):
        result = typed(line)
        assert result.exit_code == 0, result.output
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    (lake.root / "ledger.db").unlink()
    assert typed("tidegate fsck orders --rebuild").exit_code == 0
    assert list(lake.pipeline().findings()) == []
    assert lake.pipeline().ledger.publications.unrecorded(day(1)) is None


WAYS: dict[str, tuple[str, Sequence[Any]]] = {
    "taken out": (FAILING, ["success-file"]),
    "all taken out": (FAILING, []),
    "without the marker": (FAILING, [{"custom": "other:Noted"}]),
    "another one": (FAILING, [{"custom": "other:Noted"}, "success-file"]),
    "parameters": (FAILING, [{"custom": "noted:Noted", "parameters": ["new"]}, "success-file"]),
    "module": (NOTED, FAILS),
}


@pytest.mark.follows("PolicyFailed")
@pytest.mark.parametrize("way", WAYS)
def test_begun_commit_whose_policy_failed_ends_with_what_the_file_names(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    ids = begin(lake, monkeypatch)
    module, policies = WAYS[way]

    write_module(lake, monkeypatch, module)
    lake.file(commit={"policies": policies})

    check_ends_well(lake, ids)


@pytest.mark.follows("PolicyUnknown")
@pytest.mark.parametrize("way", WAYS)
def test_begun_commit_whose_policy_is_gone_ends_with_what_the_file_names(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    ids = begin(lake, monkeypatch)
    write_module(lake, monkeypatch, None)
    with pytest.raises(PolicyUnknown, match="even if the commit has begun"):
        lake.pipeline().publish(day(1), process_owner("cli"), NOW)
    module, policies = WAYS[way]

    write_module(lake, monkeypatch, module)
    lake.file(commit={"policies": policies})

    check_ends_well(lake, ids)


@pytest.mark.follows("PolicyUnknown")
def test_begun_commit_gets_the_marker_that_the_file_names_by_now(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = begin(lake, monkeypatch, FAILS[:1])

    lake.file(commit={"policies": ["success-file"]})

    check_ends_well(lake, ids)


@pytest.mark.follows("PublicationLapsed")
def test_commit_that_lapsed_is_published_by_the_command_that_is_printed(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    pipeline = lake.pipeline()
    load(pipeline)
    proposed = pipeline.propose(day(1), process_owner("cli"), NOW)
    assert proposed is not None
    pipeline.gate(day(1), proposed.digest, process_owner("cli"), NOW)
    ids += lake.commit({1: 3, 2: 1})[:3]
    load(pipeline)
    with pytest.raises(PublicationLapsed) as lapsed:
        pipeline.commit(day(1), proposed.digest, process_owner("cli"), NOW)

    result = typed(command(str(lapsed.value)))

    assert result.exit_code == 0, result.output
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids


@pytest.mark.follows("PublicationLapsed")
def test_decision_on_what_was_replayed_since_is_shown_again_by_the_command(
    lake: SmallLake,
) -> None:
    lake.keys = {"rows": [{"name": "sane", "where": "amount < 9", "on_failure": "hold"}]}
    ids = lake.commit({1: 4, 2: 1}, amount=10)[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    finer = lake.pipeline(source={"read": {"filter": "id <> 2"}})
    finer.finish_load(finer.replay(1, Run("again", "cli"), NOW), NOW, local)
    with pytest.raises(PublicationLapsed) as lapsed:
        decide(finer, day(1))

    assert typed(command(str(lapsed.value))).exit_code == 3
    decide(lake.pipeline(), day(1))

    assert typed(command(str(lapsed.value))).exit_code == 0
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == [ids[0], *ids[2:]]


GUARANTEES = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text()
(ANNOUNCE,) = re.findall(r"```python\n(class Announce.*?)```", GUARANTEES, re.DOTALL)


@pytest.mark.follows("PolicyRefused")
def test_commit_that_a_policy_refuses_begins_once_the_policy_agrees(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(lake.root)
    ids = lake.commit({1: 4})
    lake.keys = {"commit": {"trigger": "process-time"}}
    load(lake.pipeline())
    publish(lake.pipeline())
    before = lake.stamps()
    write_module(lake, monkeypatch, f"import os\n{ANNOUNCE}")
    log = lake.root / "shop" / "published.log"
    policies = [{"custom": "noted:Announce", "parameters": [str(log)]}, "success-file"]
    lake.keys = {"commit": {"trigger": "process-time", "policies": policies}}
    more = lake.commit({1: 2})
    load(lake.pipeline())

    with pytest.raises(PolicyRefused, match=r"policy 'noted:Announce' refuses it: .*out of reach"):
        lake.pipeline().publish(day(1), process_owner("cli"), NOW)

    checked = typed("tidegate check orders")
    assert checked.exit_code != 0
    assert "orders: commit" in checked.output
    # Not a marker was retracted for it.
    assert lake.stamps() == before
    log.parent.mkdir()
    checked = typed("tidegate check orders")
    assert "noted:Announce: a line in" in " ".join(checked.output.split())
    publish(lake.pipeline())
    assert lake.ids()[FIRST] == [*ids, *more]
    assert log.read_text() == f"{FIRST} 2 6\n"
