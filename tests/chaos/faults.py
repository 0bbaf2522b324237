"""Random faults from a seeded source: kills, SIGTERM, pauses, damaged wires, full disks, supervisors in a loop."""

import asyncio
import random
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_testing.broker import pause, resume
from tests.chaos.damage import change_bytes, cut, drain, fill_disk, say_line, within
from tests.chaos.processes import Process, Processes

PAUSE_SECONDS = (0.5, 3.0)  # between two faults
DOWN_SECONDS = (0.0, 1.5)  # before what was killed is started again
PAUSED_LEASES = (0.2, 3.0)
BROKER_PAUSED_SECONDS = (0.1, 2.0)
HUNG_LEASES = (1.2, 4.0)  # past the ack wait: what the worker ran is given to another, and both go on
REJOIN_SECONDS = 5.0  # a node that is back must follow again before the next one may go
LOOP = "supervisors killed in a loop"
LOOP_COUNT, LOOP_LEASES = 5, 1.5  # more often than the takes without progress that make a request poison
FULL = "full disk"
WEIGHTS = {
    "kill -9": 5,
    "SIGTERM": 3,
    "pause": 3,
    "hung worker": 4,
    "broker kill -9": 1.5,
    "broker pause": 1,
    "cut": 2,
    "error line": 2,
    "changed bytes": 1,
    FULL: 0.7,
    LOOP: 0.7,
}
LAST_SECONDS = 8.0  # of a run, for a full disk with nothing after it that could help

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

    def __init__(self, processes: Processes, bus: Bus, chance: random.Random, lease_seconds: float) -> None:
        self._processes = processes
        self._bus = bus
        self._chance = chance
        self._lease_seconds = lease_seconds
        self._is_broker_busy = False

    async def run(self, until: float) -> None:
        """Until a moment of the monotonic clock; at the end a full disk, and everything is as it was."""
        async with asyncio.TaskGroup() as faults:
            while time.monotonic() < until - LAST_SECONDS:
                draw = self._draw()
                fault = self._fault(draw)
                if fault is not None:
                    self._processes.ledger.faults.append(draw.what)
                    faults.create_task(fault)
                await asyncio.sleep(self._chance.uniform(*PAUSE_SECONDS))
        last = self._at_a_broker(self._fill_disk, self._draw())
        if self._processes.have_disks and last is not None:
            self._processes.ledger.faults.append(FULL)
            await last

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
            case "full disk":
                return self._at_a_broker(self._fill_disk, draw) if self._processes.have_disks else None
            case "cut" | "error line" | "changed bytes":
                return self._at_wires(draw)
            case "supervisors killed in a loop":
                return self._at_all_supervisors()
            case what:
                do = {"SIGTERM": self._stop, "pause": self._pause, "hung worker": self._hang}.get(what, self._kill)
                return self._at_a_service(do, draw)

    def _at_a_service(self, do: Callable[[Process, Draw], Doing], draw: Draw) -> Doing | None:
        idle = [service for service in self._processes.services if not service.is_busy and service.is_running]
        if draw.what == "hung worker":
            idle = [service for service in idle if service.service == "worker"]
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

    def _at_wires(self, draw: Draw) -> Doing | None:
        """Whatever else happens to the service meanwhile."""
        whole = [service for service in self._processes.services if not service.is_damaged and service.is_running]
        if not whole:
            return None
        service = whole[int(draw.target * len(whole))]
        service.is_damaged = True
        do = {"cut": cut, "error line": say_line}.get(draw.what, change_bytes)

        async def done() -> None:
            try:
                await do(self._processes, service, draw.extent)
            finally:
                service.is_damaged = False

        return done()

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
        await asyncio.sleep(within(DOWN_SECONDS, draw.extent))
        await service.start(is_renamed=draw.is_renamed)
        self._processes.was_away(service.name, began, process, is_death=True)

    async def _stop(self, service: Process, draw: Draw) -> None:
        began = time.time()
        await service.stop()
        await asyncio.sleep(within(DOWN_SECONDS, draw.extent))
        await service.start(is_renamed=draw.is_renamed)
        self._processes.was_away(service.name, began)

    async def _pause(self, service: Process, draw: Draw) -> None:
        await self._stand_still(service, within(PAUSED_LEASES, draw.extent))

    async def _hang(self, service: Process, draw: Draw) -> None:
        await self._stand_still(service, within(HUNG_LEASES, draw.extent))

    async def _stand_still(self, service: Process, leases: float) -> None:
        began, process = time.time(), service.pid
        service.signal(signal.SIGSTOP)
        await asyncio.sleep(leases * self._lease_seconds)
        service.signal(signal.SIGCONT)
        self._processes.was_away(service.name, began, process)

    async def _kill_broker(self, broker: Server, draw: Draw) -> None:
        began = time.time()
        broker.kill()
        await asyncio.sleep(within(DOWN_SECONDS, draw.extent))
        await broker.start()
        self._processes.was_away("broker", began)

    async def _pause_broker(self, broker: Server, draw: Draw) -> None:
        began = time.time()
        pause(broker)
        await asyncio.sleep(within(BROKER_PAUSED_SECONDS, draw.extent))
        resume(broker)
        self._processes.was_away("broker", began)

    async def _fill_disk(self, broker: Server, draw: Draw) -> None:
        disk = self._processes.disks[self._processes.brokers.index(broker)]
        await fill_disk(self._processes, broker, disk, draw.extent)
        await drain(self._processes, self._bus)
