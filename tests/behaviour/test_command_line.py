"""A pipeline run by its commands: what they print, what they end with, what they change."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tidegate.cli import decision_commands
from tidegate.cli.app import app
from tidegate.cli.look_commands import write_parquet
from tidegate.config import load_pipeline
from tidegate.errors import NotCommittable, SourceFileGone
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

PIPELINE = """
name: orders
source: {{kind: files, path: {root}/raw}}
event_time: {{column: ordered_at}}
rows: [{{name: has_amount, where: "amount > 0", on_failure: hold}}]
target: {{path: {root}/published, partition_by: {{dt: day(ordered_at)}}}}
execute: {{engine: local}}
"""
FIRST, SECOND, THIRD = "dt=2024-05-01", "dt=2024-05-02", "dt=2024-05-03"


class Command(Protocol):
    """Runs `tidegate` with arguments in this process."""

    def __call__(self, *arguments: str, answers: str = "") -> Result: ...


def add_rows(root: Path, name: str, *rows: tuple[int, str, float]) -> None:
    """Add a file to the source: (id, ISO time, amount)."""
    ids, times, amounts = zip(*rows, strict=True)
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in times]
    table = pa.table({"id": ids, "ordered_at": moments, "amount": amounts})
    (root / "raw").mkdir(exist_ok=True)
    pq.write_table(table, root / "raw" / f"{name}.parquet")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source of three days, the second with a row that holds it back; the third is not over."""
    pipelines = tmp_path / "pipelines"
    pipelines.mkdir()
    (pipelines / "orders.yaml").write_text(PIPELINE.format(root=tmp_path))
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(pipelines))
    add_rows(
        tmp_path,
        "first",
        (1, "2024-05-01T08:00", 10.0),
        (2, "2024-05-01T09:00", 20.0),
        (3, "2024-05-02T08:00", -1.0),
        (4, "2024-05-03T08:00", 5.0),
    )
    return tmp_path


@pytest.fixture
def tidegate(root: Path) -> Command:
    """Run a command in this process."""

    def run(*arguments: str, answers: str = "") -> Result:
        return CliRunner().invoke(app, list(arguments), input=answers, catch_exceptions=False)

    return run


def said(result: Result) -> Any:
    """Read what a command printed with --json: one object, nothing beside it."""
    return json.loads(result.stdout)


def states(tidegate: Command) -> dict[str, tuple[str, int, int]]:
    """Ask `status` for each partition's state, revision and rows."""
    report = said(tidegate("status", "orders", "--json"))
    return {
        "/".join("=".join(value) for value in item["state"]["partition"]["values"]): (
            item["name"],
            item["state"]["revision"],
            item["state"]["rows"],
        )
        for item in report["partitions"]
    }


def test_publish_after_load_commits_what_is_complete_and_good(tidegate: Command) -> None:
    loaded = tidegate("load", "orders")
    published = tidegate("publish", "orders")

    assert loaded.exit_code == 0
    assert "Next: tidegate publish orders" in loaded.stdout
    assert published.exit_code == 3
    assert states(tidegate) == {
        FIRST: ("committed", 1, 2),
        SECOND: ("held", 0, 0),
        THIRD: ("pending", 0, 0),
    }


def digest_of(tidegate: Command, partition: str) -> str:
    """Ask `explain` for the publication that waits for a decision."""
    digest: str = said(tidegate("explain", "orders", partition, "--json"))["report"][
        "proposed_digest"
    ]
    return digest


def follow(tidegate: Command, result: Result, verb: str) -> Result:
    """Type the command that was printed as the next step, as it stands."""
    words = re.search(rf"tidegate ({verb} .*)", result.stdout)
    assert words is not None
    return tidegate(*shlex.split(words.group(1)))


def typed(tidegate: Command, result: Result) -> Result:
    """Type the command that a message names, as it stands."""
    words = re.search(r"`tidegate ([^`]*)`", " ".join(result.output.split()))
    assert words is not None, result.output
    return tidegate(*shlex.split(words.group(1)))


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sees what is printed, and answers."""
    monkeypatch.setattr(decision_commands, "at_terminal", lambda: True)


@pytest.mark.parametrize("printed_by", ["publish", "explain"])
def test_printed_command_that_approves_names_what_was_shown_and_works(
    tidegate: Command, printed_by: str
) -> None:
    tidegate("load", "orders")
    shown = tidegate("publish", "orders")
    if printed_by == "explain":
        shown = tidegate("explain", "orders", SECOND)
    digest = digest_of(tidegate, SECOND)

    approved = follow(tidegate, shown, "approve")
    published = follow(tidegate, approved, "publish")

    assert f"tidegate approve orders {SECOND} --digest {digest}" in shown.stdout
    assert f"tidegate reject orders {SECOND} --digest {digest}" in shown.stdout
    assert digest in approved.stdout
    assert published.exit_code == 0
    assert states(tidegate)[SECOND] == ("committed", 1, 1)


def test_approved_partition_is_explained_with_the_command_that_publishes_it(
    tidegate: Command,
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    tidegate("approve", "orders", SECOND, "--digest", digest_of(tidegate, SECOND))

    explained = tidegate("explain", "orders", SECOND)

    assert "tidegate approve" not in explained.stdout
    assert follow(tidegate, explained, "publish").exit_code == 0
    assert states(tidegate)[SECOND] == ("committed", 1, 1)


def test_who_approved_a_revision_is_said_by_publish_and_by_explain_ever_after(
    tidegate: Command, root: Path
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    tidegate("approve", "orders", SECOND, "--digest", digest_of(tidegate, SECOND), "-m", "a gift")

    published = tidegate("publish", "orders", SECOND)
    add_rows(root, "late", (5, "2024-05-02T23:00", 1.0), (6, "2024-05-01T23:00", 1.0))
    tidegate("load", "orders")
    again = tidegate("publish", "orders")

    assert f"hold, approved by {getpass.getuser()}: a gift" in " ".join(published.stdout.split())
    assert "approved" not in again.stdout
    shown = " ".join(tidegate("explain", "orders", SECOND).stdout.split())
    assert re.search(rf"approved revision 1, by {getpass.getuser()}, \S+ \S+: a gift", shown)
    first, second = said(tidegate("explain", "orders", SECOND, "--json"))["revisions"]
    approval = first["approval"]
    assert (approval["approved"], approval["by"]) == (True, getpass.getuser())
    assert (approval["comment"], "approval" in second) == ("a gift", False)
    assert "approved" not in tidegate("explain", "orders", FIRST).stdout


def test_decision_says_to_machines_what_it_counts_for(tidegate: Command) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    digest = digest_of(tidegate, SECOND)

    approved = tidegate("approve", "orders", SECOND, "--digest", digest, "-m", "a refund", "--json")

    assert said(approved)["decision"] == "approved"
    assert said(approved)["digest"] == digest
    report = said(tidegate("status", "orders", "--json"))
    assert {item["proposed_digest"] for item in report["partitions"]} == {digest, None}


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_decision_without_a_digest_where_nobody_can_be_asked_names_the_option(
    tidegate: Command, verb: str, options: tuple[str, ...]
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")

    refused = tidegate(verb, "orders", SECOND, *options)

    assert refused.exit_code == 2
    assert "--digest" in refused.output
    assert states(tidegate)[SECOND][0] == "held"
    assert said(tidegate("explain", "orders", SECOND, "--json"))["proposed"]["approval"] is None


@pytest.mark.usefixtures("at_terminal")
@pytest.mark.parametrize(("answer", "decision"), [("y", True), ("n", None)], ids=["yes", "no"])
def test_approval_on_a_terminal_shows_rows_and_checks_and_asks(
    tidegate: Command, answer: str, decision: bool | None
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    digest = digest_of(tidegate, SECOND)

    asked = tidegate("approve", "orders", SECOND, answers=answer)

    assert asked.exit_code == (0 if decision else 3)
    for told in (digest, "revision 1 with 1 row", "row rule has_amount", "Approve this"):
        assert told in asked.stdout
    approval = said(tidegate("explain", "orders", SECOND, "--json"))["proposed"]["approval"]
    assert (approval and approval["approved"]) == decision


@pytest.mark.usefixtures("at_terminal")
def test_answer_on_a_terminal_counts_for_what_was_shown_before_it(
    tidegate: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")

    def answer_late(_question: str) -> bool:
        add_rows(root, "late", (5, "2024-05-02T23:00", -7.0))
        tidegate("load", "orders")
        tidegate("publish", "orders")
        return True

    monkeypatch.setattr(decision_commands.typer, "confirm", answer_late)
    approved = tidegate("approve", "orders", SECOND)

    assert approved.exit_code == 1
    assert "it was replaced by" in approved.output
    assert states(tidegate)[SECOND] == ("held", 0, 0)


@pytest.mark.follows("DecisionRefused", "NotHeld")
def test_decision_that_was_refused_is_given_on_what_explain_shows_then(
    tidegate: Command, root: Path
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    digest = digest_of(tidegate, SECOND)
    add_rows(root, "late", (5, "2024-05-02T23:00", -7.0), (6, "2024-05-02T22:00", 7.0))
    tidegate("load", "orders")
    tidegate("publish", "orders")
    refused = tidegate("approve", "orders", SECOND, "--digest", digest)

    looked = typed(tidegate, refused)
    approved = follow(tidegate, looked, "approve")

    assert (refused.exit_code, looked.exit_code, approved.exit_code) == (1, 0, 0)
    assert tidegate("publish", "orders", SECOND).exit_code == 0
    assert states(tidegate)[SECOND] == ("committed", 1, 3)
    nothing = tidegate("approve", "orders", SECOND, "--digest", digest)
    assert "committed" in typed(tidegate, nothing).stdout


@pytest.mark.follows("NotHeld")
def test_decision_on_what_was_not_checked_yet_is_asked_for_by_the_command_that_is_named(
    tidegate: Command,
) -> None:
    tidegate("load", "orders")
    early = tidegate("reopen", "orders", SECOND)

    assert "no decision is asked for" in early.output
    published = tidegate(*shlex.split(re.findall(r"`tidegate (publish [^`]*)`", early.output)[0]))

    assert published.exit_code == 3
    assert follow(tidegate, published, "approve").exit_code == 0


@pytest.mark.follows("WindowNotFound", "PipelineNotFound")
def test_name_or_number_that_was_wrong_is_found_where_the_message_says(
    tidegate: Command,
) -> None:
    tidegate("load", "orders")

    unknown = tidegate("load", "order")
    known = re.search(r"found: (\w+)\.", " ".join(unknown.output.split()))
    assert known is not None
    listed = typed(tidegate, tidegate("replay", known[1], "9"))

    assert "taken in" in listed.stdout
    assert tidegate("replay", "orders", "1").exit_code == 0


@pytest.mark.follows("PartitionPathInvalid")
def test_partition_that_was_spelled_wrong_is_explained_as_it_is_said_to_be_spelled(
    tidegate: Command,
) -> None:
    tidegate("load", "orders")

    refused = tidegate("explain", "orders", "day=2024-05-01")

    spelled = re.search(r"expected (dt=)…", refused.output)
    assert spelled is not None
    assert tidegate("explain", "orders", f"{spelled[1]}2024-05-01").exit_code == 0


@pytest.mark.follows("PartitionPathInvalid")
@pytest.mark.parametrize(
    "verb",
    [("explain",), ("publish",), ("rebuild",), ("reopen",), ("approve", "--digest", "abc")],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("text", ["", "2024-05-02~eu"], ids=["empty", "too many values"])
def test_name_that_can_be_no_partition_is_spelled_as_the_example_is(
    tidegate: Command, verb: tuple[str, ...], text: str
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")

    refused = tidegate(verb[0], "orders", text, *verb[1:])

    assert (refused.exit_code, "PIPELINE" in refused.output) == (2, False)
    shown = re.search(r"such as (dt=)\d{4}-\d\d-\d\d, or its key", refused.output)
    assert shown is not None
    assert tidegate("explain", "orders", f"{shown[1]}{SECOND.removeprefix('dt=')}").exit_code == 0


def test_held_partition_rejected_stays_back_until_reopened(tidegate: Command) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")

    rejected = tidegate("reject", "orders", SECOND, "--digest", digest_of(tidegate, SECOND))
    published = tidegate("publish", "orders", SECOND)

    assert published.exit_code == 3
    assert states(tidegate)[SECOND][0] == "held"
    explained = tidegate("explain", "orders", SECOND)
    for shown in (published, explained):
        assert f"tidegate reopen orders {SECOND}" in shown.stdout
        assert "tidegate approve" not in shown.stdout
    assert f"rejected by {getpass.getuser()}" in published.stdout
    assert follow(tidegate, rejected, "reopen").exit_code == 0
    assert states(tidegate)[SECOND][0] == "pending"


def test_partition_named_as_final_is_published_before_its_turn_with_who_and_why(
    tidegate: Command, root: Path
) -> None:
    tidegate("load", "orders")
    waiting = tidegate("publish", "orders", THIRD)

    published = tidegate("publish", "orders", THIRD, "--final", "-m", "the shop closed")

    assert waiting.exit_code == 3
    assert published.exit_code == 0
    told = json.loads((root / "published" / THIRD / "_SUCCESS").read_text())["override"]
    assert (told["by"], told["comment"]) == (getpass.getuser(), "the shop closed")
    assert told["overruled"].startswith("WATERMARK_BEHIND")
    assert "the shop closed; overruled WATERMARK_BEHIND" in tidegate(
        "explain", "orders", THIRD
    ).stdout.replace("\n", " ")


def test_partition_named_as_final_with_nothing_pending_is_said_to_be_unchanged(
    tidegate: Command, root: Path
) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders", THIRD, "--final", "-m", "the shop closed")
    marker = (root / "published" / THIRD / "_SUCCESS").read_bytes()

    again = tidegate("publish", "orders", THIRD, "--final", "-m", "another reason")

    assert again.exit_code == 3
    assert f"{THIRD}: nothing is pending, so nothing was committed." in again.stdout
    assert (root / "published" / THIRD / "_SUCCESS").read_bytes() == marker


@pytest.mark.follows("NotCommittable")
def test_remedy_of_a_partition_whose_turn_has_not_come_brings_it_out(tidegate: Command) -> None:
    tidegate("load", "orders")
    pipeline = open_pipeline("orders")
    with pytest.raises(NotCommittable) as refused:
        pipeline.propose(pipeline.parse_partition(THIRD), "cli", datetime.now(UTC))
    remedy = re.search(r"`tidegate ([^`]*)`", str(refused.value))
    assert remedy is not None

    published = tidegate(*shlex.split(remedy.group(1)))

    assert published.exit_code == 0
    assert states(tidegate)[THIRD] == ("committed", 1, 1)


def test_final_without_a_reason_is_refused(tidegate: Command) -> None:
    tidegate("load", "orders")

    assert tidegate("publish", "orders", THIRD, "--final").exit_code == 2
    assert states(tidegate)[THIRD][0] == "pending"


def test_final_without_a_name_closes_the_source(tidegate: Command) -> None:
    tidegate("load", "orders")

    # Rows that a rule holds still wait for a person.
    assert tidegate("publish", "orders", "--final").exit_code == 3
    found = {name: state for name, (state, *_) in states(tidegate).items()}
    assert found == {FIRST: "committed", SECOND: "held", THIRD: "committed"}


def test_load_without_changes_ends_with_three_and_changes_nothing(tidegate: Command) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    before = states(tidegate)

    again = tidegate("load", "orders")

    assert again.exit_code == 3
    assert "Nothing to load" in again.stdout
    assert states(tidegate) == before


def test_late_rows_make_a_second_revision(tidegate: Command, root: Path) -> None:
    """PC-V28: Flink writes the same empty marker again."""
    tidegate("load", "orders")
    tidegate("publish", "orders")

    add_rows(root, "late", (5, "2024-05-01T23:00", 1.0))
    tidegate("load", "orders")
    tidegate("publish", "orders", FIRST)

    assert states(tidegate)[FIRST] == ("committed", 2, 3)


def test_publish_shows_the_rows_that_wait_as_status_does(tidegate: Command, root: Path) -> None:
    tidegate("load", "orders")
    first = said(tidegate("publish", "orders", "--json"))["outcomes"]
    add_rows(root, "late", (5, "2024-05-01T23:00", -7.0), (6, "2024-05-01T22:00", 7.0))
    tidegate("load", "orders")
    shown = tidegate("publish", "orders").stdout
    (late, *_) = said(tidegate("publish", "orders", FIRST, "--json"))["outcomes"]

    assert [(it["state"], it["rows"], it.get("rows_pending")) for it in first] == [
        ("committed", 2, None),
        ("held", 0, 1),
        ("pending", 0, 1),
    ]
    assert "pending rows" in shown
    assert (late["state"], late["rows"], late["rows_pending"]) == ("held", 2, 2)
    reports = said(tidegate("status", "orders", "--json"))["partitions"]
    assert [item["rows_pending"] for item in reports] == [2, 1, 1]


def test_plan_as_dry_run_names_partitions_and_takes_nothing(tidegate: Command) -> None:
    previewed = tidegate("plan", "--dry-run", "orders", "--json")

    assert said(previewed)["partitions"] == {FIRST: 2, SECOND: 1, THIRD: 1}
    assert tidegate("status", "orders").exit_code == 3


def test_replay_of_an_unchanged_window_changes_nothing(tidegate: Command) -> None:
    tidegate("load", "orders")

    replayed = tidegate("replay", "orders", "1")

    assert replayed.exit_code == 0
    assert "window 1: already taken in, same plan" in replayed.stdout
    assert "kept" not in replayed.stdout
    again = said(tidegate("replay", "orders", "1", "--json"))["summary"]
    assert (again["rows_read"], again["files_written"]) == (0, 0)


def test_explain_of_a_pending_partition_gives_the_missing_time(tidegate: Command) -> None:
    tidegate("load", "orders")

    explained = tidegate("explain", "orders", THIRD)

    assert "revision –" in " ".join(explained.stdout.split())
    assert "lateness 0s" in " ".join(explained.stdout.split())
    assert explained.exit_code == 0
    assert "WATERMARK_BEHIND" in explained.stdout


def test_instants_tell_which_window_took_them(tidegate: Command) -> None:
    before = said(tidegate("instants", "orders", "--json"))["instants"]
    tidegate("load", "orders")

    after = said(tidegate("instants", "orders", "--json"))["instants"]

    assert [item["window"] for item in before] == [None]
    assert [item["window"] for item in after] == [1]


def test_changes_with_a_limit_say_that_there_are_more(tidegate: Command) -> None:
    shown = said(tidegate("changes", "orders", "--limit", "3", "--json"))

    assert [row["id"] for row in shown["rows"]] == [1, 2, 3]
    assert shown["more"] is True


def test_changes_into_a_file_are_all_rows(tidegate: Command, root: Path) -> None:
    written = tidegate("changes", "orders", "--out", str(root / "changes.parquet"))

    assert written.exit_code == 0
    assert pq.read_table(root / "changes.parquet")["id"].to_pylist() == [1, 2, 3, 4]


def test_fsck_after_a_file_vanished_names_it(tidegate: Command, root: Path) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    assert tidegate("fsck", "orders").exit_code == 0

    (part,) = (root / "published" / FIRST).glob("part-*")
    part.unlink()

    found = tidegate("fsck", "orders")
    assert found.exit_code == 1
    assert part.name in found.stdout.replace("\n", "")


def test_gc_without_delete_only_lists(tidegate: Command, root: Path) -> None:
    tidegate("load", "orders")
    tidegate("publish", "orders")
    add_rows(root, "late", (5, "2024-05-01T23:00", 1.0))
    tidegate("load", "orders")
    tidegate("rebuild", "orders", FIRST)
    tidegate("publish", "orders", FIRST)

    listed = said(tidegate("gc", "orders", "--older-than", "0s", "--json"))
    deleted = said(tidegate("gc", "orders", "--older-than", "0s", "--delete", "--json"))
    nothing = tidegate("gc", "orders", "--older-than", "0s")

    assert listed["files"]
    assert deleted["files"] == listed["files"]
    assert nothing.exit_code == 3


def test_fsck_of_a_sound_table_tells_what_gc_would_delete(tidegate: Command, root: Path) -> None:
    file = root / "pipelines" / "orders.yaml"
    file.write_text(f"{file.read_text()}\nretention: {{age: 0s}}\n")
    tidegate("load", "orders")
    tidegate("publish", "orders")
    assert "Nobody needs" not in tidegate("fsck", "orders").stdout
    add_rows(root, "late", (5, "2024-05-01T23:00", 1.0))
    tidegate("load", "orders")
    tidegate("rebuild", "orders", FIRST)
    tidegate("publish", "orders", FIRST)

    found = tidegate("fsck", "orders")
    counted = said(tidegate("fsck", "orders", "--json"))

    assert found.exit_code == 0
    assert counted["findings"] == counted["details"] == []
    assert f"Nobody needs {counted['garbage']['files']} file" in found.stdout
    assert "Next: tidegate gc orders" in found.stdout
    assert len(said(tidegate("gc", "orders", "--json"))["files"]) == counted["garbage"]["files"]


def test_status_counts_files_and_small_ones(tidegate: Command, root: Path) -> None:
    assert tidegate("status", "orders", "--files").exit_code == 3
    tidegate("load", "orders")
    tidegate("publish", "orders")

    (first,) = said(tidegate("status", "orders", "--files", "--json"))["partitions"]
    shown = tidegate("status", "orders", "--files", "--small-file", "1")

    size = sum(path.stat().st_size for path in (root / "published" / FIRST).glob("part-*"))
    assert (first["partition"], first["files"], first["bytes"]) == (FIRST, 1, size)
    assert (first["small_files"], first["files_after"]) == (1, 1)
    assert "1 file in 1 partition, 0 of them small" in shown.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("status", "--files"), id="no pipeline"),
        pytest.param(("status", "orders", "--files", "--small-file", "much"), id="no size"),
    ],
)
def test_status_of_files_that_cannot_be_counted_is_misuse(
    tidegate: Command, arguments: tuple[str, ...]
) -> None:
    assert tidegate(*arguments).exit_code == 2


def test_check_of_a_sound_pipeline_finds_no_problem(tidegate: Command) -> None:
    checked = tidegate("check", "orders", "--json")

    outcomes = {line["subject"]: line["outcome"] for line in said(checked)["lines"]}
    assert checked.exit_code == 0
    assert {outcomes[f"orders: {part}"] for part in ("file", "target", "suite", "source")} == {"ok"}


def test_check_of_a_vanished_source_names_it_with_a_remedy(tidegate: Command, root: Path) -> None:
    (root / "raw" / "first.parquet").unlink()
    (root / "raw").rmdir()

    checked = tidegate("check", "orders", "--json")

    (line,) = [line for line in said(checked)["lines"] if line["outcome"] == "problem"]
    assert checked.exit_code == 1
    assert line["subject"] == "orders: source"
    assert line["remedy"]


def with_start(root: Path, start: str) -> None:
    file = root / "pipelines" / "orders.yaml"
    file.write_text(file.read_text().replace("kind: files", f"kind: files, start: {start}"))


@pytest.mark.parametrize("start", ["{from: 2026-11-23}", "{after: 17}"])
def test_check_of_a_start_that_the_load_refuses_names_it_with_a_remedy(
    tidegate: Command, root: Path, start: str
) -> None:
    with_start(root, start)

    checked = tidegate("check", "orders", "--json")
    loaded = tidegate("load", "orders", "--json")

    (problem,) = [line for line in said(checked)["lines"] if line["outcome"] == "problem"]
    refused = said(loaded)["error"]
    assert (checked.exit_code, problem["subject"]) == (1, "orders: source")
    said_by_load = refused["message"].replace("PIPELINE", "orders")
    assert f"{problem['found']}. {problem['remedy']}" == said_by_load


@pytest.mark.parametrize(
    "start", ["latest", "{from: 2024-11-23T00:00Z}", "{after: 2099-01-01T00:00Z}"]
)
def test_check_of_a_start_that_can_be_found_passes_and_fixes_nothing(
    tidegate: Command, root: Path, start: str
) -> None:
    with_start(root, start)

    assert tidegate("check", "orders").exit_code == 0
    assert sorted(path.name for path in root.iterdir()) == ["home", "pipelines", "raw"]


def test_check_after_the_first_load_no_longer_looks_for_the_start(
    tidegate: Command, root: Path
) -> None:
    tidegate("load", "orders")
    with_start(root, "{after: 17}")

    assert tidegate("check", "orders").exit_code == 0


@pytest.mark.follows("NameTaken")
@pytest.mark.parametrize("arguments", [("check",), ("check", "orders")], ids=["all", "one"])
@pytest.mark.parametrize(
    ("copy", "named"),
    [
        pytest.param(PIPELINE, "is taken by", id="a copy"),
        pytest.param("name: orders\ntarget: [", "cannot be read as YAML", id="no YAML"),
    ],
)
def test_check_names_a_file_that_says_the_name_of_another_which_goes_on(
    tidegate: Command, root: Path, arguments: tuple[str, ...], copy: str, named: str
) -> None:
    second = root / "pipelines" / "orders_copy.yaml"
    second.write_text(copy.format(root=root))

    checked = tidegate(*arguments, "--json")

    lines = said(checked)["lines"]
    (problem,) = [line for line in lines if line["outcome"] == "problem"]
    assert checked.exit_code == 1
    assert named in problem["found"]
    assert str(second) in problem["found"]
    assert "orders: source" in {line["subject"] for line in lines}
    assert tidegate("load", "orders").exit_code == 0

    # What the message says to do.
    second.unlink()
    assert tidegate(*arguments).exit_code == 0


def test_init_for_a_table_writes_a_file_that_passes_the_check(
    tidegate: Command, root: Path
) -> None:
    arguments = ("--from", f"{root}/raw", "--name", "sales", "--target", f"{root}/sales")

    written = tidegate("init", *arguments)

    assert written.exit_code == 0
    assert f"it publishes to {root}/sales." in written.output
    assert tidegate("check", "sales").exit_code == 0
    assert tidegate("init", *arguments).exit_code == 2


@pytest.mark.follows("NameKnown")
@pytest.mark.parametrize("other", ["source", "target.path"])
def test_init_under_a_name_that_the_ledger_has_for_another_pipeline_is_refused(
    tidegate: Command, root: Path, tmp_path: Path, other: str
) -> None:
    shutil.copytree(root / "raw", tmp_path / "raw_too")
    assert tidegate("load", "orders").exit_code == 0
    known = load_pipeline(root / "pipelines" / "orders.yaml")
    Path(known.file).unlink()
    raw = tmp_path / "raw_too" if other == "source" else root / "raw"
    target = known.target.path if other == "source" else str(tmp_path / "elsewhere")

    refused = tidegate("init", "--from", str(raw), "--name", "orders", "--target", target)

    assert (refused.exit_code, "NameKnown" in refused.output) == (2, True)
    assert f"whose `{other}` is" in refused.output
    assert not Path(known.file).exists()
    # What the message says to do.
    elsewhere = ("--target", str(tmp_path / "elsewhere"))
    assert tidegate("init", "--from", str(raw), "--name", "orders_2", *elsewhere).exit_code == 0
    same = ("--from", f"{root}/raw", "--name", "orders", "--target", known.target.path)
    assert tidegate("init", *same).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("load", "nope"), "pipeline 'nope'", id="pipeline"),
        pytest.param(("explain", "orders", "dt"), "no partition", id="partition"),
        pytest.param(("replay", "orders", "9"), "no window 9", id="window"),
        pytest.param(("load", "orders", "--until", "soon"), "expected an ISO date", id="time"),
        pytest.param(
            ("load", "orders", "--from", "2024-05-01"), "requires a later --until", id="interval"
        ),
        pytest.param(("gc", "orders", "--older-than", "3"), "a duration such as", id="age"),
    ],
)
def test_bad_argument_ends_with_two_and_says_what_was_expected(
    tidegate: Command, arguments: tuple[str, ...], message: str
) -> None:
    tidegate("load", "orders")

    result = tidegate(*arguments)

    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_schema_is_json(tidegate: Command) -> None:
    assert said(tidegate("schema"))["title"] == "Tidegate pipeline"


def test_partitions_that_status_lists_for_machines_are_taken_by_commands(
    tidegate: Command,
) -> None:
    tidegate("load", "orders")

    report = said(tidegate("status", "orders", "--json"))
    listed = [item["partition"] for item in report["partitions"]]

    assert listed == ["dt=2024-05-01", "dt=2024-05-02", "dt=2024-05-03"]
    for partition in listed:
        assert said(tidegate("explain", "orders", partition, "--json"))["partition"] == partition


def test_status_without_a_name_shows_every_pipeline(root: Path, tidegate: Command) -> None:
    other = PIPELINE.replace("orders", "returns").replace("/published", "/elsewhere")
    (root / "pipelines" / "returns.yaml").write_text(other.format(root=root))
    (root / "pipelines" / "broken.yaml").write_text("name: broken\nsource: 3\n")

    before = said(tidegate("status", "--json"))
    tidegate("load", "orders")
    tidegate("publish", "orders")
    add_rows(root, "late", (9, "2024-05-01T10:00", 1.0))
    tidegate("load", "orders")
    after, shown = said(tidegate("status", "--json")), tidegate("status")

    assert before == {"pipelines": [], "never_loaded": ["broken", "orders", "returns"]}
    (overview,) = after["pipelines"]
    assert after["never_loaded"] == ["broken", "returns"]
    assert overview["partitions"] == Counter(name for name, *_ in states(tidegate).values())
    assert overview["partitions"] == {"late": 1, "held": 1, "pending": 1}
    report = said(tidegate("status", "orders", "--json"))
    assert overview["pipeline"] == report["pipeline"]
    assert (overview["open_window"], overview["last_load"]) == (
        None,
        report["windows"][-1]["sealed_at"],
    )
    assert shown.exit_code == 0
    assert re.findall(r"^│ (\w+)", shown.stdout, re.MULTILINE) == ["orders", "broken", "returns"]


def test_changes_that_end_half_way_leave_the_file_as_it_was(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1, 2]})
        raise SourceFileGone(path="b.parquet")

    file = tmp_path / "rows.parquet"
    file.write_bytes(b"before")
    reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())

    with pytest.raises(SourceFileGone):
        write_parquet(reader, file)

    assert [found.name for found in tmp_path.iterdir()] == ["rows.parquet"]
    assert file.read_bytes() == b"before"
