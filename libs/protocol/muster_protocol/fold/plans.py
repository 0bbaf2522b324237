"""What the plan means: its tasks, and what each of them waits for."""

from muster_protocol.fold.budget import settle
from muster_protocol.fold.gathering import most_lacking, parts_of
from muster_protocol.fold.moves import Cause, move
from muster_protocol.fold.state import Entry, RequestState, TaskState
from muster_protocol.messages import PLAN, PlanRecorded
from muster_protocol.plan import TaskSpec, is_acyclic
from muster_protocol.retry import max_attempts_of


def plan(state: RequestState, _: Entry, body: PlanRecorded) -> None:
    if state.plan_entry is not None or not is_acyclic(body.plan):
        return
    state.team = body.team
    state.request_hash = body.request_hash
    state.base_deadline = body.deadline if state.base_deadline is None else min(state.base_deadline, body.deadline)
    settle(state, PLAN)
    state.usage += body.usage
    lay_out(state, body)
    if body.approve:
        state.is_held = True
    else:
        release(state)


def lay_out(state: RequestState, body: PlanRecorded) -> None:
    """The tasks of the plan, connected; none of them begins yet."""
    state.plan_entry = body
    state.tasks.clear()
    for spec in body.plan.tasks:
        place(state, spec, body)
    state.open_tasks = len(state.tasks)
    for spec in body.plan.tasks:
        if spec.dependencies:
            connect(state, state.tasks[spec.id])


def place(state: RequestState, spec: TaskSpec, entry: PlanRecorded) -> None:
    """Add a task that waits for all that it depends on."""
    most = max_attempts_of(spec, entry.retry, entry.max_attempts)
    state.tasks[spec.id] = TaskState(spec, spec.description, most, len(set(spec.dependencies)))


def release(state: RequestState) -> None:
    """Nobody has to approve the plan, or somebody has: its tasks may begin."""
    state.is_held = False
    for task in state.tasks.values():
        if not task.spec.dependencies:
            move(state, task, Cause.DEPENDENCIES_DONE)


def connect(state: RequestState, task: TaskState) -> None:
    """Tell those that a task depends on, and count how many of them it can do without."""
    for name in dict.fromkeys(task.spec.dependencies):
        state.tasks[name].dependents.append(task.spec.id)
    task.may_lose = most_lacking(task, parts_of(state, task))
