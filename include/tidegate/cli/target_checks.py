"""Compare the target of a pipeline with those of the other pipeline files, before any is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.config import lies_inside, load_pipeline, pipeline_files
from tidegate.errors import TargetShared, TidegateError
from tidegate.pipeline.state.places import Roots
from tidegate.target.retired import retirement_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.config import PipelineConfig
    from tidegate.pipeline import Pipeline
    from tidegate.storage import Storage


def check_shared(opened: Pipeline) -> None:
    """Check that no other pipeline file of the folder names the target, one above or one below it.

    The first of them that is loaded owns the target, and the others are refused from then on; that
    is found by the owner's file. Nothing is owned before.

    Raises:
        TargetShared: another file names it.
    """
    mine, storage = opened.roots, opened.storage
    if mine.grounds(storage).read().target is not None:
        return
    for config, other in _others(opened.config, storage):
        if _overlap(storage, mine.target, other.target):
            raise TargetShared(
                key="target.path",
                place=mine.target,
                pipeline=config.name,
                file=config.file,
                other=other.target,
            )
        if storage.real_path(mine.work) == storage.real_path(other.work):
            raise TargetShared(
                key="target.work",
                place=mine.work,
                pipeline=config.name,
                file=config.file,
                other=other.work,
            )


def _others(mine: PipelineConfig, storage: Storage) -> Iterator[tuple[PipelineConfig, Roots]]:
    for file in pipeline_files():
        try:
            config = load_pipeline(file)
            if config.name == mine.name:
                continue
            roots = Roots.of(config)
            if retirement_of(storage, roots.target, config.name) is None:
                yield config, roots
        except TidegateError:
            # It is refused for that where it is checked itself.
            continue


def _overlap(storage: Storage, one: str, other: str) -> bool:
    first, second = storage.real_path(one), storage.real_path(other)
    return lies_inside(first, second) or lies_inside(second, first)
