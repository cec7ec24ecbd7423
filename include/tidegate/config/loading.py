"""Find pipeline files and read them."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from tidegate.config.complaints import complain
from tidegate.config.document import Document
from tidegate.config.environment import pipelines_folder
from tidegate.config.overlap import refuse_overlap
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.s3 import ENDPOINT, S3Config
from tidegate.config.sources import AnySource, SourceConfig
from tidegate.config.words import KeyProblem, suggest
from tidegate.errors import (
    ConfigInvalid,
    NameTaken,
    PipelineNotFound,
    StorageDenied,
    TidegateError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SOURCE: TypeAdapter[SourceConfig] = TypeAdapter(AnySource)
RETIRED = ".retired"
"""Ending of the file of a pipeline that was ended."""
_NAME = re.compile(r"^name:\s*['\"]?([A-Za-z0-9_.-]+)", re.MULTILINE)


def load_pipeline(path: str | Path) -> PipelineConfig:
    """Read and validate one pipeline file.

    Raises:
        ConfigInvalid: the file is invalid; the error names the first line.
        PipelineNotFound: there is no such file.
        WorkInsideTarget: the work directory is inside the target.
        PlacesOverlap: the target or work directory is inside the source, or contains it.
    """
    file = Path(path).absolute()
    try:
        document = Document.read(file)
    except FileNotFoundError as absent:
        raise _not_found(str(path), file.parent) from absent
    try:
        config = PipelineConfig.model_validate(
            document.content, context={"folder": str(file.parent)}
        )
    except ValidationError as invalid:
        raise complain(invalid, document) from invalid
    refuse_overlap(config)
    config._file = str(file)
    return config


def load_pipelines(
    folder: Path | None = None,
) -> Iterator[tuple[Path, PipelineConfig | TidegateError]]:
    """Load every pipeline file of a folder, with an error for each that cannot be used.

    The first valid file of a name is used; a second one is a `NameTaken`.
    """
    first: dict[str, Path] = {}
    for file in pipeline_files(folder):
        try:
            config = load_pipeline(file)
        except TidegateError as refused:
            yield file, refused
            continue
        taken = first.setdefault(config.name, file)
        if taken == file:
            yield file, config
        else:
            yield file, NameTaken(file=str(file), name=config.name, taken=str(taken))


def read_source(mapping: Mapping[str, Any]) -> SourceConfig:
    """Validate a `source` mapping that is not part of a pipeline file.

    Raises:
        ConfigInvalid: it is invalid; the error names the first key.
    """
    try:
        return _SOURCE.validate_python(mapping)
    except ValidationError as invalid:
        raise complain(invalid, Document("source mapping", {}, {}), ("source",)) from invalid


def read_store(said: Mapping[str, str] | None) -> S3Config:
    """Validate an argument `s3`, which has the keys of the section of a pipeline file.

    Raises:
        ConfigInvalid: it is invalid; the error has no value of it, as there may be secrets.
    """
    try:
        return S3Config.model_validate({} if said is None else said)
    except ValidationError as invalid:
        found = invalid.errors(include_url=False, include_input=False)[0]
    key, cause = ".".join(map(str, found["loc"])), found.get("ctx", {}).get("error")
    if isinstance(cause, KeyProblem):
        key, problem = cause.key, str(cause)
    elif found["type"] == "extra_forbidden":
        problem = f"unknown key; {suggest(key, S3Config.model_fields)}"
    elif key == "endpoint":
        problem = f"expected {ENDPOINT}, without a user"
    else:
        problem = "expected a text, as in the section of a pipeline file"
    # Outside the handler, so that no traceback has the error with the values.
    raise ConfigInvalid(file="arguments", line=1, key=f"s3.{key}".rstrip("."), problem=problem)


def pipeline_files(folder: Path | None = None) -> tuple[Path, ...]:
    """List the pipeline files of a folder (default: `pipelines_folder()`), by name.

    Raises:
        StorageDenied: the folder cannot be listed.
    """
    place = folder or pipelines_folder()
    try:
        found = [file for file in place.iterdir() if file.suffix in {".yaml", ".yml"}]
    except FileNotFoundError:
        return ()
    except OSError as refused:
        raise StorageDenied(path=str(place), problem=str(refused.strerror)) from refused
    return tuple(sorted(file for file in found if not file.name.startswith((".", "_"))))


def find_pipeline(name: str, folder: Path | None = None) -> Path:
    """Find the file of a pipeline by its name, or by the path of the file itself.

    Raises:
        PipelineNotFound: no file has this name.
    """
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name).absolute()
    place = folder or pipelines_folder()
    found = claimants(name, place)
    if not found:
        raise _not_found(name, place)
    return found[0]


def claimants(name: str, folder: Path | None = None) -> tuple[Path, ...]:
    """List the files with a name: valid ones by path, then those that cannot be loaded.

    The first one is used. Broken ones are included because their own error says more than that
    there is no such pipeline.
    """
    said = [file for file in pipeline_files(folder) if file.stem == name or name in _text(file)]
    named = {file: _name_if_good(file) for file in said}
    good = [file for file in said if named[file] == name]
    broken = [file for file in said if named[file] is None and _name_in(file) == name]
    return (*good, *broken)


def _not_found(name: str, folder: Path) -> PipelineNotFound:
    known = ", ".join(_name_in(file) for file in pipeline_files(folder))
    remedy = "Check the spelling."
    for file in sorted(folder.glob(f"*{RETIRED}")):
        if name in {_name_in(file), file.name.partition(".")[0]}:
            remedy = f"It was retired: its file is {file} now."
    return PipelineNotFound(
        name=name, folder=str(folder), known=known or "no pipeline files", remedy=remedy
    )


def pipeline_names() -> set[str]:
    """Return the names in all pipeline files, unvalidated."""
    return {_name_in(file) for file in pipeline_files()}


def _name_in(file: Path) -> str:
    """Return the name in a file, unvalidated, so that a broken file does not affect the others."""
    named = _NAME.search(_text(file))
    return named.group(1) if named else file.stem


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""  # the error is raised when the file is loaded


def _name_if_good(file: Path) -> str | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return _loaded_name(file, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4096)
def _loaded_name(file: Path, _changed: int, _length: int) -> str | None:
    """Load a file for its name, once per version: waiting processes look it up repeatedly."""
    try:
        return load_pipeline(file).name
    except TidegateError:
        return None
