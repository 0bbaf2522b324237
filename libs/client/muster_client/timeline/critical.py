"""The critical path: what the answer waited for, one after the other, back to the beginning."""

from collections.abc import Iterable
from dataclasses import replace

from muster_client.timeline.steps import Step, StepStatus, What
from muster_protocol.fold import RequestState

_OF_ALL_REQUESTS = (What.QUEUED, What.PLAN, What.ANSWER)
_BESIDE_THE_PATH = (What.TOOL, What.CONFLICT)


def marked(state: RequestState, steps: Iterable[Step], end: float) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The steps with those on the critical path marked, and the names along it."""
    steps = tuple(steps)
    chain = _chain(state, _ends(steps, end))
    on_path = set(chain)
    marked_steps = tuple(replace(step, is_critical=True) if _is_critical(step, on_path) else step for step in steps)
    has = {step.what for step in steps if not step.task}
    before = ("plan",) if What.PLAN in has else ()
    return marked_steps, (*before, *chain, *(("answer",) if What.ANSWER in has else ()))


def _ends(steps: Iterable[Step], end: float) -> dict[str, float]:
    """When each task that was begun ended, by what counts."""
    ends: dict[str, float] = {}
    for step in steps:
        if step.task and step.status is not StepStatus.UNCOUNTED and step.what not in _BESIDE_THE_PATH:
            ends[step.task] = max(ends.get(step.task, 0.0), step.until(end))
    return ends


def _chain(state: RequestState, ends: dict[str, float]) -> tuple[str, ...]:
    """From the task that ended last back along the dependency that each waited for the longest."""
    chain: list[str] = []
    candidates = [task_id for task_id in state.tasks if task_id in ends]
    while candidates:
        last = max(candidates, key=lambda task_id: ends[task_id])
        chain.append(last)
        candidates = [need for need in state.tasks[last].spec.dependencies if need in ends]
    return tuple(reversed(chain))


def _is_critical(step: Step, on_path: set[str]) -> bool:
    if not step.task:
        return step.what in _OF_ALL_REQUESTS
    return step.task in on_path and step.status is not StepStatus.UNCOUNTED and step.what not in _BESIDE_THE_PATH
