"""Ask Flink's own classes the questions of this folder, and write its answers as JSON.

PyFlink starts a JVM and lends its classes; there is no cluster and no job. It needs an environment
of its own (0.8 GB) with Python 3.9 to 3.12, and Java 17 or 11:

    python3.11 -m venv ~/flink
    ~/flink/bin/pip install apache-flink==2.2.1
    ~/flink/bin/python tests/oracle/ask_flink.py

Tests read the JSON and need none of that. To ask something else, change `questions/` and run this
again; a change of the answers shows in the difference.
"""

from __future__ import annotations

import json
import sys
import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
ANSWERS = HERE / "answers"
sys.path.insert(0, str(HERE.parent))

import pyflink.version  # noqa: E402
from py4j.protocol import Py4JJavaError  # noqa: E402
from pyflink.java_gateway import get_gateway  # noqa: E402
from pyflink.util.exceptions import JavaException  # noqa: E402

from oracle.questions import AREAS  # noqa: E402
from oracle.questions.question import REFUSED  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JVM = get_gateway().jvm
FLINK = JVM.org.apache.flink
FILES = FLINK.connector.file.table
PATHS = FLINK.table.utils.PartitionPathUtils
LOADER = JVM.Thread.currentThread().getContextClassLoader()
DAY = "2020-12-01"


def java_map(pairs: list[list[str]]) -> Any:
    """Make a map that keeps its order."""
    made = JVM.java.util.LinkedHashMap()
    for key, value in pairs:
        made.put(key, value)
    return made


def pairs_of(found: Any) -> list[list[str]]:
    """Read a map that keeps its order."""
    return [[entry.getKey(), entry.getValue()] for entry in found.entrySet()]


def text(ask: dict[str, Any]) -> str:
    """Escape or unescape; escaping is no public method, and is seen in a path."""
    if ask["do"] == "unescape":
        return str(PATHS.unescapePathName(ask["text"]))
    return str(PATHS.generatePartitionPath(java_map([["k", ask["text"]]])))[2:-1]


def path(ask: dict[str, Any]) -> str:
    """Build a path; Flink writes a slash at its end, if there is anything."""
    return str(PATHS.generatePartitionPath(java_map(ask["values"]))).removesuffix("/")


def spec(ask: dict[str, Any]) -> list[list[str]]:
    """Read a path."""
    return pairs_of(PATHS.extractPartitionSpecFromPath(FLINK.core.fs.Path(ask["path"])))


def listing(ask: dict[str, Any]) -> list[list[list[str]]]:
    """Look for the partitions in a directory."""
    with tempfile.TemporaryDirectory() as root:
        for name in ask["files"]:
            file = Path(root) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
        place = FLINK.core.fs.Path(root)
        found = PATHS.searchPartSpecAndPaths(place.getFileSystem(), place, len(ask["keys"]))
        return sorted(pairs_of(item.getField(0)) for item in found)


def data_type(kind: str) -> Any:
    """Give the type of Flink's Table API."""
    types = FLINK.table.api.DataTypes
    if kind.startswith("decimal"):
        return types.DECIMAL(10, 2)
    made: dict[str, Callable[[], Any]] = {
        "string": types.STRING,
        "int": types.INT,
        "long": types.BIGINT,
        "boolean": types.BOOLEAN,
        "date": types.DATE,
        "timestamp": lambda: types.TIMESTAMP(6),
    }
    return made[kind]()


def array(of: Any, *items: Any) -> Any:
    """Make an array of Java."""
    made = get_gateway().new_array(of, len(items))
    for index, item in enumerate(items):
        made[index] = item
    return made


def value_written(ask: dict[str, Any]) -> str:
    """Let the sink name the directory of a row."""
    kind, value = ask["type"], ask["value"]
    if value is not None and kind == "string":
        value = FLINK.table.data.StringData.fromString(value)
    if value is not None and kind == "long":
        value = JVM.Long.valueOf(str(value))
    if value is not None and kind == "date":
        value = date.fromisoformat(value).toordinal() - date(1970, 1, 1).toordinal()
    names = array(JVM.String, "k")
    types = array(FLINK.table.types.DataType, data_type(kind))
    default = "__DEFAULT_PARTITION__"
    computer = FILES.RowDataPartitionComputer(default, names, types, names)
    row = FLINK.table.data.GenericRowData(1)
    row.setField(0, value)
    ((_, found),) = pairs_of(computer.generatePartValues(row))
    return str(found)


def value_read(ask: dict[str, Any]) -> str:
    """Let the source read a directory's value."""
    kind = ask["type"]
    found = PATHS.convertStringToInternalValue(ask["text"], data_type(kind))
    if kind == "date":
        return date.fromordinal(found + date(1970, 1, 1).toordinal()).isoformat()
    if kind == "timestamp":
        return datetime.fromisoformat(found.toString()).isoformat()
    if kind == "boolean":
        return str(found).lower()
    return str(found if isinstance(found, str | int) else found.toString())


def time(ask: dict[str, Any]) -> str:
    """Extract the time of a partition, to the microsecond."""
    extractor = FILES.DefaultPartTimeExtractor(ask["pattern"], ask["formatter"])
    keys, values = ([pair[index] for pair in ask["values"]] for index in (0, 1))
    found = extractor.extract(keys, values)
    form = JVM.java.time.format.DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS")
    return str(found.format(form)).removesuffix(".000000")


def configuration(ask: dict[str, Any]) -> Any:
    """Make the options of a sink."""
    made = FLINK.configuration.Configuration()
    made.setString("sink.partition-commit.trigger", ask.get("trigger", "partition-time"))
    made.setString("sink.partition-commit.delay", f"{ask['delay_ms']} ms")
    made.setString("sink.partition-commit.watermark-time-zone", ask.get("zone", "UTC"))
    made.setString("partition.time-extractor.timestamp-pattern", ask.get("pattern", ""))
    return made


PREDICATE = FILES.stream.PartitionCommitPredicate


def process_time(ask: dict[str, Any]) -> bool:
    """Ask the predicate of process time."""
    predicate = PREDICATE.create(configuration({**ask, "trigger": "process-time"}), LOADER, ["k"])
    context = PREDICATE.createPredicateContext("k=1/", ask["first_seen_ms"], ask["clock_ms"], 0)
    return bool(predicate.isPartitionCommittable(context))


def boundary(ask: dict[str, Any]) -> int:
    """Find the largest watermark at which the predicate says no."""
    keys = [key for key, _ in ask["values"]]
    predicate = PREDICATE.create(configuration(ask), LOADER, keys)
    partition = f"{path(ask)}/"

    def committable(watermark: int) -> bool:
        context = PREDICATE.createPredicateContext(partition, 0, 0, watermark)
        return bool(predicate.isPartitionCommittable(context))

    low, high = 0, 4_000_000_000_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if committable(middle) else (middle, high)
    return low


class Clock:
    """A clock that the test sets, as Flink's triggers read it."""

    milliseconds = 0

    def getCurrentProcessingTime(self) -> int:  # noqa: N802 (Java's name)
        """Return what was set."""
        return self.milliseconds

    class Java:
        """What it is for Java."""

        implements = ("org.apache.flink.streaming.runtime.tasks.ProcessingTimeService",)


def state_store() -> Any:
    """Make an empty state of an operator."""
    return FLINK.runtime.state.DefaultOperatorStateBackendBuilder(
        LOADER,
        FLINK.api.common.ExecutionConfig(),
        False,
        JVM.java.util.ArrayList(),
        FLINK.core.fs.CloseableRegistry(),
    ).build()


def commits(ask: dict[str, Any]) -> list[list[str]]:
    """Lead a trigger through checkpoints, one per step."""
    clock = Clock()
    options = configuration({**ask, "pattern": "$dt $hr:00:00"})
    keys = ["dt", "hr"]
    trigger = FILES.stream.PartitionCommitTrigger.create(
        False,
        state_store(),
        options,
        LOADER,
        keys,
        clock,
    )
    committed = []
    for number, step in enumerate(ask["steps"], start=1):
        clock.milliseconds = step["clock"] * 1000
        for hour in step["add"]:
            trigger.addPartition(f"dt={DAY}/hr={hour}/")
        if step.get("final"):
            found = trigger.endInput()
        else:
            watermark = JVM.java.time.Instant.parse(f"{DAY}T{step['watermark']}:00Z")
            trigger.snapshotState(number, watermark.toEpochMilli())
            found = trigger.committablePartitions(number)
        committed.append(sorted(name.rstrip("/").rpartition("=")[2] for name in found))
    return committed


ASKED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "texts": text,
    "paths": path,
    "specs": spec,
    "listings": listing,
    "values_written": value_written,
    "values_read": value_read,
    "times": time,
    "process_times": process_time,
    "boundaries": boundary,
    "commits": commits,
}


def answer(area: str, ask: dict[str, Any]) -> Any:
    """Ask once."""
    try:
        return ASKED[area](ask)
    except (Py4JJavaError, JavaException):
        return REFUSED


def options() -> Iterator[dict[str, Any]]:
    """Name the options of the connector; its factory does not accept all of them."""
    kinds = FLINK.configuration.ConfigOption
    factory = FILES.FileSystemTableFactory()
    accepted = {item.key() for item in (*factory.requiredOptions(), *factory.optionalOptions())}
    named = {}
    for field in FILES.FileSystemConnectorOptions._java_lang_class.getFields():
        found = field.get(None)
        if found.getClass().getName() == kinds._java_lang_class.getName():
            named[found.key()] = found
    for key in sorted({*named, *accepted}):
        default = named[key].defaultValue() if key in named else None
        shown = default if default is None or isinstance(default, str) else str(default)
        yield {"option": key, "default": shown, "accepted": key in accepted}


def metadata_columns() -> Iterator[dict[str, Any]]:
    """Name the columns that the source of the connector adds."""
    name = "org.apache.flink.connector.file.table.FileSystemTableSource$ReadableFileInfo"
    of = JVM.java.lang.Class.forName(name, True, LOADER)
    key = of.getDeclaredMethod("getKey", None)
    key.setAccessible(True)
    for column in of.getEnumConstants():
        yield {"column": key.invoke(column, None)}


def main() -> None:
    """Write all files of answers, one question to a line."""
    ANSWERS.mkdir(exist_ok=True)
    for area, questions in AREAS.items():
        records = [{**item.record(), "flink": answer(area, item.ask)} for item in questions]
        write(area, records)
    write("options", list(options()))
    write("metadata_columns", list(metadata_columns()))


def write(area: str, records: list[dict[str, Any]]) -> None:
    """Write one file of answers."""
    lines = ",\n".join(json.dumps(record) for record in records)
    head = json.dumps({"flink": pyflink.version.__version__})[:-1]
    (ANSWERS / f"{area}.json").write_text(f'{head}, "answers": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
