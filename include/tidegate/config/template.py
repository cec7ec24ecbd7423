"""Write the first pipeline file for a table, with guesses and commented options."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LIKELY = (
    r"^event[_-]?(time|timestamp|ts|at|date)$",
    r"occur|happen|event",
    r"(order|creat|plac|start|book|depart|request|pickup|sent|measur)\w*[_-]?(at|on|time|ts|date)",
    r"[_-](at|on|ts|time|timestamp|datetime|date)$|^(ts|time|timestamp|datetime|date)$",
)
"""Names of event time columns, the likeliest first."""
_UNLIKELY = re.compile(
    r"updat|modif|chang|delet|ingest|load|insert|process|expir|valid|arriv|receiv|due|etl|_sync",
    re.IGNORECASE,
)
"""Words in names of columns that are not event times: when a row was handled, changed or ends."""
_LISTED = 8
_KEYS = ("dt", "day", "event_day", "partition_day")
_COMMENTS = {
    "partition_by": "# columns that the directories name, in path order",
    "require_marker": "# what another pipeline has committed",
    "csv": "# how the rows are written",
}
_COMMENTS_BEGIN = 35
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")

_HEAD = """\
# A pipeline of Tidegate: `tidegate check` looks at it, `tidegate schema` describes every key.
name: {name}
timezone: UTC                      # of partition values, partition times and the timetable
schedule: "@daily"                 # of the load DAG in Airflow; or five cron fields, or null

source:
{source}
  start: full                      # full | earliest | latest | {{after: ID}} | {{from: ID}}
{reading}
"""
_READ = """\
  # read:
  #   columns: [{columns}]
  #   filter: "amount > 0"         # SQL; other rows are not read"""
_READ_IN_MODE = """\
  read:
    mode: {mode}                 # `tidegate schema` describes the other modes
    # columns: [{columns}]
    # filter: "amount > 0"         # SQL; other rows are not read"""
_EVENT_TIME = """\

event_time:                        # when a row happened{guess}
  column: {column}
  lateness: 1h                     # how long to wait for rows that come out of order
  # idle_timeout: 2d               # with `when_idle: advance`, silence publishes the last day, too
  # when_idle: advance
"""
_NO_EVENT_TIME = """\

# No column holds a time, so partitions cannot wait for a watermark. With one, write:
# event_time: COLUMN
"""
_NO_COLUMNS = """\

# There is no file yet that tells the columns. With one of a time among them, write:
# event_time: COLUMN
"""
_RULES = """\

# rows:                            # rows that fail are put aside with the rule's name
#   - {name: positive_amount, where: "amount >= 0", on_failure: quarantine}

target:
"""
_TAIL = """\
  # rolling: {{file_size: 128MiB}}

# gate:                            # Great Expectations on each partition as it would be published
#   suite: {name}_suite.json
#   on_failure: hold               # hold | fail | warn

commit:
  trigger: {trigger}
  delay: 0s
  policies: [success-file]         # `_SUCCESS` with files, rows and revision, written last
"""


def pipeline_template(
    source: Mapping[str, Any],
    columns: Sequence[tuple[str, str]],
    *,
    target: str,
    name: str | None = None,
) -> str:
    """Write a commented pipeline file that `load_pipeline` accepts.

    Args:
        source: the `source` section: the kind, the table's name or path, and further options.
        columns: (name, Arrow type text) of the table.
        target: absolute path of the directory to publish into.
        name: of the pipeline; by default derived from the table's.

    Returns:
        YAML text.
    """
    made = name or _name_of(_table(source))
    column = guess_event_time(columns)
    text = _HEAD.format(
        name=_scalar(made),
        source=_source({key: said for key, said in source.items() if key != "read"}),
        reading=_reading(source, _listed([column for column, _ in columns]) or "COLUMN"),
    )
    if column is None:
        text += _NO_EVENT_TIME if columns else _NO_COLUMNS
    else:
        others = [other for other in _times(columns) if other != column]
        guess = f"; a guess, others: {_listed(others)}" if others else ""
        text += _EVENT_TIME.format(column=_scalar(column), guess=guess)
    text += _RULES + f"  path: {_scalar(target)}\n"
    if column is not None:
        text += _partition_by(column, {other for other, _ in columns})
    # What another pipeline has committed is complete.
    waits = column is not None and "require_marker" not in source
    trigger = "partition-time" if waits else "process-time"
    return text + _TAIL.format(name=made, trigger=trigger)


def guess_event_time(columns: Sequence[tuple[str, str]]) -> str | None:
    """Return the column that is most likely the event time; None if none is a time."""
    times = _times(columns)
    likely = [column for column in times if not _UNLIKELY.search(column)]
    for expression in _LIKELY:
        for column in likely:
            if re.search(expression, column, re.IGNORECASE):
                return column
    return next(iter(likely or times), None)


def _times(columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the columns of a time type: timestamps before dates, which are less precise."""
    stamps = [name for name, type_text in columns if type_text.startswith("timestamp")]
    return stamps + [name for name, type_text in columns if type_text.startswith("date")]


def _table(source: Mapping[str, Any]) -> str:
    return next(str(said) for key, said in source.items() if key != "kind")


def _source(source: Mapping[str, Any]) -> str:
    return "\n".join(line for key, said in source.items() for line in _option(key, said))


def _reading(source: Mapping[str, Any], columns: str) -> str:
    read = source.get("read")
    if read is None:
        return _READ.format(columns=columns)
    return _READ_IN_MODE.format(mode=read["mode"], columns=columns)


def _option(key: str, said: Any) -> Iterator[str]:
    if said is True:
        yield f"  {key}: true".ljust(_COMMENTS_BEGIN) + _COMMENTS[key]
        return
    if not isinstance(said, Mapping):
        yield f"  {key}: {_scalar(str(said))}"
        return
    yield f"  {key}:".ljust(_COMMENTS_BEGIN) + _COMMENTS[key]
    for name, item in said.items():
        yield f"    {_scalar(name)}: {_scalar(str(item))}"


def _partition_by(column: str, taken: set[str]) -> str:
    key = next((key for key in _KEYS if key not in taken), "partition_of_day")
    return (
        "  partition_by:                    # day(), hour(), month() of a column, or a column\n"
        f"    {key}: {_scalar(f'day({column})')}\n"
    )


def _name_of(table: str) -> str:
    last = re.split(r"[./]", re.sub(r"/metadata/[^/]+[.]json$", "", table.rstrip("/")))[-1]
    plain = unicodedata.normalize("NFKD", last).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:100] or "pipeline"


def _listed(columns: Sequence[str]) -> str:
    more = ", …" if len(columns) > _LISTED else ""
    return ", ".join(_scalar(column) for column in columns[:_LISTED]) + more


def _scalar(text: str) -> str:
    """Return text as YAML, quoted if YAML would otherwise read it as something else."""
    if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    quoted = yaml.dump(text, default_style='"', allow_unicode=True, width=len(text) * 10 + 10)
    return str(quoted).strip()
