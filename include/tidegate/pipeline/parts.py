"""Wire the parts of one pipeline: its source, its loading, publishing and upkeep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.policies.metastore import listing_of
from tidegate.errors import FormatNotJoined, PlacesMoved, TidegateError
from tidegate.pipeline.control import PipelineControl
from tidegate.pipeline.executors import table_in_spark
from tidegate.pipeline.load.announce import Announcer
from tidegate.pipeline.load.changed_files import ChangedRows
from tidegate.pipeline.load.file_rows import FileRows
from tidegate.pipeline.load.loader import Loader
from tidegate.pipeline.load.rebuilding import LedgerRebuilding
from tidegate.pipeline.publish.assembling import Assembler
from tidegate.pipeline.publish.committer import Committer
from tidegate.pipeline.publish.compacting import Compactor, Proposer
from tidegate.pipeline.publish.content import Contents
from tidegate.pipeline.publish.erasing import StandingRows
from tidegate.pipeline.publish.finishing import Finisher
from tidegate.pipeline.publish.gating import Gatekeeper
from tidegate.pipeline.publish.late import LateRows
from tidegate.pipeline.publish.under_claim import UnderClaim
from tidegate.pipeline.publish.undoing import Undoer
from tidegate.pipeline.publish.units import Units
from tidegate.pipeline.state.kept_ledger import keeping_ledger_open
from tidegate.pipeline.state.late_root import own_late_root
from tidegate.pipeline.state.reading import Reading, filter_columns
from tidegate.pipeline.state.work import adopt, check_owner
from tidegate.pipeline.upkeep.came_back import CameBack
from tidegate.pipeline.upkeep.erasing.at_work import AtWork
from tidegate.pipeline.upkeep.erasing.eraser import Eraser
from tidegate.pipeline.upkeep.erasing.held import HeldRows
from tidegate.pipeline.upkeep.erasing.kept import KeptRows
from tidegate.pipeline.upkeep.erasing.naming import NamedRows
from tidegate.pipeline.upkeep.erasing.staged_forms import StagedForms
from tidegate.pipeline.upkeep.erasing.waiting import WaitingRows
from tidegate.pipeline.upkeep.forgotten import Forgotten
from tidegate.pipeline.upkeep.former_revisions import FormerRevisions
from tidegate.pipeline.upkeep.fsck.strays import Strays
from tidegate.pipeline.upkeep.fsck.ways_out import WaysOut
from tidegate.pipeline.upkeep.lost_announces import LostAnnounces
from tidegate.pipeline.upkeep.sweeping import Sweeper
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.storage import Scratch
from tidegate.target.compaction import CompactionRule

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from tidegate.config import CompactionConfig, SourceConfig
    from tidegate.gate import SparkFrame
    from tidegate.model.instant import InstantRange
    from tidegate.source.protocol import Source


@dataclass(frozen=True, repr=False)
class PipelineParts(PipelineControl):
    """One pipeline with its source and the parts that its steps are made of."""

    spark_frame: SparkFrame | None = None
    """Opens part files that are too large for pandas as a Spark frame, for the gate."""

    @cached_property
    def source(self) -> Source:
        """The source of the pipeline's changes."""
        return self._opened(self.config.source)

    def _opened(self, source: SourceConfig) -> Source:
        return open_source(
            source,
            self.storage,
            layout.listings_root(self.roots.work),
            filter_columns(source.read),
            LedgerRebuilding(self.ledger, self.config),
        )

    @cached_property
    def _loader(self) -> Loader:
        return Loader(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            source=self.source,
            life_of=self.life_of,
            watch=self._watch,
            changed=self._changed_rows,
        )

    @property
    def _changed_rows(self) -> ChangedRows:
        files = FileRows(self.config, self.roots, self.ledger, self.storage)
        return ChangedRows(self.config, self.source, self.ledger, files)

    @cached_property
    def _announcer(self) -> Announcer:
        return Announcer(self.config, self.ledger, self.storage, self._loader)

    @cached_property
    def _committer(self) -> Committer:
        steps = UnderClaim(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self._contents,
            gatekeeper=self._gatekeeper,
            evaluator=self._evaluator,
            finisher=self._finisher,
            compactor=self._compactor,
            late=self._late_rows,
            reviewer=self._reviewer,
        )
        return Committer(steps, self._watch)

    @property
    def _undoer(self) -> Undoer:
        return Undoer(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self._contents,
            finisher=self._finisher,
            watch=self._watch,
            committer=self._committer,
        )

    @property
    def _standing_rows(self) -> StandingRows:
        return StandingRows(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            contents=self._contents,
            finisher=self._finisher,
            watch=self._watch,
            units=Units(self.config, self.roots, self.storage),
            committer=self._committer,
        )

    @property
    def _came_back(self) -> CameBack:
        """For one inspection: what is known of erasures is read once."""
        return CameBack(self.roots, self.ledger, self.storage, self._standing_rows)

    @property
    def _eraser(self) -> Eraser:
        standing = self._standing_rows
        config, roots, ledger = self.config, self.roots, self.ledger
        storage, contents = self.storage, self._contents
        forms = StagedForms(config, roots, ledger, storage, contents)
        waiting = WaitingRows(roots, ledger, storage, contents, forms, self._committer)
        held = HeldRows(config, storage, forms)
        at_work = AtWork(config, roots, ledger, storage, self.life_of)
        kept = KeptRows(config, roots, ledger, storage, contents, forms, at_work, self._former)
        return Eraser(roots, ledger, storage, standing, waiting, held, kept, self._strays)

    @property
    def _strays(self) -> Strays:
        """For one inspection: what is known of later commits is read once."""
        config, roots, ledger = self.config, self.roots, self.ledger
        storage, contents = self.storage, self._contents
        ways_out = WaysOut(config.name, roots, ledger, storage, contents)
        watch, former = self._watch, self._former
        return Strays(config, roots, ledger, storage, contents, watch, ways_out, former)

    @property
    def _former(self) -> FormerRevisions:
        return FormerRevisions(self.roots, self.ledger, self.storage)

    @property
    def _named_rows(self) -> NamedRows:
        return NamedRows(self.roots, self.ledger, self.storage, self._contents)

    @property
    def _late_rows(self) -> LateRows:
        return LateRows(
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self._contents,
            evaluator=self._evaluator,
            decisions=self._decisions,
        )

    @cached_property
    def _compactor(self) -> Compactor:
        said = self.config.target.compaction
        units = Units(self.config, self.roots, self.storage)
        proposer: Proposer = self._contents
        if self.config.target.write == "upsert":
            proposer = Assembler(self.config, self.roots, self.storage, self._contents, units)
        rule = None if said is None else self.compaction_rule(said)
        may_be_unreadable = self.config.target.part_format.kind.may_be_unreadable
        return Compactor(proposer, self._contents, units, rule, may_be_unreadable)

    def compaction_rule(self, said: CompactionConfig) -> CompactionRule:
        """Return when files are joined, and how large they become.

        Raises:
            FormatNotJoined: files of the target's format are not joined.
        """
        form = self.config.target.part_format
        if not form.kind.is_assembled:
            raise FormatNotJoined(pipeline=self.config.name, format=form.name)
        target_size = said.target_size or self.config.target.rolling.file_size
        return CompactionRule(said.small_file, target_size, said.every)

    @cached_property
    def _finisher(self) -> Finisher:
        return Finisher(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self._contents,
            watch=self._watch,
            life_of=self.life_of,
            catalog=table_in_spark,
        )

    @cached_property
    def _contents(self) -> Contents:
        merges = self.config.target.write == "upsert"
        return Contents(self.config.name, self.roots, self.ledger, self.storage, merges)

    @cached_property
    def _gatekeeper(self) -> Gatekeeper:
        return Gatekeeper(self.config, self.roots, self.storage, self._contents, self.spark_frame)

    @property
    def _forgotten(self) -> Forgotten:
        announces = LostAnnounces(self.roots, self.ledger, self.storage)
        return Forgotten(announces, self._can_never_be_read)

    def _can_never_be_read(self, window: InstantRange) -> bool:
        kept = self.source.kept
        return kept is not None and kept.has_lost(window)

    @cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            watch=self._watch,
            former=self._former,
            listed=listing_of(self.config.target, table_in_spark),
            life_of=self.life_of,
        )

    def coming_columns(self, now: datetime) -> pa.Schema | None:
        """Return the columns of the rows that the next load reads; None if that is not known."""
        state = self.ledger.pipeline.find()
        identity, checkpoint = (state.source_identity, state.checkpoint) if state else (None, None)
        try:
            pin = self.source.timeline.pin(now, identity, after=checkpoint)
            return Reading.of(self.config.source, self.source, pin).schema
        except TidegateError:
            return None

    def looking(self) -> Self:
        """Return the same pipeline for looking only: files that it writes stay in memory."""
        return replace(self, storage=Scratch.of(self.config.s3))

    @keeping_ledger_open
    def adopt(self, now: datetime) -> None:
        """Register the pipeline, or check that ledger and target are its own.

        The first step of a load.

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost, WorkElsewhere,
                PlacesOverlap: they are not.
            ExtractorUnknown: the class that reads partition times cannot be built.
        """
        PartitionClock.of(self.config)
        adopt(self.config, self.roots, self.ledger, self.storage, now, self.source)
        own_late_root(self.roots, self.ledger, self.storage)

    @keeping_ledger_open
    def own(self, now: datetime) -> None:
        """Check, as a load does, that ledger and target are the pipeline's own.

        The first step of everything that publishes. A target of the previous version is adopted; a
        pipeline that never loaded has nothing to publish, and does not become an owner here.

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost: they are not.
        """
        self._check_identity()
        try:
            is_own = check_owner(self.roots, self.ledger, self.storage)
        except PlacesMoved:
            # The adoption follows the move.
            is_own = False
        if not is_own and self.ledger.pipeline.find() is not None:
            self.adopt(now)
        self._watch.check_newest_window()
