"""Read YAML and TOML files and name the ones that cannot be read."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import yaml


def problem_of(path: Path) -> str | None:
    """Say why a file cannot be read; None if it can."""
    try:
        if path.suffix == ".toml":
            tomllib.loads(path.read_text())
        else:
            list(yaml.safe_load_all(path.read_text()))
    except (tomllib.TOMLDecodeError, yaml.YAMLError) as error:
        return str(error)
    return None


problems = {name: problem_of(Path(name)) for name in sys.argv[1:]}
for name, problem in problems.items():
    if problem:
        print(f"{name}: {problem}")
sys.exit(any(problems.values()))
