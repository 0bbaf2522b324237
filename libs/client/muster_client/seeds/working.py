"""Kaizen's worker, seen from outside: the team's own workers do the work, once; here its results are taken."""

from muster_client.seeds.delegating import BaseAgentConfig
from muster_client.seeds.pool import SharedMemoryPool
from muster_client.seeds.shapes import ENDED, ResultDict, TaskDict, result_of, tasks_in


class WorkerAgent:
    """The results of the tasks that went to one name."""

    def __init__(self, config: BaseAgentConfig | None, shared_memory: SharedMemoryPool, agent_id: str) -> None:
        self.config = config
        self.agent_id = agent_id
        self._line = shared_memory.line

    def get_assigned_tasks(self) -> list[TaskDict]:
        """All tasks of this name, and of no other, that were delegated here and whose result nobody has taken yet."""
        with self._line.lock:
            requests, executed, moved = [*self._line.requests], set(self._line.executed), dict(self._line.moved)
        found = [task for request_id in requests for task in self._line.run(self._tasks_of(request_id))]
        for task in found:
            place = moved.get((task["request_id"], task["task_id"]))
            if place is not None:
                task["assigned_to"] = place[1]
        return [
            task
            for task in found
            if task["assigned_to"] == self.agent_id and (task["request_id"], task["task_id"]) not in executed
        ]

    def execute_task(self, task: TaskDict) -> ResultDict:
        """Wait for what the task comes to. It was begun when it was delegated, and is never run a second time."""
        key = (task["request_id"], task["task_id"])
        place = self._line.moved.get(key)
        found = self._line.run(self._result_of(place[0] if place is not None else key[0], key[1]))
        with self._line.lock:
            self._line.executed.add(key)
        return found

    async def _tasks_of(self, request_id: str) -> list[TaskDict]:
        return tasks_in(await self._line.until(request_id, lambda state: state.plan is not None))

    async def _result_of(self, request_id: str, task_id: str) -> ResultDict:
        state = await self._line.until(
            request_id, lambda state: task_id in state.tasks and state.tasks[task_id].phase in ENDED
        )
        return result_of(state, task_id)
