"""Compare a pipeline's identity with the one registered under its name (design §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import PipelineChanged
from tidegate.ledger import rows
from tidegate.ledger.schema import partition, pipeline, window
from tidegate.model.part_format import PARQUET
from tidegate.model.partition import DEFAULT_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tidegate.model.partition import Partition

_SOURCE = "source"
PLACE = "target.path"
_KEYS = "target.partition_by"
_DEFAULT = "target.default_partition_name"
_UNSAID = {
    "target.format": PARQUET.name,
    "target.csv": "{}",
    "target.kind": "files",
    "target.layout": "in_place",
}
"""What an identity means that does not have a key."""


def check_identity(
    connection: sa.Connection,
    name: str,
    registered: Mapping[str, str],
    found: Mapping[str, str],
    same_place: Callable[[str, str], bool],
) -> bool:
    """Compare the identity in a pipeline file with the registered one.

    The name of the default partition may change as long as this moves no partition and merges none.
    A key that has not decided anything yet may change too, so that a mistake can be corrected
    before the first load.

    Args:
        connection: of the caller's transaction.
        name: the pipeline.
        registered: what the ledger has.
        found: the identity in the file.
        same_place: whether two paths lead to the same place, with links followed.

    Returns:
        Whether an open window was taken with a key that has changed since.

    Raises:
        PipelineChanged: a key differs.
    """
    corrected = False
    for key, before, now in _differing(_as_published(registered, found), found, same_place):
        if key == _DEFAULT and _renames_nothing(_known(connection, name), now):
            continue
        if not _has_decided_nothing(connection, name, key):
            raise PipelineChanged(pipeline=name, key=key, expected=str(before), found=str(now))
        corrected = True
    return corrected


def check_announced(
    name: str,
    announced: Mapping[str, str],
    found: Mapping[str, str],
    partitions: Iterable[Partition],
    same_place: Callable[[str, str], bool],
) -> None:
    """Compare the identity in a pipeline file with the one that a window was announced with.

    Like `check_identity`, without a ledger.

    Args:
        name: the pipeline.
        announced: the identity that the newest announce was planned with.
        found: the identity in the file.
        partitions: all announced partitions.
        same_place: whether two paths lead to the same place, with links followed.

    Raises:
        PipelineChanged: a key differs.
    """
    for key, before, now in _differing(announced, found, same_place):
        if key != _DEFAULT or not _renames_nothing(partitions, now):
            raise PipelineChanged(pipeline=name, key=key, expected=str(before), found=str(now))


def check_partitions(connection: sa.Connection, name: str, found: Iterable[Partition]) -> None:
    """Check that partitions are spelled as the registered identity requires.

    A run that was planned before the name of the default partition changed may end afterwards.

    Args:
        connection: of the caller's transaction.
        name: the pipeline.
        found: partitions that become known.

    Raises:
        PipelineChanged: one has NULL under another name, or the registered one as a value.
    """
    query = sa.select(pipeline.c.identity).where(pipeline.c.name == name)
    default_name = (connection.scalar(query) or {}).get(_DEFAULT, DEFAULT_NAME)
    for item in found:
        missing = item.default_name or DEFAULT_NAME
        if (item.is_default and missing != default_name) or default_name in dict(
            item.values
        ).values():
            raise PipelineChanged(pipeline=name, key=_DEFAULT, expected=default_name, found=missing)


def _differing(
    expected: Mapping[str, str],
    found: Mapping[str, str],
    same_place: Callable[[str, str], bool],
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield each key that differs, with what was expected and what was found."""
    for key in sorted({*expected, *found}):
        unsaid = _UNSAID.get(key)
        before, now = expected.get(key, unsaid), found.get(key, unsaid)
        if before != now and not (key == PLACE and same_place(str(before), str(now))):
            yield key, before, now


def _as_published(registered: Mapping[str, str], found: Mapping[str, str]) -> Mapping[str, str]:
    """Complete an identity that an earlier version registered, as that version published.

    That version always put the keys of a path in alphabetical order, and always used the same name
    for NULL.
    """
    if _DEFAULT in registered or _DEFAULT not in found:
        return registered
    keys = sorted(registered[_KEYS].split(", "), key=lambda text: text.partition(": ")[0])
    return {**registered, _KEYS: ", ".join(keys), _DEFAULT: DEFAULT_NAME}


def _has_decided_nothing(connection: sa.Connection, name: str, key: str) -> bool:
    """Return whether nothing exists yet that depends on a key of the identity.

    The source decides where the first window begins, the other keys decide what is announced. The
    target is written down in itself before the first look at the source.
    """
    if key == PLACE:
        return False
    taken = sa.exists().where(window.c.pipeline == name)
    if key == _SOURCE:
        started = sa.exists().where(pipeline.c.name == name, pipeline.c.started == sa.true())
        return not connection.scalar(sa.select(sa.or_(taken, started)))
    return not connection.scalar(sa.select(taken.where(window.c.state == "sealed")))


def _known(connection: sa.Connection, name: str) -> Iterator[Partition]:
    query = sa.select(partition.c["values"]).where(partition.c.pipeline == name)
    return map(rows.read_partition, connection.scalars(query))


def _renames_nothing(known: Iterable[Partition], default_name: str | None) -> bool:
    """Return whether none of the partitions is for NULL or would be read back as NULL."""
    return not any(
        value is None or value == default_name for item in known for _, value in item.values
    )
