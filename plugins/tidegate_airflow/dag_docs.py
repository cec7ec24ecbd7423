"""Write the DAGs as a page of documentation: the same text as on their pages in Airflow's UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import CronDataIntervalTimetable, CronTriggerTimetable, PartitionedAssetTimetable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.sdk import DAG

HEAD = """# The DAGs

Each file of `include/pipelines/` becomes three DAGs. This page is generated from the DAGs by
`make dag-docs`, with the pipeline `flights` of the demo as an example.
"""


def render(dags: Iterable[DAG]) -> str:
    """Return one section per DAG with its schedule, its documentation and its tasks."""
    return "\n".join([HEAD, *(_section(dag) for dag in dags)])


def _section(dag: DAG) -> str:
    lines = [
        f"## `{dag.dag_id}`",
        "",
        f"- runs: {_schedule(dag)}",
        f"- at most {dag.max_active_runs} runs at a time",
        f"- paused when new: {'no' if dag.is_paused_upon_creation is False else 'yes'}",
        "",
        _body(dag.doc_md or ""),
        "",
        "| task | after | class | pool |",
        "|---|---|---|---|",
    ]
    for task in dag.topological_sort():  # type: ignore[no-untyped-call]
        after = ", ".join(f"`{name}`" for name in sorted(task.upstream_task_ids)) or "–"
        lines.append(f"| `{task.task_id}` | {after} | {task.operator_name} | {task.pool} |")
    return "\n".join(lines) + "\n"


def _body(text: str) -> str:
    """Return the text without the title, which the section already has."""
    return "\n".join(
        line for line in text.strip().splitlines() if not line.startswith("###")
    ).strip()


def _schedule(dag: DAG) -> str:
    timetable = dag.timetable
    if isinstance(timetable, CronDataIntervalTimetable):
        return f"per data interval of `{timetable.expression}`, {timetable.timezone}"
    if isinstance(timetable, CronTriggerTimetable):
        return f"at `{timetable.expression}`, {timetable.timezone}"
    if isinstance(timetable, PartitionedAssetTimetable):
        return "once per partition that was announced"
    return "by hand"
