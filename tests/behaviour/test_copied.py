"""A copied folder of a pipeline never deletes or ends what the original published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import merged, published_ids, stamps
from tidegate.cli.app import app
from tidegate.errors import LedgerUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.testing import Result

DESTRUCTIVE = [
    pytest.param(("reset", "--drop-target", "--yes"), id="reset"),
    pytest.param(("retire", "--yes"), id="retire"),
]
FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"


class Folder:
    """A folder with everything of one pipeline: its file, home, source, target and work."""

    def __init__(self, root: Path) -> None:
        self.root, self.keys = root, dict[str, Any]()
        (root / "published").mkdir(parents=True, exist_ok=True)
        (root / "source").mkdir(exist_ok=True)

    @property
    def target(self) -> Path:
        return self.root / "published" / "orders"

    @property
    def work(self) -> Path:
        return self.root / "published" / ".tidegate-orders"

    @property
    def ledger(self) -> Path:
        return self.root / ".tidegate" / "ledger.db"

    def copied(self, **keys: Any) -> Folder:
        """Copy all of it, and let the copy publish into its own target."""
        root = self.root.with_name("copy")
        shutil.copytree(self.root, root)
        copy = Folder(root)
        copy.keys = merged(self.keys, keys)
        return copy

    def brings(self, name: str, days: Mapping[int, int]) -> None:
        """Put a file with one row per day, each with an id."""
        rows = [{"id": row, "at": f"2026-02-{day:02d}T06:00:00Z"} for day, row in days.items()]
        (self.root / "source" / f"{name}.json").write_text("\n".join(map(json.dumps, rows)))

    def run(self, verb: str, *arguments: str) -> Result:
        """Type a command in the folder's home."""
        usual = {
            "name": "orders",
            "source": {
                "kind": "files",
                "format": "json",
                "path": str(self.root / "source"),
                "columns": {"id": "long", "at": "timestamp"},
            },
            "event_time": "at",
            "target": {"path": str(self.target), "partition_by": {"dt": "day(at)"}},
            "commit": {"trigger": "process-time"},
        }
        file = self.root / "orders.yaml"
        file.write_text(json.dumps(merged(usual, self.keys)))
        home = {"TIDEGATE_HOME": str(self.root / ".tidegate"), "TIDEGATE_LEDGER": None}
        line = [verb, str(file), *arguments]
        return CliRunner().invoke(app, line, env=home, catch_exceptions=False)

    def does(self, verb: str, *arguments: str) -> None:
        """Type a command that succeeds."""
        done = self.run(verb, *arguments)
        assert done.exit_code == 0, done.output

    def refuses(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Type a command that is refused; the error."""
        found = self.run(verb, *arguments, "--json")
        assert found.exit_code == 1, found.output
        error: dict[str, Any] = json.loads(found.stdout)["error"]
        return error

    def takes_in(self) -> None:
        """Load and publish."""
        self.does("load")
        self.does("publish")

    def stamps(self) -> dict[str, tuple[str, int]]:
        """Return the files of target and work directory but the locks, which are taken to look."""
        found = stamps(self.root / "published")
        return {name: stamp for name, stamp in found.items() if "/locks/" not in name}

    def ids(self) -> dict[str, list[int]]:
        return published_ids(self.target)


@pytest.fixture
def original(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "original")
    folder.brings("a", {1: 1, 2: 2})
    folder.takes_in()
    return folder


@pytest.mark.parametrize("pointed", ["own target", "original's target"])
@pytest.mark.parametrize("further", ["equal", "loaded", "published"])
@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_copy_neither_drops_nor_retires_what_the_original_published(
    original: Folder, command: tuple[str, ...], further: str, pointed: str
) -> None:
    copy = original.copied()
    if pointed == "original's target":
        copy.keys = {"target": {"path": str(original.target)}}
    if further != "equal":
        original.brings("b", {1: 3})
        original.does("load")
    if further == "published":
        original.does("publish")
    before = original.stamps(), copy.stamps()

    refused = copy.refuses(*command)

    assert refused["code"] == "LedgerCopied"
    for named in (original.ledger, copy.ledger, original.target, original.work):
        assert str(named) in refused["message"]
    assert (original.stamps(), copy.stamps()) == before
    original.does("fsck")


def test_load_of_a_copy_says_that_it_is_one(original: Folder) -> None:
    """It would otherwise name the command that drops."""
    assert original.copied().refuses("load")["code"] == "LedgerCopied"


@pytest.mark.follows("LedgerCopied")
def test_copy_becomes_a_pipeline_of_its_own(original: Folder) -> None:
    copy = original.copied()
    copy.refuses("reset", "--drop-target", "--yes")

    new = str(copy.root / "published" / "orders_2")
    copy.keys = {"name": "orders_2", "target": {"path": new}}
    copy.brings("b", {1: 3})
    copy.takes_in()

    assert published_ids(Path(new)) == {FIRST: [1, 3], SECOND: [2]}
    assert original.ids() == {FIRST: [1], SECOND: [2]}
    copy.does("fsck")
    original.does("fsck")
    copy.does("reset", "--drop-target", "--yes")
    assert original.ids() == {FIRST: [1], SECOND: [2]}


@pytest.mark.follows("LedgerCopied")
def test_original_is_worked_on_with_its_own_ledger(original: Folder) -> None:
    copy = original.copied()
    copy.refuses("reset", "--drop-target", "--yes")

    original.does("reset", "--drop-target", "--yes")

    assert original.ids() == {}
    assert copy.ids() == {FIRST: [1], SECOND: [2]}


@pytest.mark.follows("LedgerCopied")
@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_copied_ledger_is_gone_on_with_once_the_other_one_is_moved_away(
    original: Folder, command: tuple[str, ...]
) -> None:
    shutil.copytree(original.root / ".tidegate", original.root / "elsewhere" / ".tidegate")
    copy = Folder(original.root / "elsewhere")
    copy.keys = {
        "target": {"path": str(original.target)},
        "source": {"path": str(original.root / "source")},
    }
    copy.refuses(*command)

    original.ledger.rename(original.root / "away.db")
    copy.does(*command)

    assert (original.ids() == {}) == ("--drop-target" in command)


def test_ledger_that_was_moved_is_known_in_its_new_place(original: Folder) -> None:
    folder = Folder(original.root.with_name("moved"))
    folder.keys = {"source": {"path": str(original.root / "source")}}
    for name in ("published", ".tidegate"):
        shutil.rmtree(folder.root / name, ignore_errors=True)
        (original.root / name).rename(folder.root / name)
    original.brings("b", {1: 3})

    folder.takes_in()

    assert json.loads((folder.work / "owner.json").read_text())["ledger_place"] == str(
        folder.ledger
    )
    assert folder.ids() == {FIRST: [1, 3], SECOND: [2]}
    copy = folder.copied()
    assert copy.refuses("retire", "--yes")["code"] == "LedgerCopied"
    folder.does("reset", "--drop-target", "--yes")


def test_load_goes_on_though_nobody_may_look_where_the_ledger_was(
    original: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(place: str, *_: str) -> bool:
        raise LedgerUnreachable(ledger=place, problem="permission denied")

    file = original.work / "owner.json"
    noted = {**json.loads(file.read_text()), "ledger_place": "/elsewhere/ledger.db"}
    file.write_text(json.dumps(noted))
    monkeypatch.setattr("tidegate.pipeline.state.copied.has_ledger", denied)
    original.brings("b", {1: 3})

    original.takes_in()

    assert original.ids() == {FIRST: [1, 3], SECOND: [2]}
    assert json.loads(file.read_text()) == noted
    assert original.refuses("retire", "--yes")["code"] == "LedgerUnreachable"


@pytest.mark.parametrize("content", [None, "[" * 100_000, '{"format": 9}'])
def test_file_above_that_is_of_something_else_refuses_nothing(
    original: Folder, content: str | None
) -> None:
    above = original.root / "owner.json"
    if content is None:
        above.mkdir()
    else:
        above.write_text(content)
    original.brings("b", {1: 3})

    original.takes_in()

    assert original.ids() == {FIRST: [1, 3], SECOND: [2]}


def test_work_directory_that_does_not_say_where_its_ledger_is_says_so_after_a_load(
    original: Folder,
) -> None:
    file = original.work / "owner.json"
    told = json.loads(file.read_text())
    place = told.pop("ledger_place")
    file.write_text(json.dumps(told))

    original.brings("b", {1: 3})
    original.does("load")

    assert json.loads(file.read_text()) == {**told, "ledger_place": place}
    original.does("reset", "--drop-target", "--yes")


@pytest.mark.follows("LedgerBehind")
@pytest.mark.parametrize("further", ["loaded", "published", "compacted"])
def test_ledger_that_is_behind_drops_nothing(original: Folder, further: str) -> None:
    if further == "compacted":
        original.brings("b", {1: 3})
        original.takes_in()
    kept = original.root / "kept"
    shutil.copytree(original.root / ".tidegate", kept)
    if further == "compacted":
        original.does("compact", "--small-file", "1MiB")
    else:
        original.brings("b", {1: 3})
        original.does("load")
    if further == "published":
        original.does("publish")
    shutil.rmtree(original.root / ".tidegate")
    kept.rename(original.root / ".tidegate")
    before = original.stamps()

    refused = original.refuses("reset", "--drop-target", "--yes")

    assert refused["code"] == "LedgerBehind"
    assert original.stamps() == before
    original.does("fsck", "--rebuild")
    original.does("reset", "--drop-target", "--yes")
    original.takes_in()
    assert original.ids()[SECOND] == [2]
    original.does("fsck")
