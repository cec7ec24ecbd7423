"""The work directory of a pipeline: its owner, and the location of each partition's files."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE, PipelineConfig, tables_around
from tidegate.errors import (
    LedgerLost,
    OwnersDiffer,
    PipelineChanged,
    PipelineRetired,
    PlaceOwned,
    PlacesMoved,
    ResetUnfinished,
    RetireUnfinished,
    TargetOwned,
    WorkElsewhere,
    WorkGone,
    WorkOwned,
    WorkUnfit,
    WorkUnknown,
)
from tidegate.errors.commands import command
from tidegate.model.revision_folder import partition_of
from tidegate.pipeline.state.copied import note_place, refuse_copied
from tidegate.pipeline.state.left import check_registered, forget_ended
from tidegate.pipeline.state.moved import (
    as_followed,
    follow_move,
    target_was_moved,
    were_moved,
    with_work_moved,
)
from tidegate.pipeline.state.places import Roots, is_same_place, worked_in
from tidegate.stage import layout
from tidegate.storage import Storage, above, same_file_system
from tidegate.target.marker import marked_by
from tidegate.target.owner import Owner
from tidegate.target.retired import is_retirement, retirement_of, retirements

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.source.protocol import Source
    from tidegate.target.owner import Claims

_UPKEEP = "upkeep"
"""The name under which everything is locked at once."""


def adopt(
    config: PipelineConfig,
    roots: Roots,
    ledger: Ledger,
    storage: Storage,
    now: datetime,
    source: Source,
) -> None:
    """Register the pipeline in its ledger and in its target, or check that both know it.

    The ledger comes first. A crash in between leaves a registration without a target, which the
    next call completes. If another pipeline was faster, the call removes it, since nothing was
    loaded with it.

    Raises:
        PipelineChanged: a key of the identity differs from what was registered.
        TargetOwned, WorkUnfit, WorkOwned: target and work directory are not the pipeline's own.
        LedgerLost: the target was published with another ledger.
        PlacesOverlap: they are inside the source or another table, or contain it; this is not
            checked again once the owner is known.
        WorkElsewhere: a rename from the work directory cannot publish (PC-F03).
    """
    if not same_file_system(roots.work, roots.target):
        raise WorkElsewhere(work=roots.work, target=roots.target)
    try:
        follow_move(roots, ledger, storage)
        _take_back(ledger, storage, roots)
        register = functools.partial(
            ledger.pipeline.register,
            config.identity(),
            storage.real_path(roots.target),
            now,
            same_place=functools.partial(is_same_place, storage),
        )
        if ledger.pipeline.find() is not None:
            # A changed key is a better explanation than the places that result from it.
            check_identity(config, roots, ledger, storage)
        is_own = check_owner(roots, ledger, storage)
        if not is_own:
            check_places(roots, config.name, storage, source)
            forget_ended(roots, ledger, storage)
        ledger_id = register()
        if not is_own:
            roots.grounds(storage).put(Owner(ledger.name, ledger_id, ledger.place))
            check_owner(roots, ledger, storage)
        note_place(roots, ledger, storage)
    except (TargetOwned, LedgerLost, OwnersDiffer, PlaceOwned, WorkOwned):
        _take_back(ledger, storage, roots)
        raise


def check_identity(config: PipelineConfig, roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Check the pipeline file against what the ledger has registered under its name.

    A target that was moved to where the file says is the same.

    Raises:
        PipelineChanged: a key of the identity differs.
        LedgerCopied: it differs, and the ledger is a copy, whose pipeline is another one.
    """

    def same_place(registered: str, found: str) -> bool:
        # The next load or publish registers the new place.
        return is_same_place(storage, registered, found) or target_was_moved(roots, ledger, storage)

    try:
        ledger.pipeline.check(config.identity(), same_place)
    except PipelineChanged:
        known = ledger.pipeline.get().target
        stood = replace(roots, target=known, work=worked_in(ledger) or roots.work)
        refuse_copied(stood, ledger, storage)
        raise


def check_owner(roots: Roots, ledger: Ledger, storage: Storage) -> bool:
    """Check that target and work directory belong to this pipeline and this ledger.

    Args:
        roots: target and work directory.
        ledger: of the pipeline.
        storage: of both directories.

    Returns:
        Whether both say so; if not, nothing contradicts it, and `adopt` writes it down.

    Raises:
        TargetOwned, WorkUnfit, WorkOwned, LedgerLost: they are not the pipeline's own, or the
            ledger does not know it and has another one registered for the target.
        WorkGone: the work directory has none of the windows that the ledger knows.
        PlacesMoved: they were moved, and the ledger names the places that they left.
        ResetUnfinished: a reset began and did not end.
        PipelineRetired: the pipeline was ended.
        RetireUnfinished: it is being ended (Transient).
    """
    claims = roots.grounds(storage).read()
    if were_moved(roots, claims, ledger, storage):
        raise PlacesMoved(pipeline=ledger.name, target=roots.target)
    return _is_own(roots, claims, ledger, storage)


def _is_own(roots: Roots, claims: Claims, ledger: Ledger, storage: Storage) -> bool:
    state = ledger.pipeline.find()
    check_going_on(roots, ledger.name, storage)
    grounds = roots.grounds(storage)
    if state is None:
        claims = with_work_moved(roots, claims, storage)
    worked = worked_in(ledger) if state is not None and claims.work is None else None
    ledger_id = state.ledger_id if state else None
    # Evaluated only if the target has no owner, because it looks at every record.
    was_published = claims.target is not None or _was_published(roots, ledger, storage)
    is_own = grounds.check(ledger.name, ledger_id, claims, worked, was_published=was_published)
    if state is None:
        check_registered(roots, ledger, storage)
    if worked is not None and not storage.exists(f"{roots.work}/{layout.WINDOWS}"):
        if storage.exists(layout.owner_file(worked)):
            # The target was moved alone.
            raise WorkUnfit(pipeline=ledger.name, target=roots.target, work=roots.work, fits=worked)
        anew = command("reset", ledger.name, "--drop-target")
        remedy = f"delete what was published and begin again with `{anew}`"
        raise WorkGone(pipeline=ledger.name, work=roots.work, remedy=remedy)
    return is_own


def check_owner_or_move(roots: Roots, ledger: Ledger, storage: Storage) -> bool:
    """Check as `check_owner`, and accept a move that the next load or publish follows.

    Nothing is changed: the ledger and the target's file still name the places that were left.

    Returns:
        Whether target or work directory were moved.

    Raises:
        TidegateError: as `check_owner`.
    """
    claims = roots.grounds(storage).read()
    moved = were_moved(roots, claims, ledger, storage)
    _is_own(roots, as_followed(roots, claims) if moved else claims, ledger, storage)
    return moved


def check_not_resetting(roots: Roots, pipeline: str, storage: Storage) -> None:
    """Check that no reset is under way, which has deleted some of the files already.

    Raises:
        ResetUnfinished: one is, or it was killed.
    """
    path = layout.reset_file(roots.work)
    if storage.exists(path):
        raise ResetUnfinished(pipeline=pipeline, path=path)


def check_going_on(roots: Roots, pipeline: str, storage: Storage) -> None:
    """Check that the pipeline was neither ended nor reset, and that nobody is at it.

    A commit checks it again once the ledger knows that it has begun: who began before then is seen
    here, and who begins later sees the commit, or takes its claim.

    Raises:
        ResetUnfinished: it is being reset, or that was killed.
        PipelineRetired: it was ended.
        RetireUnfinished: it is being ended (Transient).
    """
    # One look for both files, and before the record that takes the place of one of them.
    names = storage.list_names(roots.work)
    reset, retire = layout.reset_file(roots.work), layout.retire_file(roots.work)
    if posixpath.basename(reset) in names:
        raise ResetUnfinished(pipeline=pipeline, path=reset)
    check_not_retired(roots, pipeline, storage)
    if posixpath.basename(retire) in names:
        raise RetireUnfinished(pipeline=pipeline, path=retire)


def check_not_retired(roots: Roots, pipeline: str, storage: Storage) -> None:
    """Check that the pipeline was not ended.

    Raises:
        PipelineRetired: it was.
    """
    ended = retirement_of(storage, roots.target, pipeline)
    if ended is not None:
        at = f"{ended.at:%Y-%m-%d %H:%M}Z"
        raise PipelineRetired(pipeline=pipeline, target=roots.target, by=ended.by, at=at)


def check_places(roots: Roots, pipeline: str, storage: Storage, source: Source) -> None:
    """Check target and work directory against the folders of tables, which no pipeline file names.

    Raises:
        PlacesOverlap: one is in the folder of an Iceberg table, the source or another one, or
            contains the source's.
    """
    roots.refuse_overlap(pipeline, source.places())
    check_tables(roots, pipeline, storage)


def check_tables(roots: Roots, pipeline: str, storage: Storage) -> None:
    """Check that neither target nor work directory is in the folder of a table.

    Raises:
        PlacesOverlap: one is.
    """
    for place in (roots.target, roots.work):
        real = storage.real_path(place)
        around = tables_around((real, *above(real)), storage)
        found = [folder for _, folder in reversed(around)]
        if place == roots.target and roots.table is not None:
            own = storage.real_path(roots.table)
            found = [folder for folder in found if folder != own]
        roots.refuse_overlap(pipeline, found)


def owner_to_restore(roots: Roots, ledger: Ledger, storage: Storage) -> Owner:
    """Return the id of the ledger that a pipeline was published with, to restore it.

    Raises:
        TargetOwned, WorkUnfit, WorkOwned: target and work directory are not the pipeline's own.
        OwnersDiffer: they belong to two ledgers.
        WorkUnknown: they have no owner.
        ResetUnfinished: a reset began and did not end.
        WorkGone: the work directory has none of the windows that the table was published from.
    """
    name, state = ledger.name, ledger.pipeline.find()
    check_not_resetting(roots, name, storage)
    check_not_retired(roots, name, storage)
    grounds = roots.grounds(storage)
    claims = with_work_moved(roots, grounds.read(), storage)
    owner = claims.work or claims.target
    if claims.target and state and claims.target.ledger == state.ledger_id:
        owner = claims.target
    if owner is None:
        raise WorkUnknown(pipeline=name, work=roots.work)
    was_published = claims.target is not None or _has_commit_plan(roots, storage)
    grounds.check(name, owner.ledger, claims, was_published=was_published)
    # A ledger restored from nothing would let everything be published a second time.
    if not storage.exists(f"{roots.work}/{layout.WINDOWS}"):
        own = _published_by(name, roots, storage)
        if own:
            remedy = f"remove {_named(own, roots, storage)}: the next load then begins anew"
            raise WorkGone(pipeline=name, work=roots.work, remedy=remedy)
    return owner


def _published_by(name: str, roots: Roots, storage: Storage) -> list[str]:
    """List the files of a target but those that retired pipelines left.

    A partition that was published in place of one that was left has the pipeline's own marker. If
    it has none, a publication to it is refused until its files were taken away.
    """
    left = {path for ended in retirements(storage, roots.target) for path in ended.partitions}
    return [
        path
        for path in storage.list_files(roots.target)
        if path != OWNER_FILE
        and not is_retirement(path)
        and (
            partition_of(posixpath.dirname(path)) not in left
            or marked_by(storage, roots.target, path) == name
        )
    ]


def _named(own: Sequence[str], roots: Roots, storage: Storage) -> str:
    """Return what is to be removed by hand, without what retired pipelines left."""
    ended = [item.pipeline for item in retirements(storage, roots.target)]
    if not ended:
        return f"{roots.target} and {roots.work}"
    folders = sorted({posixpath.dirname(path) or path for path in own})
    return (
        f"{roots.work}, {roots.target}/{OWNER_FILE} and, in {roots.target}, {', '.join(folders)}, "
        f"but nothing that {' and '.join(ended)} left"
    )


def await_movers(roots: Roots, storage: Storage) -> None:
    """Check that no process that has lost its fence is still moving files.

    Any process that takes a lock from now on checks its fence first.

    Raises:
        PartitionBusy: one is moving files (Transient).
    """
    root = layout.locks_root(roots.work)
    for name in storage.list_files(root):
        with storage.lock(f"{root}/{name}", _UPKEEP):
            pass


def _take_back(ledger: Ledger, storage: Storage, roots: Roots) -> None:
    """Remove a registration that never came to own its target.

    If the target is still the same and has no owner file, another process may be about to write it.
    """
    state = ledger.pipeline.find()
    if state is None:
        return
    owner = replace(roots, target=state.target).grounds(storage).read().target
    if owner == Owner(ledger.name, state.ledger_id):
        return
    if owner is not None or not is_same_place(storage, state.target, roots.target):
        ledger.pipeline.forget_unused(state.ledger_id)


def _was_published(roots: Roots, ledger: Ledger, storage: Storage) -> bool:
    """Return whether ledger or work directory know of a commit, even of one that has only begun.

    Both are asked, because either may be older than the target. A commit plan is written before the
    first file is moved.
    """
    return _has_commit_plan(roots, storage) or any(
        state.revision or ledger.publications.unrecorded(state.partition) is not None
        for state in ledger.partitions.all()
    )


def _has_commit_plan(roots: Roots, storage: Storage) -> bool:
    plans = storage.list_files(f"{roots.work}/{layout.PUBLICATIONS}")
    return any(map(layout.is_commit_plan, plans))
