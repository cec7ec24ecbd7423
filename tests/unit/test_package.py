"""What is built from the checkout is the whole package, and it can be imported anywhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

import tidegate
from tidegate.cli.app import app

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package in a folder of its own."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(
        ROOT / "include", root / "include", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE", "requirements.in"):
        shutil.copy(ROOT / name, root)
    build = [UV, "build", "--wheel", "--no-build-isolation", "--offline", "--python"]
    out = ["--out-dir", root / "out"]
    subprocess.run([*build, sys.executable, *out], cwd=root, check=True, capture_output=True)
    return next((root / "out").glob("*.whl"))


def test_wheel_has_every_module_and_its_requirements(wheel: Path) -> None:
    modules = {
        path.relative_to(ROOT / "include").as_posix()
        for path in (ROOT / "include" / "tidegate").rglob("*.py")
    }
    with zipfile.ZipFile(wheel) as content:
        assert {name for name in content.namelist() if name.endswith(".py")} == modules
        content.extractall(wheel.parent / "installed")
    (found,) = (wheel.parent / "installed").glob("*.dist-info")
    built = PathDistribution(found)

    assert built.version == tidegate.__version__
    asked = {
        Requirement(line)
        for line in (ROOT / "requirements.in").read_text().splitlines()
        if line[:1] != "#"
    }
    assert set(map(Requirement, built.requires or ())) == asked
    (command,) = built.entry_points
    assert (command.name, command.value) == ("tidegate", "tidegate.cli.__main__:main")


def test_wheel_is_imported_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(wheel)!r}); import tidegate; "
        "print(tidegate.__file__, tidegate.read_changes.__name__, tidegate.TidegateError.__name__)"
    )
    isolated = [sys.executable, "-I", "-c", program]
    ran = subprocess.run(isolated, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout.split() == [f"{wheel}/tidegate/__init__.py", "read_changes", "TidegateError"]


def test_version_is_shown() -> None:
    shown = CliRunner().invoke(app, ["--version"])

    assert (shown.exit_code, shown.stdout) == (0, f"tidegate {tidegate.__version__}\n")
