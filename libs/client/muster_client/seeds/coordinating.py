"""Kaizen's coordinator: it counts, and lists what was assigned twice. It says what is so, and needs no model."""

from muster_bus.buckets.conflicts import conflicts_of
from muster_bus.buckets.workers import live_workers
from muster_client.seeds.delegating import BaseAgentConfig
from muster_client.seeds.pool import SharedMemoryPool
from muster_client.seeds.shapes import ENDED, Conflicts, Progress, Resolution
from muster_protocol.fold import TaskPhase


class CoordinatorAgent:
    """Looks at what was delegated over a pool; writes nothing."""

    def __init__(self, config: BaseAgentConfig | None, shared_memory: SharedMemoryPool, agent_id: str) -> None:
        self.config = config
        self.agent_id = agent_id
        self._line = shared_memory.line

    def monitor_progress(self) -> Progress:
        """Who is alive, and how many tasks are open and done now."""
        return self._line.run(self._progress())

    def resolve_conflicts(self) -> Conflicts:
        """What was assigned more than once, and how the coordinator of the team has settled it."""
        return self._line.run(self._conflicts())

    async def _progress(self) -> Progress:
        client = self._line.client
        states = [await client.state(request_id) for request_id in self._requests()]
        tasks = [(state, task) for state in states for task in state.tasks.values()]
        return Progress(
            active_workers=[card.name for card in await live_workers(client.bus)],
            pending_tasks=sum(state.answer is None and task.phase not in ENDED for state, task in tasks),
            completed_tasks=sum(task.phase is TaskPhase.DONE for _, task in tasks),
        )

    async def _conflicts(self) -> Conflicts:
        found: list[Resolution] = []
        for request_id in self._requests():
            for record in await conflicts_of(self._line.client.bus, request_id):
                if record.attempt == 0:
                    continue  # two tasks of a plan that say the same: nobody did one task twice
                workers = [side.worker for side in record.sides if side.worker]
                found.append(Resolution(request_id=request_id, task_id=record.task_id, workers=workers, why=record.why))
        return Conflicts(conflicts_found=len(found), resolutions=found)

    def _requests(self) -> list[str]:
        """What was delegated, with the requests that reassigned tasks became."""
        with self._line.lock:
            return [*self._line.requests, *(new_id for new_id, _ in self._line.moved.values())]
