"""How set-up chooses and wraps a Java."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="module")
def java() -> ModuleType:
    """Load the tool, which is a script and in no package."""
    file = Path(__file__).resolve().parents[2] / "tools" / "java.py"
    spec = importlib.util.spec_from_file_location("java_tool", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(path: Path, text: str) -> Path:
    """Write something that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def project(root: Path, lock: str, run: str) -> Path:
    """Make what set-up finds in a project, with a `tools/run` of our own; gives its Java folder."""
    folder = root / ".venv" / "java"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "version").write_text("17.0.15")
    (root / "requirements.txt").write_text(lock)
    script(root / "tools" / "run", run)
    (root / "tools" / "warm_spark.py").touch()
    return folder


@pytest.mark.parametrize(
    ("version", "feature"),
    [("1.8.0_292", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25), ("26-ea", 26)],
)
def test_feature_release_of_a_version_is_its_first_number_that_counts(
    java: ModuleType, version: str, feature: int
) -> None:
    assert java.feature_of(version) == feature


def test_wrapper_drops_the_module_that_the_wheel_lacks_and_nothing_else(
    java: ModuleType, tmp_path: Path
) -> None:
    real = script(tmp_path / "real", 'printf "%s\\n" "$@"')
    wrapper = tmp_path / "java"
    wrapper.write_text(java.WRAPPER.format(java=real))
    wrapper.chmod(0o755)
    given = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "-cp",
        "a b/*",
        "--add-modules=other",
        "",
    ]

    passed = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True)

    assert passed.stdout.split("\n")[:-1] == [item for item in given if "incubator" not in item]


def test_java_that_does_not_run_is_passed_over(java: ModuleType, tmp_path: Path) -> None:
    assert java.ask(tmp_path / "absent") is None
    assert java.ask(script(tmp_path / "broken", "exit 1")) is None


def test_java_that_runs_tells_its_home_and_version(java: ModuleType, tmp_path: Path) -> None:
    text = "echo '    java.home = /opt/my jdk' >&2; echo '    java.version = 21.0.1' >&2"

    assert java.ask(script(tmp_path / "java", text)) == (Path("/opt/my jdk"), "21.0.1")


def test_candidates_begin_with_what_the_user_names(
    java: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = script(tmp_path / "java", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/opt/jdk")

    assert java.candidates() == [Path("/opt/jdk/bin/java"), on_path]


def test_option_with_a_blank_is_quoted_for_the_launcher(java: ModuleType) -> None:
    assert java.quoted("-XX:SharedArchiveFile=/a b/c") == '"-XX:SharedArchiveFile=/a b/c"'
    assert java.quoted("-Xmx1g") == "-Xmx1g"


def test_archive_of_a_new_lock_is_not_laid_on_the_former_one(
    java: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(
        tmp_path,
        "changed==2",
        f'cp "${{0%/*}}/../.venv/java/options" {tmp_path}/asked; touch "${{SPARK_SUBMIT_OPTS#*=}}"',
    )
    (folder / "options").write_text("-XX:SharedArchiveFile=former.jsa")
    monkeypatch.setattr(java, "FOLDER", folder)
    monkeypatch.setattr(java, "ROOT", tmp_path)

    java.archive()

    assert "former" not in (tmp_path / "asked").read_text()
    (made,) = folder.glob("classes-*")
    assert f"-XX:SharedArchiveFile={made}" in (folder / "options").read_text()


def test_folder_that_was_moved_gets_an_archive_of_its_own(
    java: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("before", "after"):
        root = tmp_path / name
        if name == "after":
            (tmp_path / "before").rename(root)
        folder = project(root, "same==1", 'touch "${SPARK_SUBMIT_OPTS#*=}"')
        monkeypatch.setattr(java, "FOLDER", folder)
        monkeypatch.setattr(java, "ROOT", root)

        java.archive()

        (made,) = folder.glob("classes-*")
        assert f"-XX:SharedArchiveFile={made}" in (folder / "options").read_text()
