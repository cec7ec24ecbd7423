"""Find the delete files of a state for a data file (ICE-4.5–4.9, 4.12). Opens no file."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tidegate.errors import AmbiguousPath, CorruptDeletes
from tidegate.model.file_slice import Delta, DeltaKind
from tidegate.source.iceberg.deletes.entries import EVERYWHERE, FoundDelete, compared_path
from tidegate.source.iceberg.deletes.groups import KeyDeletes, PositionGroup
from tidegate.source.iceberg.manifests.matching import partition_key

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.entries import Entry


class DeleteIndex:
    """The live delete files of one state, for looking up one data file after the other.

    The time of a look-up is about proportional to its result: files are found by path, by
    partition, and by binary search over sequence numbers and bounds.
    """

    def __init__(self, rules: DeleteRules, deletes: Iterable[FoundDelete]) -> None:
        """Sort the delete files by what they can affect.

        Args:
            rules: of the table.
            deletes: live delete files, with metrics if any are to be ruled out.

        Raises:
            CorruptDeletes: two vectors address one file.
        """
        self._rules = rules
        self._by_path: dict[str, list[FoundDelete]] = defaultdict(list)
        positions: dict[Hashable, list[FoundDelete]] = defaultdict(list)
        keys: dict[Hashable, dict[tuple[int, ...], list[FoundDelete]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for found in deletes:
            if found.target_key is not None:
                self._address(found, found.target_key)
            elif found.file.kind is DeltaKind.KEYS:
                keys[found.scope][found.file.field_ids].append(found)
            else:
                positions[found.scope].append(found)
        self._positions = {
            scope: PositionGroup(found, exact_paths=rules.exact_paths)
            for scope, found in positions.items()
        }
        self._keys = {
            scope: [KeyDeletes(found, ids, rules) for ids, found in by_ids.items()]
            for scope, by_ids in keys.items()
        }
        self._met: set[str] = set()
        self.is_empty = not (self._by_path or self._positions or self._keys)
        """Whether nothing applies to any file."""

    @property
    def ruled_out(self) -> int:
        """The number of pairs of data file and equality delete that metrics ruled out so far."""
        return sum(group.ruled_out for groups in self._keys.values() for group in groups)

    @property
    def dangling(self) -> int:
        """The number of delete files for a data file that was never looked up (ICE-4.10)."""
        return sum(len(found) for key, found in self._by_path.items() if key not in self._met)

    def touches(self, entry: Entry) -> bool:
        """Return whether one of the deletes may apply to a data file, whatever its rivals are."""
        if self._by_path and compared_path(entry.path, self._rules) in self._by_path:
            return True
        partition = partition_key(entry.spec_id, entry.partition)
        positions = self._positions.get(partition)
        if positions and positions.applying(entry):
            return True
        groups = (*self._keys.get(EVERYWHERE, ()), *self._keys.get(partition, ()))
        return any(group.applying(entry) for group in groups)

    def applying(self, entry: Entry, rivals: Collection[str] = ()) -> tuple[Delta, ...]:
        """Return the delete files that apply to a data file: positions first, older ones first.

        Args:
            entry: a live data file.
            rivals: other data files of the state whose paths differ only in the scheme; if there
                are any, deletes are matched by exact path only (ICE-4.15).

        Raises:
            CorruptDeletes: a vector is older than its file, or addresses one of another partition.
            AmbiguousPath: a delete addresses neither the file nor one of the rivals exactly.
        """
        partition: Hashable = (
            partition_key(entry.spec_id, entry.partition)
            if self._positions or self._keys or self._by_path
            else None
        )
        found = self._by_position(entry, partition, rivals)
        for scope in (EVERYWHERE, partition):
            for group in self._keys.get(scope, ()):
                found += group.applying(entry)
        return found

    def _address(self, found: FoundDelete, key: str) -> None:
        known = self._by_path[key]
        if found.file.kind is DeltaKind.VECTOR:
            for other in known:
                if other.file.kind is DeltaKind.VECTOR and other.target == found.target:
                    raise _two_vectors(found, other)
        known.append(found)

    def _by_position(
        self, entry: Entry, partition: Hashable, rivals: Collection[str]
    ) -> tuple[Delta, ...]:
        addressed = self._addressed(entry, partition, rivals) if self._by_path else []
        vectors = [found for found in addressed if found.file.kind is DeltaKind.VECTOR]
        if len(vectors) > 1:
            raise _two_vectors(*vectors[:2])
        if vectors:
            # A vector has all positions, including those of older position delete files (ICE-4.5).
            return (vectors[0].file,)
        scoped = self._positions.get(partition)
        files = scoped.applying(entry) if scoped else ()
        own = tuple(
            found.file for found in addressed if found.file.sequence >= entry.sequence_number
        )
        return tuple(sorted(files + own, key=_age)) if own else files

    def _addressed(
        self, entry: Entry, partition: Hashable, rivals: Collection[str]
    ) -> list[FoundDelete]:
        key = compared_path(entry.path, self._rules)
        addressed = self._by_path.get(key)
        if not addressed:
            return []
        self._met.add(key)
        own = [found for found in addressed if self._is_of(found, entry, rivals)]
        for found in own:
            _check(found, entry, partition)
        return own

    @staticmethod
    def _is_of(found: FoundDelete, entry: Entry, rivals: Collection[str]) -> bool:
        if not rivals or found.target == entry.path:
            return True
        if found.target not in rivals:
            raise AmbiguousPath(
                path=found.file.path,
                target=str(found.target),
                candidates=", ".join(sorted({entry.path, *rivals})),
            )
        return False


def _check(found: FoundDelete, entry: Entry, partition: Hashable) -> None:
    """Compare a delete with the file that it addresses (ICE-4.12)."""
    if found.partition != partition:
        raise CorruptDeletes(
            path=found.file.path,
            expected=f"spec and partition {partition} of {entry.path}, which it addresses",
            found=str(found.partition),
        )
    older = found.file.sequence < entry.sequence_number
    if found.file.kind is DeltaKind.VECTOR and older:
        raise CorruptDeletes(
            path=found.file.path,
            expected=f"sequence number {entry.sequence_number} of {entry.path} or a later one",
            found=str(found.file.sequence),
        )


def _two_vectors(one: FoundDelete, other: FoundDelete) -> CorruptDeletes:
    return CorruptDeletes(
        path=one.file.path,
        expected=f"one deletion vector for {one.target}",
        found=f"another one in {other.file.path} at byte {other.file.offset}",
    )


def _age(file: Delta) -> tuple[int, str]:
    return file.sequence, file.path
