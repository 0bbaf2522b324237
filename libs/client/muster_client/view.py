"""How requests stand now: read from their logs, their events and the registry of workers, explained in one place.

The API and the command line both show what this returns, so they cannot differ.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from muster_bus.broker.queues import LOOK_UP_SECONDS, ack_wait_of, task_queue
from muster_bus.buckets.breakers import read_breakers
from muster_bus.buckets.conflicts import count_of_request
from muster_bus.buckets.workers import read_signs
from muster_bus.connection import Bus
from muster_bus.log import read_log
from muster_bus.receive import open_live
from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.fold import RequestState, TaskPhase, TaskState, fold
from muster_protocol.messages import HandedBack, Progress, Started
from muster_protocol.questions import questions_as_json
from muster_protocol.status import Seen, Standing, explain, explain_task
from muster_protocol.workers.breaker import Breaker
from muster_protocol.workers.signs import Signs

_STARTS: dict[str, type[Started | HandedBack | Progress]] = {
    kind.kind: kind for kind in (Started, HandedBack, Progress)
}


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
            "priority": state.plan_entry.priority if state.plan_entry else None,
            "owner": state.owner,
            "deadline": state.deadline,
            "started_at": state.started_at or None,
            "tasks": [self._task(task) for task in state.tasks.values()],
            "plan": state.plan.model_dump(mode="json") if state.plan else None,
            "questions": questions_as_json(state),
            "warnings": list(state.plan_entry.warnings) if state.plan_entry else [],
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
            "role": result.role if result else task.tag,
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
    signs = await read_signs(bus)
    found: list[RequestView] = []
    by_team: dict[str, dict[str, Breaker]] = {}  # the breakers that were read
    for request_id in request_ids:
        state = fold(request_id, await read_log(bus, request_id, from_leader=True))
        is_working = state.in_flight and state.answer is None
        started, waits = await _started(bus, request_id) if is_working else ({}, {})
        if state.ready and state.team not in by_team:
            with suppress(MusterError):  # an installation that an older version provisioned has none
                by_team[state.team] = await read_breakers(bus, state.team)
        seen = Seen(bus.clock.now(), started, breakers=by_team.get(state.team, {}), waits=waits)
        found.append(RequestView(state, await seen_with(bus, state, seen, signs)))
    return found


async def seen_with(bus: Bus, state: RequestState, seen: Seen, signs: Signs) -> Seen:
    """What was seen, with what the registry says; how long a lost task waits is looked up where one is lost."""
    tags = {tag for card in signs.cards.values() for tag in card.tags}
    for task in state.tasks.values() if seen.started else ():
        worker = seen.started.get(state.attempt_id(task.spec.id, len(task.attempts)))
        if task.phase is TaskPhase.RESERVED and worker is not None and worker not in signs.cards and task.queue:
            with suppress(MusterError):  # then the sentence does not say how long
                wait = await ack_wait_of(bus, task_queue([task.queue]), LOOK_UP_SECONDS)
                signs = replace(signs, ack_wait_seconds=wait)
            break
    return replace(seen, live_tags=tags, signs=signs)


async def _started(bus: Bus, request_id: str) -> tuple[dict[AttemptId, str], dict[AttemptId, Progress]]:
    """The attempts that a worker says it has started and not handed back, and which worker it was; and those that wait
    for a limit there."""
    started: dict[AttemptId, str] = {}
    waits: dict[AttemptId, Progress] = {}
    for raw in await bus.read(subjects.events(request_id)):
        try:
            event = open_live(raw, _STARTS).body
        except Invalid:
            continue  # another kind of event, or one that the coordinator reports
        match event:
            case Started():
                started[event.attempt_id] = event.worker
            case HandedBack():
                started.pop(event.attempt_id, None)
                waits.pop(event.attempt_id, None)
            case Progress() if event.waits_for:
                waits[event.attempt_id] = event
            case Progress():
                waits.pop(event.attempt_id, None)
    return started, waits
