"""Show what a load would read and why, or what it changed. Pure: values → renderables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tidegate.cli import wording
from tidegate.cli.status_view import facts, summary_line
from tidegate.errors.commands import naming

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tidegate.model.exchange import Exchange
    from tidegate.model.partition import Partition
    from tidegate.model.plan import PlanTotals, ScanPlan, Split
    from tidegate.model.plan_record import PartitionEvent, PlanRecord
    from tidegate.model.run import Announced, PlannedWindow
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.pipeline.load.replaying import Replay

_SPLITS_SHOWN = 10
_NO_BOUNDS = "unknown: the metadata of {files} does not say"


def announced_facts(
    planned: Sequence[PlannedWindow], announced: Announced, notes: Iterable[str], zone: str
) -> Table:
    """Return what a load changed, with the notes of its windows' plans."""
    numbers = [str(sequence) for sequence in announced.windows]
    unchanged = [str(item.sequence) for item in planned if item.sealed]
    rows = [
        ("window" if len(numbers) == 1 else "windows", ", ".join(numbers) or "none"),
        ("partitions touched", wording.listed(announced.partitions)),
        ("watermark", wording.moment(announced.watermark, zone)),
    ]
    if len(unchanged) < len(planned) or not planned:
        rows.append(("summary", summary_line(announced.summary)))
    if unchanged:
        kept = f"{wording.numbered('window', unchanged)}: already taken in, same plan"
        rows.append(("unchanged", kept))
    return facts(rows + _noted(notes))


def preview_facts(
    plan: ScanPlan,
    splits: Sequence[Split],
    touched: Mapping[Partition, int],
    zone: str,
    ways: Mapping[str, str],
) -> Group:
    """Return what a load would read and why, and which partitions it would touch (PC-C08).

    Args:
        plan: of the window.
        splits: of the plan.
        touched: partition → rows.
        zone: in which times are shown.
        ways: how files come to the target: label → sentence.
    """
    end = plan.window.range.end_inclusive
    rows = [("would load", f"{plan.window.range}, up to {wording.moment(end.time, zone)}")]
    rows += _planned_rows(plan, zone)
    for number, (partition, count) in enumerate(list(touched.items())[: wording.MOST_LISTED]):
        label = "" if number else "would touch"
        rows.append((label, f"{partition} with {wording.plural(count, 'row')}"))
    if len(touched) > wording.MOST_LISTED:
        more = wording.plural(len(touched) - wording.MOST_LISTED, "more partition")
        rows.append(("", f"and {more}; --json lists all"))
    return _explained([*rows, *ways.items()], plan, splits, zone)


def replay_facts(replays: Sequence[Replay]) -> Table:
    """Return which windows a load would read again and why, and which would stay unchanged."""
    changed = [item for item in replays if item.differs]
    unchanged = [str(item.window) for item in replays if not item.differs]
    rows = [
        (
            "" if number else "would replay",
            f"window {item.window}: its plan differs: {item.differs}",
        )
        for number, item in enumerate(changed)
    ]
    if unchanged:
        kept = f"{wording.numbered('window', unchanged)}: already taken in, same plan"
        rows.append(("unchanged", kept))
    return facts(rows)


def stored_facts(
    plan: ScanPlan, splits: Sequence[Split], zone: str, ways: Mapping[str, str]
) -> Group:
    """Return what the plan of a window reads, and why (ICE-5.18)."""
    window = plan.window
    rows = [
        ("window", f"{window.sequence} of kind {window.kind.value}, taken by {window.run}"),
        ("reads", f"{window.range}, up to {wording.moment(window.range.end_inclusive.time, zone)}"),
        ("planned", f"{wording.moment(plan.planned_at, zone)} as {plan.digest}"),
        *_planned_rows(plan, zone),
        *ways.items(),
    ]
    return _explained(rows, plan, splits, zone)


def _explained(
    rows: list[tuple[str, str]], plan: ScanPlan, splits: Sequence[Split], zone: str
) -> Group:
    rows += _exchange_rows(splits)
    said = facts(rows + _noted(naming(note, plan.pipeline) for note in plan.notes))
    return Group(said, split_table(splits, zone)) if splits else Group(said)


def _noted(notes: Iterable[str]) -> list[tuple[str, str]]:
    return [("note", note) for note in notes]


def split_table(splits: Sequence[Split], zone: str) -> Table:
    """List the heaviest splits, with the sizes that decide their weight."""
    table = Table("split", "weight", "decided by", "files", "rows", "event times")
    for column in (table.columns[1], *table.columns[3:5]):
        column.justify = "right"
    staged = any(_exchange(split) for split in splits)
    if staged:
        table.add_column("exchange")
    heaviest = sorted(splits, key=lambda split: (-split.weight, split.id))[:_SPLITS_SHOWN]
    for split in heaviest:
        pieces = [piece for part in split.sub_splits for piece in part.pieces]
        table.add_row(
            split.id,
            wording.size(split.weight),
            split.term,
            wording.count(len({piece.path for piece in pieces})),
            wording.count(sum(piece.rows for piece in pieces)),
            _bounds(split.event_times, zone),
            *([_does(_exchange(split))] if staged else []),
        )
    if len(splits) > len(heaviest):
        more = f"{wording.plural(len(splits) - len(heaviest), 'lighter split')}"
        table.add_row(Text(f"… and {more}", "dim"))
    return table


def _planned_rows(plan: ScanPlan, zone: str) -> Iterator[tuple[str, str]]:
    totals, record = plan.totals, plan.record
    yield "source commits", _commits(totals, record)
    if record is not None:
        yield from _found_rows(record)
    yield "files", f"{wording.count(totals.files)} with {wording.size(totals.bytes)}"
    if record is not None:
        yield from _delete_rows(record)
    yield "rows", _rows(totals, record)
    splits = f"{wording.count(totals.splits)} of {wording.plural(totals.sub_splits, 'sub-split')}"
    if record is None:
        yield "splits", splits
        return
    if record.event_times is not None:
        yield "event times", f"{_bounds(record.event_times, zone)} by the files' metadata"
    elif record.files_without_bounds:
        files = wording.plural(record.files_without_bounds, "file")
        yield "event times", _NO_BOUNDS.format(files=files)
    yield "splits", f"{splits}, aiming at {wording.size(record.target_size)}"
    for number, (term, total) in enumerate(record.terms.items()):
        heaviest = wording.size(total.heaviest)
        label = "" if number else "decided by"
        yield label, f"{term}: {wording.plural(total.splits, 'split')}, the heaviest {heaviest}"
    if record.footers_read:
        yield "footers read", wording.count(record.footers_read)


def _found_rows(record: PlanRecord) -> Iterator[tuple[str, str]]:
    if record.limit is not None:
        left = wording.plural(record.limit.left, "commit")
        yield "cut by", f"`source.limits.{record.limit.limit}`: {left} left to the next runs"
    if record.checkpoint:
        yield "checkpoint", record.checkpoint
    if record.listed.manifests_read:
        yield "manifests", f"{wording.count(record.listed.manifests_read)} read"
    yield from _event_rows(record.listed.events or ())


def _event_rows(events: Sequence[PartitionEvent]) -> Iterator[tuple[str, str]]:
    for number, event in enumerate(events[: wording.MOST_LISTED]):
        groups = wording.plural(len(event.replaced), "file group")
        place = event.partition or "the table"
        yield (
            "" if number else "replaced",
            f"{groups} of {place} by {event.operation} {event.instant}",
        )
    if len(events) > wording.MOST_LISTED:
        yield "", f"and {len(events) - wording.MOST_LISTED} more; --json lists all"


def _delete_rows(record: PlanRecord) -> Iterator[tuple[str, str]]:
    for number, (kind, total) in enumerate(record.deletes.items()):
        # Nobody counts the records of a log before they are read.
        counted = f", {wording.plural(total.rows, 'row')}" if total.rows else ""
        amount = f"{wording.size(total.bytes)}{counted}"
        of = "vector" if kind == "vector" else "file"
        yield "" if number else "deletes", f"{kind}: {wording.plural(total.files, of)} of {amount}"


def _rows(totals: PlanTotals, record: PlanRecord | None) -> str:
    number = wording.count(totals.rows)
    if record is None or not record.listed.unmerged:
        return number
    uncounted = any(total.bytes and not total.rows for total in record.deletes.values())
    besides = "; records of logs are not counted" if uncounted else ""
    return f"at most {number} of the files, before they are merged and selected{besides}"


def _commits(totals: PlanTotals, record: PlanRecord | None) -> str:
    number = wording.count(totals.instants)
    if record is None or not record.listed.instants:
        return number
    kinds = (
        f"{wording.count(item.count)} {item.kind} {item.action}" for item in record.listed.instants
    )
    return f"{number}: {', '.join(kinds)}"


def _exchange_rows(splits: Sequence[Split]) -> Iterator[tuple[str, str]]:
    """Yield one line for each stage of an exchange, and one for the assembly.

    An exchange brings together the rows of a large commit (ICE-3.13), the assembly those of
    partitions (design §4).
    """
    exchanges = [found for split in splits if (found := _exchange(split))]
    stages = Counter((found.stage, _does(found)) for found in exchanges)
    for number, ((stage, does), count) in enumerate(sorted(stages.items())):
        groups = {each.group for each in exchanges if each.stage == stage}
        of = wording.plural(len(groups), "large commit")
        yield "" if number else "exchange", f"{does}: {wording.plural(count, 'split')} of {of}"
    assemblies = [it.assembly for split in splits for it in split.sub_splits if it.assembly]
    if assemblies:
        of = wording.plural(len(assemblies), "split")
        small = "rows of partitions whose files would be many and small"
        brought = "all rows, brought together by partition"
        yield "assembly", f"{of} for {small if assemblies[0].shares is None else brought}"


def _exchange(split: Split) -> Exchange | None:
    return next((part.exchange for part in split.sub_splits if part.exchange), None)


def _does(exchange: Exchange | None) -> str:
    """Return the role of a split: a later stage gathers the rows that the stage before spread."""
    if exchange is None:
        return "–"
    if exchange.stage == 0:
        return f"stage 0 spreads over {wording.plural(exchange.buckets, 'bucket')}"
    further = " and spreads them anew" if exchange.spreads else ""
    return f"stage {exchange.stage} gathers rows by bucket{further}"


def _bounds(bounds: TimeBounds | None, zone: str) -> str:
    if bounds is None or bounds.smallest is None:
        return "–" if bounds is None else "none: all NULL"
    return f"{wording.moment(bounds.smallest, zone)} to {wording.moment(bounds.largest, zone)}"
