"""Tell of columns of a window that differ from those of the windows that were published before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import ColumnsDrifted, DeletesUnplaced, KindsMixed
from tidegate.errors.commands import command
from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.source import lacking_in_deletes
from tidegate.stage.partition_split import columns_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tidegate.config import PipelineConfig
    from tidegate.model.plan import Pin


def check_deletes(config: PipelineConfig) -> None:
    """Check that the partition of every row that an upsert deletes will be known.

    Raises:
        DeletesUnplaced: rows of deletes lack a column of `target.partition_by`.
    """
    if config.target.write != "upsert":
        return
    lacking = lacking_in_deletes(config.source, columns_of(config.target.partition_by))
    if lacking:
        raise DeletesUnplaced(column=lacking[0])


def check_kinds(config: PipelineConfig, before: Pin, columns: Collection[str]) -> None:
    """Check that a window brings rows with their kinds only beside others that have theirs.

    Args:
        config: the pipeline.
        before: the source as the window before read it.
        columns: those that the next window brings.

    Raises:
        KindsMixed: only one of them has `_change_type`.
    """
    had, has = CHANGE_TYPE in dict(before.schema), CHANGE_TYPE in columns
    if had != has:
        words = {True: f"with `{CHANGE_TYPE}`", False: f"without `{CHANGE_TYPE}`"}
        raise KindsMixed(pipeline=config.name, before=words[had], now=words[has])


def check_columns(config: PipelineConfig, before: Pin, now: Pin) -> None:
    """Check that a window's columns may stand beside those of another window.

    Args:
        config: the pipeline.
        before: the source as the other window read it.
        now: the source as this window reads it.

    Raises:
        ColumnsDrifted: `target.evolve` does not allow it.
    """
    evolve = config.target.evolution
    if evolve == "widen":
        return
    stood, stands = dict(before.schema), dict(now.schema)
    gone = [f"column '{name}' is gone" for name in stood if name not in stands]
    other = [
        f"column '{name}' is {stands[name]} now, and was {kind}"
        for name, kind in stood.items()
        if stands.get(name, kind) != kind
    ]
    new = [f"column '{name}' ({stands[name]}) is new" for name in stands if name not in stood]
    is_moved = not (gone or other or new) and list(stood) != list(stands)
    moved = ["the columns stand in another order"] if is_moved else []
    found = [*gone, *other, *(() if evolve == "add_columns" else (*new, *moved))]
    if found:
        raise ColumnsDrifted(
            pipeline=config.name,
            problem="; ".join(found),
            evolve=evolve,
            remedy=_way_out(config, stood, only_new=not gone and not other),
        )


def _way_out(config: PipelineConfig, stood: Collection[str], *, only_new: bool) -> str:
    """Return what helps against columns that may not change."""
    may_widen = config.target.part_format.kind.may_widen
    back = "change the source, or `source.read.columns`, back"
    if only_new:
        back = f"set `source.read.columns: [{', '.join(stood)}]` to go on as before"
    wider = "add_columns" if only_new else "widen"
    other = f"Set `target.evolve: {wider}` to take in what is new, or {back}"
    ways = other if may_widen else f"{back[0].upper()}{back[1:]}"
    return (
        f"{ways}. To publish everything anew as it is read now, run "
        f"`{command('reset', config.name)}`."
    )


def notes_on_columns(before: Pin, now: Pin) -> Iterator[str]:
    """Yield a sentence if columns are gone, new, or of another type.

    A renamed column is gone, and another one is there. A partition that both windows have rows for
    then has files with the one and with the other.

    Args:
        before: the source as the window before read it.
        now: the source as this window reads it.
    """
    stood, stands = dict(before.schema), dict(now.schema)
    gone = [name for name in stood if name not in stands]
    new = [name for name in stands if name not in stood]
    other = [
        f"column {name} as {stands[name]} (before: {kind})"
        for name, kind in stood.items()
        if stands.get(name, kind) != kind
    ]
    told = []
    if gone:
        told.append(
            f"earlier windows had {_listed(gone)}, this one has not: what was published before "
            f"keeps {'it' if len(gone) == 1 else 'them'}"
        )
    if new:
        told.append(
            f"this window has {_listed(new)}, which earlier ones had not: what was published "
            f"before lacks {'it' if len(new) == 1 else 'them'}"
        )
    if other:
        told.append(f"this window has {', '.join(other)}: what was published before stays as it is")
    if told:
        yield (
            f"{'; '.join(told)}. To write partitions anew with the columns of now, run `tidegate "
            "rebuild PIPELINE PARTITION`, or `tidegate reset PIPELINE` for all of them, then "
            "`tidegate publish PIPELINE`"
        )


def _listed(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)}"
