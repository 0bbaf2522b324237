"""Names workers that are silent while work of theirs is awaited: one whose process is blocked cannot say so itself.

The registry shows it from outside: a worker whose event loop is blocked, whose process is paused, dead or cut off, does
not renew its card.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.buckets.workers import read_signs
from muster_bus.connection import Bus
from muster_bus.process.about import fields_of
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import MusterError
from muster_protocol.fold import RequestState, TaskPhase
from muster_protocol.sender import worker_name
from muster_protocol.workers.card import WorkerCard
from muster_protocol.workers.signs import STUCK, Signs
from muster_supervisor.choosing.unserved import Remark, UnservedTags, served_tags, tags_in
from muster_supervisor.choosing.window import Windows

log = logging.getLogger("muster.supervisor")

LOOK_SECONDS = 2.0  # between two looks at the registry, while tasks are dispatched
LONGEST_SECONDS = 120.0  # after which a silent worker is forgotten: its work is elsewhere by then
NAMES = 3  # attempts that are named where it is not known which one is meant

Awaited = Mapping[str, Sequence[AttemptId]]  # the dispatched attempts of each tag


class SilentWorkers:
    """Which workers are silent, and what is said about it: once, again after twice the time, and when it is over."""

    def __init__(self, roles_of: Callable[[str], str]) -> None:
        self._roles_of = roles_of
        self._known: dict[str, WorkerCard] = {}  # the last card of each, also when the bucket has dropped it
        self._due: dict[str, float] = {}  # of a silent one: the silence after which it is said again

    def look(self, signs: Signs, awaited: Awaited) -> list[Remark]:
        """The lines that are new."""
        self._known |= signs.cards
        lines: list[Remark] = []
        for name, card in list(self._known.items()):
            silence = signs.silence(card)
            if name in signs.left or silence > LONGEST_SECONDS:
                self._forget(name)
            elif not signs.is_silent(card):
                if self._due.pop(name, None) is not None:
                    lines.append(Remark(f"… {worker_name(name)}  is heard of again", worker=worker_name(name)))
            elif silence >= self._due.get(name, 0.0) and (found := _awaited_of(card, awaited)):
                self._due[name] = 2 * silence
                since = f"has given no sign for {silence:.0f} s, while {self._work(found)} is awaited"
                about = found[0][1] if len(found) == 1 else None
                lines.append(Remark(f"… {worker_name(name)}  {since}: {STUCK}", about, worker_name(name)))
        return lines

    def has_any(self, signs: Signs) -> bool:
        """Whether a worker is silent: only then the awaited attempts are needed, which may be many."""
        return any(signs.is_silent(card) for card in {**self._known, **signs.cards}.values())

    def _forget(self, name: str) -> None:
        del self._known[name]
        self._due.pop(name, None)

    def _work(self, found: Sequence[tuple[str, AttemptId]]) -> str:
        """The attempts that a worker may have, each with its role."""
        names = [f"role {self._roles_of(tag)!r} ({attempt})" for tag, attempt in found[:NAMES]]
        return " or ".join(names) + (f" or {len(found) - NAMES} more" if len(found) > NAMES else "")


def _awaited_of(card: WorkerCard, awaited: Awaited) -> list[tuple[str, AttemptId]]:
    """The attempts that a worker may have, each with its tag."""
    return [(tag, attempt) for tag in card.tags for attempt in awaited.get(tag, ())]


class WorkerWatch:
    """Looks at the registry while a request of this supervisor waits for workers."""

    def __init__(
        self,
        bus: Bus,
        team: Team,
        states: Callable[[], Iterable[RequestState]],
        on_unserved: Callable[[str, float, float], None],
        windows: Windows,
    ) -> None:
        self._bus = bus
        self._states = states
        self._on_unserved = on_unserved
        self._windows = windows
        self._is_first = True  # before anything is asked, so that the first request has its window
        self._unserved = UnservedTags()
        self._tags: dict[str, frozenset[str]] = {}  # of each request, looked up once
        self._silent = SilentWorkers(lambda tag: roles_with(team, tag))
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = supervised(self._watch(), "watching for silent workers")

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while True:
            if self._bus.connected.is_set() and (self._is_first or any(state.in_flight for state in self._states())):
                await self._look_once()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_once(self) -> None:
        try:
            signs = await read_signs(self._bus)
        except MusterError as error:
            log.debug("the registry of workers was not read: %s", error)
            return
        self._is_first = False
        self._windows.see(card for card in signs.cards.values() if not signs.is_silent(card))
        self._look(signs)

    def _look(self, signs: Signs) -> None:
        """Name workers that are silent and tags without a worker; the attempts, which may be many, only if needed."""
        is_needed = self._silent.has_any(signs) or not self._used_tags() <= served_tags(signs)
        awaited = awaited_attempts(self._states()) if is_needed else {}
        for line in (*self._silent.look(signs, awaited), *self._unserved.look(signs, awaited)):
            log.warning(line.text, extra={**fields_of(line.about), "worker": line.worker})
        for tag, since in self._unserved.since.items():
            self._on_unserved(tag, since, signs.at)

    def _used_tags(self) -> set[str]:
        open_states = [state for state in self._states() if state.in_flight and state.answer is None]
        known = self._tags
        self._tags = {one.request_id: known.get(one.request_id) or tags_in(one) for one in open_states}
        return {tag for tags in self._tags.values() for tag in tags}


def awaited_attempts(states: Iterable[RequestState]) -> dict[str, list[AttemptId]]:
    """The dispatched attempts by tag."""
    found: dict[str, list[AttemptId]] = {}
    for state in states:
        for task in state.tasks.values() if state.in_flight and state.answer is None else ():
            if task.phase is TaskPhase.RESERVED:
                attempt = state.attempt_id(task.spec.id, len(task.attempts))
                found.setdefault(task.queue, []).append(attempt)
    return found


def roles_with(team: Team, tag: str) -> str:
    """The roles that do the tasks of a tag."""
    return " or ".join(role.name for role in team.roles_matching((tag,))) or tag
