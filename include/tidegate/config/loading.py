"""Find pipeline files and read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tidegate.config.complaints import complain
from tidegate.config.document import Document
from tidegate.config.environment import pipelines_folder
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.source import SourceConfig
from tidegate.errors import ConfigInvalid, PipelineNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"^name:\s*['\"]?([A-Za-z0-9_.-]+)", re.MULTILINE)


def load_pipeline(path: str | Path) -> PipelineConfig:
    """Read and validate one pipeline file.

    Raises:
        ConfigInvalid: naming the first line that cannot be meant.
        PipelineNotFound: there is no such file.
        WorkInsideTarget: the work directory lies where readers list files.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise _not_found(str(path), file.parent)
    document = Document.read(file)
    try:
        config = PipelineConfig.model_validate(
            document.content, context={"folder": str(file.parent)}
        )
    except ValidationError as invalid:
        raise complain(invalid, document) from invalid
    config._file = str(file)
    return config


def read_source(mapping: Mapping[str, Any]) -> SourceConfig:
    """Validate a `source` mapping that stands in no pipeline file.

    Raises:
        ConfigInvalid: naming the first key that cannot be meant.
    """
    try:
        return SourceConfig.model_validate(mapping)
    except ValidationError as invalid:
        raise complain(invalid, Document("source mapping", {}, {}), ("source",)) from invalid


def pipeline_files(folder: Path | None = None) -> tuple[Path, ...]:
    """List the pipeline files of a folder (default: `pipelines_folder()`), by name."""
    place = folder or pipelines_folder()
    found = [*place.glob("*.yaml"), *place.glob("*.yml")] if place.is_dir() else []
    return tuple(sorted(file for file in found if not file.name.startswith((".", "_"))))


def find_pipeline(name: str, folder: Path | None = None) -> Path:
    """Find the file of a pipeline by its name, or by the path of the file itself.

    Raises:
        PipelineNotFound: no file says this name.
        ConfigInvalid: two files say it.
    """
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name).absolute()
    place = folder or pipelines_folder()
    named = [file for file in pipeline_files(place) if _name_in(file) == name]
    if not named:
        raise _not_found(name, place)
    if len(named) > 1:
        problem = f"'{name}' is the name of {named[0].name} already; a name is an identity"
        raise ConfigInvalid(file=str(named[1]), line=1, key="name", problem=problem)
    return named[0]


def _not_found(name: str, folder: Path) -> PipelineNotFound:
    known = ", ".join(_name_in(file) for file in pipeline_files(folder))
    return PipelineNotFound(name=name, folder=str(folder), known=known or "no pipeline files")


def _name_in(file: Path) -> str:
    """Give the name that a file says, unvalidated: a broken neighbour is no obstacle."""
    named = _NAME.search(file.read_text("utf-8", "replace"))
    return named.group(1) if named else file.stem
