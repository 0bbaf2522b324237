"""How requests stand now: read from their logs, their events and the registry of workers, explained in one place.

The API and the command line both show what this returns, so they cannot differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from muster_bus.buckets.conflicts import count_of_request
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus
from muster_bus.log import read_log
from muster_bus.receive import open_live
from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskState, fold
from muster_protocol.messages import HandedBack, Started
from muster_protocol.status import Seen, Standing, explain, explain_task

_STARTS: dict[str, type[Started] | type[HandedBack]] = {Started.kind: Started, HandedBack.kind: HandedBack}


@dataclass(frozen=True, slots=True)
class RequestView:
    """What a request's log says, and what was seen beside it."""

    state: RequestState
    seen: Seen
    conflicts: int = 0  # that are listed

    @property
    def standing(self) -> Standing:
        return explain(self.state, self.seen)

    def as_json(self) -> dict[str, Any]:
        """A request as machines read it, from the API or from `muster status --json`."""
        state, standing = self.state, self.standing
        return {
            "id": state.request_id,
            "status": standing.status.value,
            "reason": standing.reason,
            "team": state.team,
            "owner": state.owner,
            "deadline": state.deadline,
            "started_at": state.started_at or None,
            "tasks": [self._task(task) for task in state.tasks.values()],
            "plan": state.plan.model_dump(mode="json") if state.plan else None,
            "usage": state.usage.model_dump(mode="json"),
            "answer": state.answer.model_dump(mode="json", by_alias=True) if state.answer else None,
            "results_uncounted": state.uncounted,
            "conflicts": self.conflicts,
        }

    def _task(self, task: TaskState) -> dict[str, Any]:
        standing, result = explain_task(self.state, task, self.seen), task.result
        return {
            "id": task.spec.id,
            "label": task.spec.label,
            "tag": task.spec.tag,
            "role": result.role if result else task.spec.tag or "",
            "status": standing.status.value,
            "reason": standing.reason,
            "description": task.description,
            "dependencies": list(task.spec.dependencies),
            "attempts": len(task.attempts),
            "worker": result.worker if result else None,
            "seconds": task.seconds,
            "output": result.output if result else None,
            "superseded": [found._asdict() for found in task.superseded],
        }


async def view(bus: Bus, request_id: str) -> RequestView:
    """How one request stands."""
    found = (await views(bus, [request_id]))[0]
    return replace(found, conflicts=await count_of_request(bus, request_id))


async def views(bus: Bus, request_ids: Iterable[str]) -> list[RequestView]:
    """How some requests stand; each costs reading its log."""
    tags = {tag for worker in await live_workers(bus) for tag in worker.tags}
    found: list[RequestView] = []
    for request_id in request_ids:
        state = fold(request_id, await read_log(bus, request_id, from_leader=True))
        started = (
            await _started(bus, request_id) if state.in_flight and state.answer is None else frozenset[AttemptId]()
        )
        found.append(RequestView(state, Seen(bus.clock.now(), started, tags)))
    return found


async def _started(bus: Bus, request_id: str) -> frozenset[AttemptId]:
    """The attempts that a worker says it has started and not handed back."""
    started: set[AttemptId] = set()
    for raw in await bus.read(subjects.events(request_id)):
        try:
            event = open_live(raw, _STARTS).body
        except Invalid:
            continue  # another kind of event, or one that the coordinator reports
        if isinstance(event, Started):
            started.add(event.attempt_id)
        else:
            started.discard(event.attempt_id)
    return frozenset(started)
