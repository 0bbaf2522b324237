"""Random faults from a seeded source: kills, SIGTERM, pauses, cut-off workers, supervisors killed in a loop."""

import asyncio
import random
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from muster_bus.broker.embedded import Server
from muster_testing.broker import pause, resume
from tests.chaos.processes import CUT_OFF, Process, Processes

PAUSE_SECONDS = (0.5, 3.0)  # between two faults
DOWN_SECONDS = (0.0, 1.5)  # before what was killed is started again
PAUSED_LEASES = (0.2, 3.0)
BROKER_PAUSED_SECONDS = (0.1, 2.0)
CUT_SECONDS = (0.5, 5.0)  # past the timeouts of some tasks: the worker finishes them after they were given up
REJOIN_SECONDS = 5.0  # a node that is back must follow again before the next one may go
LOOP = "supervisors killed in a loop"
LOOP_COUNT, LOOP_LEASES = 5, 1.5  # more often than the takes without progress that make a request poison
WEIGHTS = {"kill -9": 5, "SIGTERM": 3, "pause": 5, "broker kill -9": 1.5, "broker pause": 1, "cut": 2, LOOP: 0.7}

Doing = Coroutine[None, None, None]


@dataclass(frozen=True, slots=True)
class Draw:
    """All chance that one fault needs, drawn before it begins: others cannot change what it gets."""

    what: str
    target: float
    extent: float
    is_renamed: bool


class Faults:
    """Does one fault after the other; each ends by itself."""

    def __init__(self, processes: Processes, chance: random.Random, lease_seconds: float) -> None:
        self._processes = processes
        self._chance = chance
        self._lease_seconds = lease_seconds
        self._is_broker_busy = False

    async def run(self, until: float) -> None:
        """Until a moment of the monotonic clock; afterwards everything is as it was."""
        async with asyncio.TaskGroup() as faults:
            while time.monotonic() < until:
                draw = self._draw()
                fault = self._fault(draw)
                if fault is not None:
                    self._processes.ledger.faults.append(draw.what)
                    faults.create_task(fault)
                await asyncio.sleep(self._chance.uniform(*PAUSE_SECONDS))

    def _draw(self) -> Draw:
        chance = self._chance
        (what,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        return Draw(what, chance.random(), chance.random(), chance.random() < 0.5)

    def _fault(self, draw: Draw) -> Doing | None:
        match draw.what:
            case "broker kill -9":
                return self._at_a_broker(self._kill_broker, draw)
            case "broker pause":
                return self._at_a_broker(self._pause_broker, draw)
            case "cut":
                return self._cut(draw) if not self._processes.is_cut else None
            case kind if kind == LOOP:
                return self._at_all_supervisors()
            case what:
                do = {"SIGTERM": self._stop, "pause": self._pause}.get(what, self._kill)
                return self._at_a_service(do, draw)

    def _at_a_service(self, do: Callable[[Process, Draw], Doing], draw: Draw) -> Doing | None:
        idle = [service for service in self._processes.services if not service.is_busy and service.is_running]
        if not idle:
            return None
        service = idle[int(draw.target * len(idle))]
        service.is_busy = True

        async def done() -> None:
            try:
                await do(service, draw)
            finally:
                service.is_busy = False

        return done()

    async def _cut(self, draw: Draw) -> None:
        processes = self._processes
        began, pid = time.time(), next(service.pid for service in processes.services if service.name == CUT_OFF)
        await processes.cut()
        try:
            await asyncio.sleep(_within(CUT_SECONDS, draw.extent))
        finally:
            await processes.mend()
            processes.was_away(CUT_OFF, began, pid)

    def _at_all_supervisors(self) -> Doing | None:
        """Kill all of them again and again, each time after they had a lease to take their requests over."""
        supervisors = [service for service in self._processes.services if service.service == "supervisor"]
        if any(service.is_busy or not service.is_running for service in supervisors):
            return None
        for service in supervisors:
            service.is_busy = True

        async def done() -> None:
            try:
                for _ in range(LOOP_COUNT):
                    await asyncio.gather(*(self._kill_at_once(service) for service in supervisors))
                    await asyncio.sleep(LOOP_LEASES * self._lease_seconds)
            finally:
                for service in supervisors:
                    service.is_busy = False

        return done()

    async def _kill_at_once(self, service: Process) -> None:
        await self._kill(service, Draw(LOOP, 0.0, 0.0, is_renamed=True))

    def _at_a_broker(self, do: Callable[[Server, Draw], Doing], draw: Draw) -> Doing | None:
        if self._is_broker_busy:
            return None
        self._is_broker_busy = True
        brokers = self._processes.brokers

        async def done() -> None:
            try:
                await do(brokers[int(draw.target * len(brokers))], draw)
                if len(brokers) > 1:
                    await asyncio.sleep(REJOIN_SECONDS)
            finally:
                self._is_broker_busy = False

        return done()

    async def _kill(self, service: Process, draw: Draw) -> None:
        began, process = time.time(), service.pid
        service.kill()
        await asyncio.sleep(_within(DOWN_SECONDS, draw.extent))
        await service.start(is_renamed=draw.is_renamed)
        self._processes.was_away(service.name, began, process, is_death=True)

    async def _stop(self, service: Process, draw: Draw) -> None:
        began = time.time()
        await service.stop()
        await asyncio.sleep(_within(DOWN_SECONDS, draw.extent))
        await service.start(is_renamed=draw.is_renamed)
        self._processes.was_away(service.name, began)

    async def _pause(self, service: Process, draw: Draw) -> None:
        began, process = time.time(), service.pid
        service.signal(signal.SIGSTOP)
        await asyncio.sleep(_within(PAUSED_LEASES, draw.extent) * self._lease_seconds)
        service.signal(signal.SIGCONT)
        self._processes.was_away(service.name, began, process)

    async def _kill_broker(self, broker: Server, draw: Draw) -> None:
        began = time.time()
        broker.kill()
        await asyncio.sleep(_within(DOWN_SECONDS, draw.extent))
        await broker.start()
        self._processes.was_away("broker", began)

    async def _pause_broker(self, broker: Server, draw: Draw) -> None:
        began = time.time()
        pause(broker)
        await asyncio.sleep(_within(BROKER_PAUSED_SECONDS, draw.extent))
        resume(broker)
        self._processes.was_away("broker", began)


def _within(bounds: tuple[float, float], part: float) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) * part
