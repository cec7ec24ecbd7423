"""The marker of a partition: its exact content, and how it is found and read (PC-A07).

Its name is configurable, so a reader that knows only the table root recognises it by its content.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.errors import MarkerInvalid, RevisionNotThere, SourceFileGone
from tidegate.model.marker import MARKER_FORMAT
from tidegate.model.marker import read_marker as read_marker
from tidegate.model.revision_folder import partition_of, revision_of
from tidegate.model.wire import instant_text, pretty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from tidegate.model.publication import Approval, Override, Publication, Verdict
    from tidegate.storage import Storage

USUAL_NAME = "_SUCCESS"


@dataclass(frozen=True)
class MarkerFacts:
    """The content of a marker besides the files."""

    pipeline: str
    watermark: datetime | None
    partition_end: datetime | None
    trigger: str
    source_range: Mapping[str, Any]
    verdict: Verdict
    approval: Approval | None
    owner: str
    prepared_at: datetime
    override: Override | None = None
    told: Mapping[str, Any] | None = None
    """What readers of files of text have to know; None: the files say it."""


def write_marker(publication: Publication, facts: MarkerFacts) -> str:
    """Return the marker's text.

    Only `provenance` depends on the attempt (design §5).
    """
    return pretty(
        {
            "format": MARKER_FORMAT,
            "pipeline": facts.pipeline,
            "partition": dict(publication.partition.values),
            "revision": publication.revision,
            # Only where it is so: other markers stay as they are.
            **({"rewrite": True} if publication.is_rewrite else {}),
            "rows": publication.rows,
            "bytes": sum(file.length for file in publication.content),
            "files": [
                {
                    "name": file.name,
                    "length": file.length,
                    "rows": file.rows,
                    "sha256": file.sha256,
                    # Readers that took these in know its rows.
                    **({"made_of": list(file.joined)} if file.joined else {}),
                }
                for file in publication.content
            ],
            **({} if facts.told is None else {"reading": dict(facts.told)}),
            "windows": dict(publication.contributions),
            **({} if publication.undone is None else {"restores": publication.undone.restores}),
            "source": dict(facts.source_range),
            "watermark": _text(facts.watermark),
            "partition_end": _text(facts.partition_end),
            "trigger": facts.trigger,
            "gate": {
                "outcome": facts.verdict.outcome.value,
                "checks": [
                    {"name": check.name, "success": check.success, "observed": check.observed}
                    for check in facts.verdict.checks
                ],
            },
            "approval": None
            if facts.approval is None
            else {"by": facts.approval.by, "comment": facts.approval.comment},
            "override": None
            if facts.override is None
            else {
                "by": facts.override.by,
                "comment": facts.override.comment,
                "overruled": facts.override.overruled,
            },
            "provenance": {
                "owner": facts.owner,
                "prepared_at": instant_text(facts.prepared_at),
                "approved_at": _text(facts.approval.at) if facts.approval else None,
                "overridden_at": _text(facts.override.at) if facts.override else None,
                "checked_at": instant_text(facts.verdict.checked_at),
            },
        }
    ).decode()


@dataclass(frozen=True)
class StandingMarker:
    """A marker that was found in a table."""

    folder: str
    """The directory of its partition."""
    name: str
    """Relative to that directory: a revision may have one of its own."""
    revision: int
    partition: Mapping[str, str | None]
    """Partition values; None is NULL."""
    files: tuple[str, ...]
    """Paths of the files that it lists."""
    told: Mapping[str, Any] | None = None
    """What it tells of files that do not tell their columns; None: they do."""


def find_markers(
    storage: Storage,
    root: str,
    names: Iterable[str],
    only: str | None = None,
    wanted: Callable[[str], int | None] = lambda _: None,
) -> tuple[StandingMarker, ...]:
    """Return the marker of each partition of a table, in order of their directories.

    If a partition has several, because each revision has a directory of its own, or because the
    pipeline's marker was renamed, the newest revision counts. One that a commit retracts in the
    meantime is left out.

    Args:
        storage: that has the table.
        root: the table root.
        names: all files below it, relative to it.
        only: the only name that a marker may have; by default every hidden file with the content of
            a marker is one.
        wanted: path of a partition → the revision that counts instead of the newest; None: that.

    Raises:
        MarkerInvalid: a file with the usual name, or with that of another marker here, is not a
            marker.
        RevisionNotThere: a revision that is wanted does not stand.
        FileNotFoundError: the directory of a revision was removed since it was listed.
    """
    read: dict[str, StandingMarker | None] = {}
    chosen: dict[str, StandingMarker] = {}
    for place, folders in sorted(_candidates(names, only).items()):
        number = wanted(place)
        for folder in sorted(folders, reverse=True):
            found = {name: _marker_at(storage, root, name) for name in folders[folder]}
            read |= found
            markers = [it for it in found.values() if it and number in {None, it.revision}]
            if markers:
                chosen[place] = max(markers, key=lambda marker: marker.revision)
                break
        if number is None or place in chosen:
            continue
        stand = {it.revision for name in read if (it := read[name]) and _place(name) == place}
        if stand:
            raise RevisionNotThere(
                root=root,
                partition=place or "the table",
                revision=number,
                found=", ".join(map(str, sorted(stand))),
            )
    strict = {only or USUAL_NAME, *(posixpath.basename(name) for name in read if read[name])}
    for name in read:
        if read[name] is None and posixpath.basename(name) in strict:
            # Again, for the error that names the problem.
            with contextlib.suppress(SourceFileGone):
                read_marker(f"{root}/{name}", storage.read_bytes(f"{root}/{name}"))
    return tuple(chosen[place] for place in sorted(chosen, key=lambda place: place.split("/")))


def _candidates(names: Iterable[str], only: str | None) -> dict[str, dict[str, list[str]]]:
    """Return partition → directory of a revision, or its own → files that may be markers."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in names:
        if _may_be_marker(name, only):
            folders = found.setdefault(_place(name), {})
            folders.setdefault(posixpath.dirname(name), []).append(name)
    return found


def _place(name: str) -> str:
    """Return the directory of the partition in which a file of a table is."""
    return partition_of(posixpath.dirname(name))


def is_seen_as_data(name: str) -> bool:
    """Return whether a file of a table, of any layout, is not hidden in its directory."""
    return not is_hidden(posixpath.join(_place(name), posixpath.basename(name)))


def is_hidden(name: str) -> bool:
    """Return whether readers skip a file, whose path is relative to the table root (PC-P09)."""
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def marked_by(storage: Storage, root: str, name: str) -> str | None:
    """Return the pipeline whose marker a file below a directory is; None if it is none."""
    if not posixpath.basename(name).startswith(("_", ".")):
        return None
    return pipeline_of_marker(storage.read_bytes(f"{root}/{name}"))


def pipeline_of_marker(content: bytes) -> str | None:
    """Return the pipeline that wrote a marker, of any format; None if the content is no marker."""
    try:
        raw = json.loads(content)
    except ValueError:
        return None
    if not isinstance(raw, dict) or not raw.keys() >= {"pipeline", "revision", "files"}:
        return None
    return str(raw["pipeline"])


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else instant_text(moment)


def _may_be_marker(name: str, only: str | None) -> bool:
    folder, plain = _place(name), posixpath.basename(name)
    if folder and is_hidden(folder):
        return False
    return plain == only if only is not None else plain.startswith(("_", "."))


def _marker_at(storage: Storage, root: str, name: str) -> StandingMarker | None:
    """Read a file that may be a marker; None if it is something else, or has been removed."""
    path = f"{root}/{name}"
    try:
        with storage.open_input(path) as file:
            # Hidden files of other tools may be large, and do not begin like a JSON object.
            if file.read(1) != b"{":
                return None
            file.seek(0)
            raw = read_marker(path, file.read())
    except MarkerInvalid:
        return None
    except FileNotFoundError:
        if revision_of(posixpath.dirname(name)) is not None:
            # The listing is outdated; a newer revision may have none of the directories in it.
            raise
        return None
    folder = posixpath.join(root, _place(name)).rstrip("/")
    return StandingMarker(
        folder=folder,
        name=path.removeprefix(f"{folder}/"),
        revision=raw["revision"],
        partition=raw["partition"],
        files=tuple(f"{posixpath.dirname(path)}/{file['name']}" for file in raw["files"]),
        told=raw.get("reading"),
    )
