"""Kaizen's supervisor: it delegates, gathers, and gives failed work to somebody else."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from muster_bus.buckets.workers import live_workers
from muster_client.orders import Answered
from muster_client.seeds.pool import SharedMemoryPool
from muster_client.seeds.shapes import Aggregated, Failed, TaskDict, TaskResult, failed_of, tasks_in
from muster_protocol.counted import counted
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.fold import RequestState, TaskPhase
from muster_protocol.plan import Plan, TaskSpec

log = logging.getLogger("muster.client")


@dataclass(frozen=True, slots=True)
class BaseAgentConfig:
    """Where Kaizen says which model an agent uses. Muster's roles say so in the team file, and this says that."""

    llm_provider: str = ""
    model: str = ""
    logging_enabled: bool = True

    def __post_init__(self) -> None:
        if self.model and self.logging_enabled:
            log.warning("the model %s of a config is not used: the team file says which model a role has", self.model)


class SupervisorAgent:
    """Delegates work to the workers of a team."""

    def __init__(self, config: BaseAgentConfig | None, shared_memory: SharedMemoryPool, agent_id: str) -> None:
        self.config = config
        self.agent_id = agent_id
        self._line = shared_memory.line

    def delegate(
        self, request: str, available_workers: Sequence[str] | None = None, num_tasks: int = 3
    ) -> list[TaskDict]:
        """Hand out a request; returns its tasks once they are planned. The workers begin at once.

        With names, the request is cut into `num_tasks` equal shares that go round robin to whoever has that name as a
        tag. Without, the team's supervisor makes the plan, of about so many tasks, and chooses.
        """
        return self._line.run(self._delegate(request, available_workers, num_tasks))

    def aggregate_results(self, request_id: str) -> Aggregated:
        """Wait for the answer. Tasks that were reassigned after it count with what they came to since."""
        return self._line.run(self._aggregated(request_id))

    def check_all_tasks_completed(self, request_id: str) -> bool:
        """Whether every task has an output now; one that failed has none."""
        state = self._line.run(self._line.client.state(request_id))
        return bool(state.tasks) and all(
            task.phase is TaskPhase.DONE or self._is_mended(request_id, task_id)
            for task_id, task in state.tasks.items()
        )

    def check_failures(self, request_id: str) -> list[Failed]:
        """The tasks of this request that failed for good, as far as it is now and nobody else has done them."""
        state = self._line.run(self._line.client.state(request_id))
        return [
            failed_of(state, task_id, task.result.worker if task.result else task.spec.tag or "")
            for task_id, task in state.tasks.items()
            if task.phase is TaskPhase.FAILED and not self._is_mended(request_id, task_id)
        ]

    def reassign_task(self, task: TaskDict, new_worker: str) -> TaskDict:
        """Give a task to somebody else: also one that runs, or that failed while its request goes on.

        The dict is changed, and still names the request that it is of.
        """
        self._line.run(self._reassign(task["request_id"], task["task_id"], new_worker))
        task["assigned_to"] = new_worker
        return task

    async def _delegate(self, request: str, workers: Sequence[str] | None, num_tasks: int) -> list[TaskDict]:
        client = self._line.client
        if workers is None:
            request_id = await client.submit(request, num_tasks=num_tasks)
        else:
            await self._check_names(workers)
            request_id = await client.submit(plan=shares_of(request, workers, num_tasks))
        state = await self._line.until(request_id, lambda state: state.plan is not None)
        with self._line.lock:
            self._line.requests.append(request_id)
        if not state.tasks:
            reason = (state.answer.reason if state.answer else "") or "there is no plan"
            raise Invalid(f"{request_id} has no tasks: {reason}", "request")
        return tasks_in(state)

    async def _check_names(self, workers: Sequence[str]) -> None:
        known = {tag for card in await live_workers(self._line.client.bus) for tag in card.tags}
        if not workers:
            raise Invalid("names nobody; leave it out, and the team's supervisor chooses", "available_workers")
        for name in workers:
            if name not in known:
                raise Invalid(f"no live worker has the tag {name!r}{nearest(name, known)}", "available_workers")

    async def _aggregated(self, request_id: str) -> Aggregated:
        state = await self._line.until(request_id, lambda state: state.answer is not None)
        assert state.answer is not None
        results = [await self._result(state, task_id) for task_id in state.tasks]
        done = [result for result in results if result is not None]
        summary = f"{len(done):,} of {counted(len(results), 'task')} done"
        gaps = "; ".join(state.answer.gaps) if len(done) < len(results) else ""
        final = state.answer.text
        if any((request_id, result["task_id"]) in self._line.moved for result in done):
            final = "\n\n".join(str(result["result"]) for result in done)
        return Aggregated(final_result=final, summary=f"{summary}: {gaps}" if gaps else summary, task_results=done)

    async def _result(self, state: RequestState, task_id: str) -> TaskResult | None:
        moved = self._line.moved.get((state.request_id, task_id))
        if moved is not None:
            state = await self._line.until(moved[0], lambda state: state.answer is not None)
        task = state.tasks[task_id]
        if task.phase is not TaskPhase.DONE or task.result is None:
            return None
        return TaskResult(task_id=task_id, result=task.result.output, worker=task.result.worker)

    def _is_mended(self, request_id: str, task_id: str) -> bool:
        moved = self._line.moved.get((request_id, task_id))
        if moved is None:
            return False
        return self._line.run(self._line.client.state(moved[0])).tasks[task_id].phase is TaskPhase.DONE

    async def _reassign(self, request_id: str, task_id: str, worker: str) -> None:
        """Where it is, while its request goes on; else as a request of its own."""
        await self._check_names([worker])
        state = await self._line.client.state(request_id)
        task = state.tasks.get(task_id)
        if task is None:
            raise Invalid(f"{request_id} has no task {task_id!r}{nearest(task_id, state.tasks)}", "task")
        if state.answer is None and task.phase not in (TaskPhase.DONE, TaskPhase.SKIPPED):
            try:
                await self._move(state, task_id, worker)
            except Answered:
                pass  # just now
            else:
                return
        spec = task.spec.model_copy(update={"tag": worker, "dependencies": (), "gather": None})
        new_id = await self._line.client.submit(plan=Plan(goal=task.description, tasks=(spec,)))
        await self._line.until(new_id, lambda state: state.plan is not None)
        with self._line.lock:
            self._line.moved[request_id, task_id] = (new_id, worker)
            self._line.executed.discard((request_id, task_id))

    async def _move(self, state: RequestState, task_id: str, worker: str) -> None:
        """To the role that has this name as a tag, or to the worker that has it; what failed there is tried again."""
        client, task = self._line.client, state.tasks[task_id]
        roles = {role.name: role for card in await live_workers(client.bus) for role in card.roles}
        serving = [name for name, role in roles.items() if worker in role.tags]
        role = worker if worker in serving else next(iter(serving), None)
        if role is not None and task.phase is TaskPhase.FAILED and task.tag in roles[role].tags:
            await client.retry(state.request_id, task_id)
        else:
            await client.reassign(state.request_id, task_id, role, worker=worker if role is None else None)


def shares_of(request: str, workers: Sequence[str], num_tasks: int) -> Plan:
    """The request in equal shares, one worker after the other. Functions read their share from `inputs`."""
    tasks = tuple(
        TaskSpec(
            id=f"task_{number}",
            description=f"{request}\n\nDo part {number} of {num_tasks} of this, and nothing of the other parts."
            if num_tasks > 1
            else request,
            tag=workers[(number - 1) % len(workers)],
            inputs={"request": request, "part": number, "of": num_tasks},
        )
        for number in range(1, num_tasks + 1)
    )
    return Plan(goal=request, tasks=tasks)
