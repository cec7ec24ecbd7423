"""Call Airflow's REST API as its UI does: health, runs, backfills, approvals.

Requests are retried while Airflow reports a temporary failure: SQLite locked (503), a backfill that
is about to end (409), an API that does not listen yet (AF-2.9).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import tenacity

from tidegate.errors import AirflowBusy, AirflowRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_AGAIN = {409, 429, 500, 502, 503, 504}
_PAGE = 100


@dataclass(frozen=True)
class DagRun:
    """A run of a DAG, as far as the demo uses it."""

    run_id: str
    state: str
    partition_key: str | None

    @property
    def is_active(self) -> bool:
        """Whether it has not ended; a waiting run counts as active."""
        return self.state in {"queued", "running"}


@dataclass(frozen=True)
class Question:
    """An approval that waits for a person."""

    run_id: str
    task_id: str
    subject: str
    body: str


class AirflowClient:
    """One Airflow, accessed by its REST API without a login, as the demo runs it.

    *Failure:* a request that is retried may have had its effect before; all of them may be
    repeated.
    """

    def __init__(
        self,
        url: str,
        patience_seconds: float = 60,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect to an address; the environment's proxies are not used.

        Args:
            url: scheme, host and port.
            patience_seconds: how long a request is retried. Under load the API answers late.
            transport: the transport of the requests; HTTP by default.
        """
        self.url = url
        self._http = httpx.Client(
            base_url=f"{url}/api/v2", timeout=60, trust_env=False, transport=transport
        )
        self._again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(AirflowBusy),
            wait=tenacity.wait_exponential_jitter(multiplier=0.3, max=5),
            stop=tenacity.stop_after_delay(patience_seconds),
            reraise=True,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def is_ready(self, dag_ids: tuple[str, ...]) -> bool:
        """Return whether API, scheduler and triggerer are alive and know the DAGs; no retries."""
        try:
            return self._is_healthy() and all(
                self._ask("GET", f"/dags/{dag_id}") for dag_id in dag_ids
            )
        except (AirflowBusy, AirflowRefused):
            return False

    def reached(self, dag_ids: tuple[str, ...]) -> frozenset[str]:
        """Return what has come up so far: parts that send heartbeats, DAGs that are known."""
        found: set[str] = set()
        with contextlib.suppress(AirflowBusy, AirflowRefused):
            health = self._ask("GET", "/monitor/health")
            found |= {name for name, part in health.items() if part["status"] == "healthy"}
            for dag_id in dag_ids:
                self._ask("GET", f"/dags/{dag_id}")
                found.add(dag_id)
        return frozenset(found)

    def unhealthy_parts(self) -> list[str]:
        """Return the names of the parts that sent no heartbeat lately; none if nobody answers."""
        try:
            health = self._ask("GET", "/monitor/health")
        except (AirflowBusy, AirflowRefused):
            return []
        return [
            name.replace("_", "-")
            for name, part in sorted(health.items())
            if part and part.get("status") == "unhealthy"
        ]

    def unpause(self, dag_id: str) -> None:
        """Unpause a DAG."""
        self._request("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def trigger(self, dag_id: str) -> None:
        """Start a manual run, without a data interval."""
        self._request("POST", f"/dags/{dag_id}/dagRuns", json={"logical_date": None})

    def runs(self, dag_id: str) -> list[DagRun]:
        """Return the runs of a DAG, oldest first."""
        found = self._pages(f"/dags/{dag_id}/dagRuns", "dag_runs", {"order_by": "id"})
        return [
            DagRun(item["dag_run_id"], item["state"], item.get("partition_key")) for item in found
        ]

    def backfill(
        self,
        dag_id: str,
        start: datetime,
        end: datetime,
        *,
        reprocess: str = "none",
        max_active_runs: int = 1,
        backwards: bool = False,
    ) -> int:
        """Create a backfill as the UI's dialog does; return its number.

        Args:
            dag_id: a DAG with data intervals.
            start: the first interval begins here or later.
            end: the last interval begins here or earlier.
            reprocess: which existing runs are repeated: `none`, `failed`, `completed`.
            max_active_runs: the backfill's own limit; it does not know the DAG's (AF-3.25).
            backwards: the last interval comes first.
        """
        body = {
            "dag_id": dag_id,
            "from_date": start.isoformat(),
            "to_date": end.isoformat(),
            "reprocess_behavior": reprocess,
            "max_active_runs": max_active_runs,
            "run_backwards": backwards,
        }
        return int(self._request("POST", "/backfills", json=body)["id"])

    def is_backfilling(self, dag_id: str) -> bool:
        """Return whether a backfill of the DAG is running."""
        found = self._pages("/backfills", "backfills", {"dag_id": dag_id})
        return any(item["completed_at"] is None for item in found)

    def questions(self, dag_id: str) -> list[Question]:
        """Return the approvals of a DAG that wait for an answer."""
        params = {"response_received": False, "state": "awaiting_input"}
        found = self._pages(f"/dags/{dag_id}/dagRuns/~/hitlDetails", "hitl_details", params)
        return [
            Question(
                item["task_instance"]["dag_run_id"],
                item["task_instance"]["task_id"],
                item["subject"],
                item["body"] or "",
            )
            for item in found
        ]

    def approve(self, dag_id: str, question: Question, comment: str) -> None:
        """Approve, as a person does under Required Actions."""
        run = f"/dags/{dag_id}/dagRuns/{question.run_id}"
        place = f"{run}/taskInstances/{question.task_id}/-1/hitlDetails"
        answer = {"chosen_options": ["Approve"], "params_input": {"comment": comment}}
        self._request("PATCH", place, json=answer)

    def _is_healthy(self) -> bool:
        health = self._ask("GET", "/monitor/health")
        parts = ("metadatabase", "scheduler", "triggerer")
        return all(health[part]["status"] == "healthy" for part in parts)

    def _pages(self, path: str, name: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = self._request(
                "GET", path, params={**params, "limit": _PAGE, "offset": len(found)}
            )
            found += page[name]
            if not page[name] or len(found) >= page["total_entries"]:
                return found

    def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return self._again(self._ask, method, path, **options)

    def _ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        request = f"{method} {path}"
        try:
            answer = self._http.request(method, path, **options)
        except httpx.TransportError as problem:
            raise AirflowBusy(
                request=request, problem=str(problem) or type(problem).__name__
            ) from problem
        if answer.status_code in _AGAIN:
            raise AirflowBusy(request=request, problem=f"{answer.status_code} {answer.text[:300]}")
        if answer.is_error:
            raise AirflowRefused(
                request=request, status=answer.status_code, answer=answer.text[:500]
            )
        found: dict[str, Any] = answer.json()
        return found
