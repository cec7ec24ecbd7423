"""Check the requirements of one pipeline: file, secrets, target, suite, source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.cli import wording
from tidegate.cli.checks import Line, ok, refusal
from tidegate.cli.target_checks import check_shared
from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.policies import CommitAhead, foreseen, open_policy, shown_table
from tidegate.config import (
    PipelineConfig,
    claimants,
    load_pipeline,
    pipeline_files,
    resolve_secret,
)
from tidegate.config.document import Document
from tidegate.config.partition_keys import field_text
from tidegate.errors import (
    NameTaken,
    PartitionsUnlikeSource,
    PlacesMoved,
    PredicateInvalid,
    TidegateError,
    WorkElsewhere,
)
from tidegate.errors.commands import naming
from tidegate.gate import load_suite, suite_mistakes
from tidegate.metastore.connections import answering_within
from tidegate.model.partition_value import INTERVALS
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.executors import table_in_spark
from tidegate.pipeline.load import rehearsal
from tidegate.pipeline.load.event_units import unit_doubt_of_source
from tidegate.pipeline.load.replacing import check_keys
from tidegate.pipeline.state.late_root import check_own_late_root
from tidegate.pipeline.state.reading import Reading, published_schema
from tidegate.pipeline.state.vanished import naming_vanished
from tidegate.pipeline.state.work import check_identity, check_owner_or_move, check_tables
from tidegate.source import overlooked
from tidegate.stage.partition_split import columns_of
from tidegate.storage import same_file_system
from tidegate.target.iceberg_columns import table_columns
from tidegate.target.listed_columns import listed_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from tidegate.commit.policies import CommitPolicy
    from tidegate.config import PolicyConfig, TargetConfig
    from tidegate.config.document import Place
    from tidegate.model.plan import Pin
    from tidegate.pipeline import Pipeline
    from tidegate.source.protocol import Source

_METASTORE_SECONDS = 20.0
"""Somebody waits for the answer of a check, while a commit waits for a metastore that is busy."""


class _Several(Exception):
    """Everything that a load or a gate would refuse, found by one check."""

    def __init__(self, refusals: Sequence[tuple[Place, TidegateError]]) -> None:
        super().__init__(refusals)
        self.refusals = refusals


@dataclass(frozen=True)
class _Looked:
    """A pipeline, and one look at its source for all checks."""

    pipeline: Pipeline
    now: datetime

    @property
    def target(self) -> TargetConfig:
        return self.pipeline.config.target

    @cached_property
    def source(self) -> Source:
        # What a look writes, such as a listing, stays in memory.
        return self.pipeline.looking().source

    @cached_property
    def pin(self) -> Pin:
        return self.source.timeline.pin(self.now)

    @cached_property
    def reading(self) -> Reading | None:
        """The source with its filter; None while a directory has no file that tells its columns."""
        if self.pin.head is None and not self.pin.schema:
            return None
        return Reading.of(self.pipeline.config.source, self.source, self.pin)


def pipeline_lines(file: Path, now: datetime) -> Iterator[Line]:
    """Yield the checks of one pipeline, beginning with its file."""
    try:
        config = load_pipeline(file)
        _check_name(config)
        opened = open_pipeline(file)
    except TidegateError as refused:
        yield refusal(file.name, naming(str(refused), str(file)))
        return
    name = config.name
    named = name if file in pipeline_files() else str(file)
    yield ok(f"{name}: file", config.file)
    for note in config.notes():
        yield Line(f"{name}: file", "note", note)
    steps: dict[str, Callable[[_Looked], str]] = {
        "secrets": _secrets,
        "target": _target,
        "policies": _policies,
        **({"counts": _counts} if config.commit.counts is not None else {}),
        "source": _source,
        "rows": _rows,
        **({"commit": _commit} if _foretells(config) else {}),
        **({"table": _table} if config.target.is_of_kind.shown_by is not None else {}),
        "suite": _suite,
        "load": _load,
    }
    looked = _Looked(opened, now)
    for subject, look in steps.items():
        found, refusals = _look(look, looked)
        if found is not None:
            yield ok(f"{name}: {subject}", found)
        for place, mistake in refusals:
            at = f"{config.file}:{Document.read(file).line(place)}: " if place else ""
            yield refusal(f"{name}: {subject}", at + naming(str(mistake), named))
        if refusals and subject == "source":
            # Rows and suite would say the same once more.
            return
        if refusals and subject == "policies" and "commit" in steps:
            # So would each commit.
            steps["commit"] = lambda _: "not foreseen: a policy cannot be used"
        if refusals and subject == "rows":
            # So would the next load.
            steps["load"] = lambda _: "not planned: no row could be staged"
        for problem, remedy in () if refusals else _notes(subject, looked):
            yield Line(f"{name}: {subject}", "note", problem, remedy)


def _foretells(config: PipelineConfig) -> bool:
    """Return whether a policy may tell what a commit will do, besides what the table's check says.

    The policy that shows the revisions of a table looks at it, as that check does.
    """
    shown_by = config.target.is_of_kind.shown_by
    return any(not it.writes_marker and it.word != shown_by for it in config.commit.policies)


def _notes(subject: str, looked: _Looked) -> Iterator[tuple[str, str]]:
    """Yield what a check that refuses nothing may still tell, each with what to do."""
    config = looked.pipeline.config
    if subject == "rows" and (doubt := _unit_doubt(looked)):
        problem, _, remedy = doubt.rpartition(". ")
        yield problem, f"{remedy}."
    if subject == "source":
        partitioning = columns_of(config.target.partition_by)
        for note in overlooked(config.source, looked.pipeline.storage, partitioning):
            yield note, ""


def _look(
    look: Callable[[_Looked], str], looked: _Looked
) -> tuple[str | None, Sequence[tuple[Place, TidegateError]]]:
    """Return what one check found, or everything that would be refused, with its place."""
    try:
        return look(looked), ()
    except TidegateError as refused:
        return None, (((), refused),)
    except _Several as several:
        return None, several.refusals


def _check_name(config: PipelineConfig) -> None:
    """Check that no other file of the folder has the same name; a file outside is used as it is."""
    owner = next(iter(claimants(config.name)), None)
    file = Path(config.file)
    if owner not in {None, file} and file in pipeline_files():
        raise NameTaken(file=config.file, name=config.name, taken=str(owner))


def _secrets(looked: _Looked) -> str:
    opened = looked.pipeline
    said = {**opened.config.resolved(), "s3": opened.config.s3.model_dump()}
    names = sorted(_resolve_all(said, ""))
    return f"all set: {', '.join(names)}" if names else "none used"


def _resolve_all(found: object, key: str) -> set[str]:
    """Resolve every `${env:NAME}` of a configuration, and return the keys that contain one."""
    if isinstance(found, dict):
        inner = (_resolve_all(item, f"{key}.{name}".lstrip(".")) for name, item in found.items())
    elif isinstance(found, list):
        inner = (_resolve_all(item, key) for item in found)
    elif isinstance(found, str) and resolve_secret(found, key) != found:
        return {key}
    else:
        return set()
    return set().union(*inner)


def _target(looked: _Looked) -> str:
    opened = looked.pipeline
    target, work = opened.roots.target, opened.roots.work
    if not same_file_system(work, target):
        raise WorkElsewhere(work=work, target=target)
    opened.storage.check_writable("target.path", target)
    opened.storage.check_writable("target.work", work)
    check_identity(opened.config, opened.roots, opened.ledger, opened.storage)
    moved = check_owner_or_move(opened.roots, opened.ledger, opened.storage)
    check_shared(opened)
    check_own_late_root(opened.roots, opened.ledger, opened.storage)
    check_tables(opened.roots, opened.config.name, opened.storage)
    note = ", moved: the next load or publish goes on there" if moved else ""
    apart = "" if opened.roots.layout.is_shared else ", a directory for each revision"
    return f"{target}{apart}, work in {work}{note}"


def _policies(looked: _Looked) -> str:
    opened = looked.pipeline
    policies = opened.config.commit.policies
    for policy in policies:
        _opened(policy, opened.config)
    PartitionClock.of(opened.config)
    return ", ".join(policy.word for policy in policies) or "none"


def _counts(looked: _Looked) -> str:
    said = looked.pipeline.config.commit.counts
    if said is None:
        return "none"
    found = looked.pipeline.upstream.read(said)
    return f"{found.place}: counts of {wording.plural(len(found.rows), 'partition')}"


def _check_start(looked: _Looked) -> None:
    """Resolve `source.start` as the first load will; it is fixed and means nothing after that.

    Raises:
        TidegateError: it names nothing that the source has, or nothing that can still be read.
    """
    opened, now, head = looked.pipeline, looked.now, looked.pin.head
    start = opened.config.source.start
    state = opened.ledger.pipeline.find()
    begun = state is not None and state.started
    if not begun and head is not None and (start.time is None or start.time <= now):
        looked.source.timeline.first_checkpoint(looked.pin)


def _source(looked: _Looked) -> str:
    opened, source = looked.pipeline, looked.source
    with naming_vanished(opened.ledger):
        opened.roots.refuse_overlap(opened.config.name, source.places())
        pin = looked.pin
    _check_start(looked)
    address, names = opened.config.source.address, ", ".join(source.reading.schema(pin).names)
    if pin.head is None:
        return f"{address}, nothing there yet"
    return f"{address}, head {pin.head.id}: {names}"


def _rows(looked: _Looked) -> str:
    config = looked.pipeline.config
    try:
        reading = looked.reading
    except PredicateInvalid as refused:
        raise _Several([(("source", "read", "filter"), refused)]) from refused
    if reading is None:
        return "not known before there is a file"
    try:
        check_keys(config, looked.source.slicing.replaced_columns(looked.pin))
    except PartitionsUnlikeSource as refused:
        raise _Several([(("target", "partition_by"), refused)]) from refused
    _refuse_all(rehearsal.mistakes(config, reading, looked.now))
    keys = ", ".join(map(field_text, config.target.partition_by)) or "nothing"
    column = config.event_time.column if config.event_time else None
    follows = "none"
    if config.event_time and column:
        kind = str(reading.schema.field(column).type)
        counted = f", in {config.event_time.unit} since 1970" if "int" in kind else ""
        follows = f"{column} of type {kind}{counted}"
    rules = ", ".join(rule.name for rule in config.rows) or "none"
    return f"partitioned by {keys}; event time: {follows}; rules: {rules}"


def _load(looked: _Looked) -> str:
    """Plan the next load, which finds what is wrong with single files and with the history."""
    try:
        found = looked.pipeline.looking().preview(Run("check", "check"), looked.now)
    except PlacesMoved:
        # The check of the target has told of it; nothing is followed by a look.
        return "not planned: the next load follows the move of target and work directory"
    if found.plan is None:
        return found.waits or "nothing new to read"
    totals = found.plan.totals
    rows = wording.plural(totals.rows, "row")
    return f"{wording.plural(totals.files, 'file')} with {rows} to read"


def _unit_doubt(looked: _Looked) -> str | None:
    return unit_doubt_of_source(looked.pipeline.config, looked.source, looked.pin)


def _commit(looked: _Looked) -> str:
    """Ask the policies what the next commit will do, with the columns that the next load has."""
    config, reading = looked.pipeline.config, looked.reading
    policies, columns = config.commit.policies, None
    if reading is not None and any(policy.needs_columns for policy in policies):
        files = published_schema(config, reading.schema)
        columns = listed_columns(config.target, files, reading.schema)
    ahead = CommitAhead(config.name, looked.pipeline.roots.target, columns)
    with answering_within(_METASTORE_SECONDS):
        said = [
            f"{policy.title}: {does}"
            for policy in policies
            if (does := foreseen(policy.title, _opened(policy, config), ahead))
        ]
    return "; ".join(said) or "no policy tells what it will do"


def _opened(policy: PolicyConfig, config: PipelineConfig) -> CommitPolicy:
    return open_policy(policy, config.target, table_in_spark)


def _table(looked: _Looked) -> str:
    """Compare the table that is published to with the columns that the next load publishes."""
    config, reading, table = looked.pipeline.config, looked.reading, shown_table(looked.target)
    assert table is not None
    if reading is None:
        return f"{looked.target.table}, compared once there is a file"
    try:
        files = published_schema(config, reading.schema)
        columns = table_columns(looked.target, files, reading.schema)
        return f"{looked.target.table}, {table.foreseen(columns, config.name)}"
    except TidegateError as refused:
        raise _Several([(("target", "table"), refused)]) from refused


def _suite(looked: _Looked) -> str:
    opened = looked.pipeline
    gate = opened.config.gate
    if gate is None:
        return "none: every partition passes"
    reading = looked.reading
    suite = load_suite(gate.suite)
    known = [(column.name, column.type) for column in reading.schema] if reading else ()
    columns = dict(known) if reading else dict.fromkeys(suite.columns or ())
    # A key that is also a column of the files is read from there, unless it is that column.
    keys = [
        field.name
        for field in opened.config.target.partition_by
        if field.transform not in INTERVALS or field.name not in columns
    ]
    _refuse_all(((), mistake) for mistake in suite_mistakes(suite, columns, keys))
    return f"{suite.name} with {wording.plural(len(suite.expectations), 'expectation')}"


def _refuse_all(mistakes: Iterable[tuple[Place, TidegateError]]) -> None:
    found = tuple(mistakes)
    if found:
        raise _Several(found)
