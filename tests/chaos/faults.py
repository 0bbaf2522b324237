"""Random faults from a seeded source: kill -9, SIGTERM, pauses of services and of brokers."""

import asyncio
import random
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from muster_bus.embedded import Server
from tests.chaos.stage import DemoEnvironment, Player

PAUSE_SECONDS = (0.5, 3.0)  # between two faults
DOWN_SECONDS = (0.0, 1.5)  # before what was killed is started again
PAUSED_LEASES = (0.2, 3.0)
BROKER_PAUSED_SECONDS = (0.1, 2.0)
REJOIN_SECONDS = 5.0  # a node that is back must follow again before the next one may go
WEIGHTS = {"kill -9": 5, "SIGTERM": 3, "pause": 5, "broker kill -9": 1.5, "broker pause": 1}

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

    def __init__(self, stage: DemoEnvironment, chance: random.Random, lease_seconds: float) -> None:
        self._stage = stage
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
                    self._stage.ledger.faults.append(draw.what)
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
            case "SIGTERM":
                return self._at_a_player(self._stop, draw)
            case "pause":
                return self._at_a_player(self._pause, draw)
            case _:
                return self._at_a_player(self._kill, draw)

    def _at_a_player(self, do: Callable[[Player, Draw], Doing], draw: Draw) -> Doing | None:
        idle = [player for player in self._stage.players if not player.is_busy and player.is_running]
        if not idle:
            return None
        player = idle[int(draw.target * len(idle))]
        player.is_busy = True

        async def done() -> None:
            try:
                await do(player, draw)
            finally:
                player.is_busy = False

        return done()

    def _at_a_broker(self, do: Callable[[Server, Draw], Doing], draw: Draw) -> Doing | None:
        if self._is_broker_busy:
            return None
        self._is_broker_busy = True
        brokers = self._stage.brokers

        async def done() -> None:
            try:
                await do(brokers[int(draw.target * len(brokers))], draw)
                if len(brokers) > 1:
                    await asyncio.sleep(REJOIN_SECONDS)
            finally:
                self._is_broker_busy = False

        return done()

    async def _kill(self, player: Player, draw: Draw) -> None:
        began = time.time()
        player.kill()
        await asyncio.sleep(_within(DOWN_SECONDS, draw.extent))
        await player.start(is_renamed=draw.is_renamed)
        self._stage.was_away(player.name, began)

    async def _stop(self, player: Player, draw: Draw) -> None:
        began = time.time()
        await player.stop()
        await asyncio.sleep(_within(DOWN_SECONDS, draw.extent))
        await player.start(is_renamed=draw.is_renamed)
        self._stage.was_away(player.name, began)

    async def _pause(self, player: Player, draw: Draw) -> None:
        began, process = time.time(), player.pid
        player.signal(signal.SIGSTOP)
        await asyncio.sleep(_within(PAUSED_LEASES, draw.extent) * self._lease_seconds)
        player.signal(signal.SIGCONT)
        self._stage.was_away(player.name, began, process)

    async def _kill_broker(self, broker: Server, draw: Draw) -> None:
        began = time.time()
        broker.kill()
        await asyncio.sleep(_within(DOWN_SECONDS, draw.extent))
        await broker.start()
        self._stage.was_away("broker", began)

    async def _pause_broker(self, broker: Server, draw: Draw) -> None:
        began = time.time()
        broker.signal(signal.SIGSTOP)
        await asyncio.sleep(_within(BROKER_PAUSED_SECONDS, draw.extent))
        broker.signal(signal.SIGCONT)
        self._stage.was_away("broker", began)


def _within(bounds: tuple[float, float], part: float) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) * part
