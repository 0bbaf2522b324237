"""What the functions return: the keys are Kaizen's."""

from typing import TypedDict

from muster_protocol.fold import RequestState, TaskPhase, TaskState
from muster_protocol.messages import Output


class TaskDict(TypedDict):
    """One task, and whose it is."""

    task_id: str
    description: str
    assigned_to: str
    request_id: str


class ResultDict(TypedDict):
    """What a task came to: `completed`, or `failed` with the reason as its result."""

    task_id: str
    result: Output
    status: str


class TaskResult(TypedDict):
    """One output, and which worker gave it."""

    task_id: str
    result: Output
    worker: str


class Aggregated(TypedDict):
    """The answer, a line about how it came to be, and the outputs that it is made of."""

    final_result: str
    summary: str
    task_results: list[TaskResult]


class FailedMetadata(TypedDict):
    """Which task failed, and the class of its error."""

    task_id: str
    request_id: str
    status: str
    error_class: str


class Failed(TypedDict):
    """A task that failed for good, as an entry of Kaizen's shared memory."""

    agent_id: str
    content: str
    tags: list[str]
    importance: float
    segment: str
    metadata: FailedMetadata


class Progress(TypedDict):
    """How far the requests of this pool are."""

    active_workers: list[str]
    pending_tasks: int
    completed_tasks: int


class Resolution(TypedDict):
    """One attempt that was assigned more than once: at whom, and what was decided."""

    request_id: str
    task_id: str
    workers: list[str]
    why: str


class Conflicts(TypedDict):
    """What was assigned more than once."""

    conflicts_found: int
    resolutions: list[Resolution]


ENDED = frozenset({TaskPhase.DONE, TaskPhase.FAILED, TaskPhase.SKIPPED})


def tasks_in(state: RequestState) -> list[TaskDict]:
    """The tasks of a plan, in its order."""
    return [
        TaskDict(
            task_id=task_id, description=task.description, assigned_to=task.spec.tag or "", request_id=state.request_id
        )
        for task_id, task in state.tasks.items()
    ]


def result_of(state: RequestState, task_id: str) -> ResultDict:
    """What a task has come to; one that the answer did not wait for has failed too."""
    task = state.tasks.get(task_id)
    if task is not None and task.phase is TaskPhase.DONE and task.result is not None:
        return ResultDict(task_id=task_id, result=task.result.output, status="completed")
    return ResultDict(task_id=task_id, result=reason_of(state, task), status="failed")


def reason_of(state: RequestState, task: TaskState | None) -> str:
    """Why a task has no output."""
    if task is not None and task.result is not None and task.result.error is not None:
        return task.result.error.message
    if task is not None and task.reason:
        return task.reason
    return (state.answer.reason if state.answer else "") or "the request ended before it gave a result"


def failed_of(state: RequestState, task_id: str, worker: str) -> Failed:
    """A task that failed for good."""
    task = state.tasks[task_id]
    error = task.result.error if task.result is not None else None
    return Failed(
        agent_id=worker,
        content=reason_of(state, task),
        tags=["error", "failed", state.request_id],
        importance=0.9,
        segment="errors",
        metadata=FailedMetadata(
            task_id=task_id,
            request_id=state.request_id,
            status="failed",
            error_class=error.error_class if error else "",
        ),
    )
