"""Real workers, supervisors and coordinators, and what the tests of I6 do to the messages between them."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from muster_bus.buckets.conflicts import conflicts_of
from muster_bus.read_stream import Raw
from muster_protocol import subjects
from muster_protocol.conflict import Conflict, Ended, Side
from muster_protocol.messages import Abort, Answer, ConflictFound, Started
from muster_testing.waiting import until_asked
from tests.harness import TEAM, Muster

WITHIN = 20.0


class Contest(Muster):
    """A running team in which the same attempt is to be assigned twice."""

    async def start_all(self, *workers: str, coordinators: tuple[str, ...] = ("c1",)) -> None:
        """A supervisor, these workers with two slots each, and coordinators."""
        services = {
            "s1": "supervisor",
            **dict.fromkeys(workers, "worker"),
            **dict.fromkeys(coordinators, "coordinator"),
        }
        slots = ("--slots", "2")
        await asyncio.gather(
            *(self.start(service, name, *(slots if service == "worker" else ())) for name, service in services.items())
        )

    async def ask_one(self, **orders: Any) -> str:
        """A request of one task."""
        return await self.submit([{"id": "t", "orders": orders}])

    async def task_message(self, message_id: str = "") -> Raw:
        """The one task message that is stored, or the one that has this id."""
        stored = await self.bus.read(subjects.tasks("scripted"), from_leader=True)
        (message,) = [raw for raw in stored if raw.headers["Nats-Msg-Id"] == message_id or not message_id]
        return message

    async def copy(self, message: Raw, message_id: str | None = None) -> int:
        """Store a task message once more, by hand; returns its place in TASKS."""
        headers = {name: value for name, value in message.headers.items() if not name.startswith("Nats-")}
        headers["Nats-Msg-Id"] = message_id or f"copy-{secrets.token_hex(4)}"
        stored = await self.bus.publisher.store(message.subject, message.data, headers, give_up_after=5)
        assert not stored.is_duplicate
        return stored.sequence

    def hold(self, name: str) -> None:
        """Take a signal back: who waits for it from now on waits until it is given again."""
        (self.folder / name).unlink()

    async def until_running(self, request_id: str, count: int = 1) -> list[int]:
        """Wait until the task was begun so often; the processes that did, in order."""
        await self.until(lambda: len(self._begun(request_id)) >= count, f"{request_id} begins {count} times", WITHIN)
        return self._begun(request_id)

    def _begun(self, request_id: str) -> list[int]:
        return [trace["process"] for trace in self.traces() if trace["request"] == request_id]

    def worker_of(self, process: int, *names: str) -> str:
        return next(name for name in names if self.pid(name) == process)

    async def conflict(self, request_id: str, is_so: Callable[[Conflict], bool] = bool) -> Conflict:
        """Wait until the request has one conflict that is so; there is never a second."""
        limit = time.monotonic() + WITHIN
        while True:
            found = await conflicts_of(self.bus, request_id)
            assert len(found) <= 1, found
            if found and is_so(found[0]):
                return found[0]
            assert time.monotonic() < limit, f"no such conflict: {found}"
            await asyncio.sleep(0.02)

    async def found(self, request_id: str) -> list[Conflict]:
        """All conflicts of a request that are listed now."""
        return await conflicts_of(self.bus, request_id)

    async def aborts(self, request_id: str) -> list[Abort]:
        """Those that name a side."""
        stored = await self.bus.read(subjects.control(request_id), from_leader=True)
        found = [Abort.read(raw.data) for raw in stored if raw.headers["kind"] == Abort.kind]
        return [abort for abort in found if abort.side is not None]

    async def seconds_to_abort(self, request_id: str, loser: str, rival: str = "") -> float:
        """From what a side says first, after its rival has started, until the abort that names it: stored times."""
        events = await self.bus.read(subjects.events(request_id), from_leader=True)
        orders = await self.bus.read(subjects.control(request_id), from_leader=True)
        started = [(raw.headers.get("worker"), raw.time) for raw in events if raw.headers["kind"] == Started.kind]
        since = min((at for worker, at in started if worker == rival), default=0.0)
        evidence_at = min(at for worker, at in started if worker == loser and at >= since)
        aborts = [(Abort.read(raw.data), raw.time) for raw in orders if raw.headers["kind"] == Abort.kind]
        return min(at for abort, at in aborts if abort.side and abort.side.worker == loser) - evidence_at

    async def published(self, request_id: str) -> list[ConflictFound]:
        stored = await self.bus.read(subjects.events(request_id), from_leader=True)
        return [ConflictFound.read(raw.data) for raw in stored if raw.headers["kind"] == ConflictFound.kind]

    async def _has_event(self, request_id: str) -> bool:
        return bool(await self.published(request_id))

    async def until_quiet(self) -> None:
        """Wait until no task is left; then everything has been refused, stopped or done."""
        await self.until_settled(subjects.tasks("scripted"), WITHIN)

    async def resolved(self, request_id: str, answer: Answer) -> Conflict:
        """One conflict with one event; of the sides one was told to stop and has; one result counts."""
        found = await self.conflict(request_id, is_over)
        assert answer.status == "done"
        assert len(found.stops) == 1
        assert {abort.side for abort in await self.aborts(request_id)} == set(found.stops)
        await until_asked(lambda: self._has_event(request_id), "the event of the conflict")
        assert len(await self.published(request_id)) == 1
        state = await self.state(request_id)
        assert state.tasks["t"].result is not None
        assert state.uncounted == len(await self.results(request_id)) - 1
        return found


async def start_two(team: Contest, *more: dict[str, Any], coordinators: tuple[str, ...] = ("c1",)) -> str:
    """A request whose task `t` runs at w1, which has no other slot, so that a copy goes to w2."""
    await asyncio.gather(
        team.start("supervisor", "s1"),
        team.start("worker", "w1", "--slots", "1"),
        *(team.start("coordinator", name) for name in coordinators),
    )
    request_id = await team.submit([{"id": "t", "orders": {"until": "go"}}, *more])
    await team.until_running(request_id)
    await team.until_logged("w1", "→ task")
    await team.start("worker", "w2")
    return request_id


def unended(record: Conflict) -> list[Side]:
    """Those that were told to stop and have not."""
    return [side for side in record.sides if side.id in record.stops and side.ended is None]


def is_over(record: Conflict) -> bool:
    """Who was told to stop has stopped, and another has finished."""
    is_finished = any(side.ended is Ended.FINISHED for side in record.sides)
    return bool(record.stops) and not unended(record) and is_finished


def endings(record: Conflict) -> dict[str, Ended | None]:
    return {side.worker: side.ended for side in record.sides}


@asynccontextmanager
async def contest(
    folder: Path, *, duplicates_seconds: float = 120.0, team: str = TEAM % ("", 32)
) -> AsyncGenerator[Contest]:
    """A broker for the team of scripted roles, and no service yet."""
    (folder / "team.yaml").write_text(team)
    async with Contest.provisioned(folder / "team.yaml", folder, lease_seconds=1.0) as running:
        if duplicates_seconds != 120.0:
            js = running.bus.nc.jetstream(timeout=5)
            config = (await js.stream_info("TASKS")).config
            config.duplicate_window = duplicates_seconds
            await js.update_stream(config)
        yield running
