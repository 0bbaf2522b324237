"""Kaizen's workflow in one call: delegate, do, gather."""

from typing import Any, TypedDict

from muster_client.seeds.delegating import SupervisorAgent
from muster_client.seeds.pool import SharedMemoryPool
from muster_client.seeds.shapes import ResultDict, TaskDict
from muster_client.seeds.working import WorkerAgent


class WorkflowResult(TypedDict):
    """What a workflow came to."""

    request: str
    tasks: list[TaskDict]
    results: list[ResultDict]
    final_result: str
    stats: dict[str, Any]


def supervisor_worker_workflow(request: str, num_workers: int = 2, num_tasks: int = 3) -> WorkflowResult:
    """Cut a request into `num_tasks` shares for `worker_1` … `worker_n`, and wait for all of them.

    Each name is a tag that somebody in the team must have: a role of this name, or one role with all of these tags.
    """
    pool = SharedMemoryPool()
    supervisor = SupervisorAgent(None, pool, agent_id="supervisor_1")
    names = [f"worker_{number}" for number in range(1, num_workers + 1)]
    tasks = supervisor.delegate(request, available_workers=names, num_tasks=num_tasks)
    workers = {name: WorkerAgent(None, pool, agent_id=name) for name in names}
    results = [workers[task["assigned_to"]].execute_task(task) for task in tasks]
    aggregated = supervisor.aggregate_results(tasks[0]["request_id"])
    return WorkflowResult(
        request=request,
        tasks=tasks,
        results=results,
        final_result=aggregated["final_result"],
        stats=_stats(results, len(names)),
    )


def _stats(results: list[ResultDict], workers: int) -> dict[str, Any]:
    """What the shared memory would hold: a task and a result or an error each."""
    failed = sum(result["status"] == "failed" for result in results)
    done = len(results) - failed
    return {
        "insight_count": 2 * len(results),
        "agent_count": 1 + workers,
        "tag_distribution": {
            "task": len(results),
            "result": done,
            "completed": done,
            "error": failed,
            "failed": failed,
        },
        "segment_distribution": {"tasks": len(results), "results": done, "errors": failed},
    }
