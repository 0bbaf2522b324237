"""The supervisor of one team: starts, pulls requests, stops. What becomes of a request is decided in `intake.py`."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from muster_agent.limiting.gates import Gates
from muster_agent.models.port import Model
from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.broker.queues import ack_wait_of, learn_time, longest_deadline, request_queue, until_there
from muster_bus.buckets.conflicts import follow_conflicts
from muster_bus.connection import Bus
from muster_bus.pull import Pull
from muster_protocol import subjects
from muster_protocol.fold import RequestState
from muster_supervisor.calling.callbacks import NO_SECRET, Callbacks
from muster_supervisor.calling.deliver import Deliveries
from muster_supervisor.choosing.breaking import Breakers
from muster_supervisor.choosing.measuring import Measuring
from muster_supervisor.choosing.model_slots import ModelSlots
from muster_supervisor.choosing.providers import Providers, nobody
from muster_supervisor.choosing.window import Windows
from muster_supervisor.intake import Intake
from muster_supervisor.leftovers import Leftovers
from muster_supervisor.owner import Resources
from muster_supervisor.silent_workers import WorkerWatch
from muster_supervisor.taking.notes import note_returned
from muster_supervisor.unserved_attempts import give_up_unserved

log = logging.getLogger("muster.supervisor")

STARTING = 64  # requests that are being taken at once; one that waits for its tasks holds no slot
MODEL_SLOTS = 16  # plans, refinements and answers that wait for the model at once


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """What a supervisor knows beside its team file."""

    callback_secret: str = field(default="", repr=False)  # empty: nobody is called back
    provider_of: Callable[[str], str] = nobody  # whose service a model of this name asks


NOTHING_KNOWN = FromEnvironment()


class Supervisor:
    """Supervises the requests of one team."""

    def __init__(self, bus: Bus, team: Team, model: Model, known: FromEnvironment = NOTHING_KNOWN) -> None:
        self.bus = bus
        self._team = team
        self._model = model
        self._pull: Pull | None = None
        self._intake: Intake | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._watch: WorkerWatch | None = None
        self._measuring: Measuring | None = None
        self._breakers = Breakers(bus, team, Providers(team, known.provider_of))
        self._gates = Gates(bus, team)
        self._gates.warn_of_unknown(known.provider_of)
        self._callbacks = Callbacks(bus, team, known.callback_secret)
        self._deliveries = Deliveries(self._callbacks) if team.callbacks and known.callback_secret else None

    @property
    def last_turn_at(self) -> float:
        return self._pull.last_turn_at if self._pull is not None else time.monotonic()

    async def start(self) -> None:
        """Pull the team's requests, and listen to what people say about them."""
        await self.bus.open()
        await learn_time(self.bus)
        team, queue = self._team.team, request_queue(self._team.team)
        lease_seconds = await ack_wait_of(self.bus, queue)
        measuring = self._measuring = Measuring(self.bus, self._team)
        longest = await until_there(self.bus, partial(longest_deadline, self.bus))
        slots = ModelSlots(MODEL_SLOTS, self._team.priorities)
        resources = Resources(
            bus=self.bus,
            team=self._team,
            model=self._model,
            model_slots=slots,
            lease_seconds=lease_seconds,
            measuring=measuring,
            longest_deadline=longest,
            breakers=self._breakers,
            callbacks=self._callbacks,
            windows=Windows(measuring.seconds_of),
            gates=self._gates,
        )
        intake = self._intake = Intake(resources)
        await self.bus.watch(subjects.ALL_CONTROL, intake.on_control)
        await follow_conflicts(self.bus, intake.on_conflict)
        self.bus.on_reconnect(intake.on_reconnect)
        returned = partial(note_returned, self.bus, team)
        self._pull = Pull(self.bus, queue, STARTING, lease_seconds, intake.take, returned)
        await self._pull.start()
        self._sweeping = supervised(Leftovers(self.bus, lease_seconds).sweep(), "settling tasks that nobody waits for")
        on_unserved = partial(give_up_unserved, intake)
        self._watch = WorkerWatch(self.bus, self._team, partial(_states, intake), on_unserved, resources.windows)
        self._watch.start()
        measuring.start(lambda: bool(intake.runs))
        self._breakers.start(lambda: bool(intake.runs), partial(_wake, intake))
        if self._deliveries is not None:
            await self._deliveries.start()
        elif self._team.callbacks is not None:
            log.warning("no callbacks: a request with callback_url is refused: %s", NO_SECRET)
        log.info("ready: team %s, model %s", team, self._model.name)

    async def stop(self, grace_seconds: float) -> None:
        """Hand every request back at its next step; cancel steps that take longer than half the grace time."""
        if self._pull is None or self._intake is None:
            return
        if self._watch is not None:
            self._watch.stop()
        runs = self._intake.runs
        delivering = supervised(self._stop_calling(grace_seconds / 2), "the callbacks")
        if self._sweeping is not None:
            self._sweeping.cancel()
        starting = await self._pull.close()
        self._intake.stop()
        working = {*starting, *self._intake.supervising}
        if working:
            _, late = await asyncio.wait(working, timeout=grace_seconds / 2)
            held_up = list(runs.values())
            for task in late:
                task.cancel()
            await asyncio.gather(*(run.give_up(grace_seconds / 4) for run in held_up))
            if late:
                await asyncio.wait(late, timeout=grace_seconds / 4)  # those without a run are handed back by the intake
        if self._measuring is not None:
            await self._measuring.stop()
        self._breakers.stop()
        await self._gates.close()
        await asyncio.wait([delivering])
        await self.bus.flush()
        self._pull.stop()

    async def _stop_calling(self, grace_seconds: float) -> None:
        if self._deliveries is not None:
            await self._deliveries.stop(grace_seconds)


def _states(intake: Intake) -> list[RequestState]:
    return [run.owner.state for run in intake.runs.values()]


def _wake(intake: Intake) -> None:
    """Let every request look again at what is due: a role may be given attempts."""
    for run in intake.runs.values():
        run.owner.log.wake()
