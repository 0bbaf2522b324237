"""Parts of the services in the test's own process: what they meet can then be chosen to the letter."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine

from muster_agent.models.port import FREE, Ask, Model, Reply
from muster_agent.models.scripted import Scripted
from muster_agent.team.file import load_team
from muster_bus.broker.queues import Queue
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease, LeaseKeeper
from muster_bus.pull import Pull
from muster_protocol.messages import Failure, Request, Result, ResultStatus, Task
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.sender import Sender
from muster_supervisor.calling.callbacks import Callbacks
from muster_supervisor.choosing.breaking import Breakers
from muster_supervisor.choosing.measuring import Measuring
from muster_supervisor.choosing.model_slots import ModelSlots
from muster_supervisor.owner import Owner, Resources
from muster_supervisor.supervisor import Supervisor
from tests.harness import Muster

PLAN = Plan(tasks=(TaskSpec(id="a", description="{}", tag="scripted"),))


class Silent:
    """A model that never answers."""

    name = "silent"
    notice = ""
    is_llm = True
    provider = ""
    price = FREE

    async def ask(self, ask: Ask) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError(ask)


@contextlib.asynccontextmanager
async def connected(muster: Muster, instance: str) -> AsyncGenerator[Bus]:
    bus = await Bus.connect(muster.broker.url, Sender("supervisor", instance))
    try:
        yield bus
    finally:
        await bus.close()


@contextlib.asynccontextmanager
async def supervising(muster: Muster, model: Model) -> AsyncGenerator[Supervisor]:
    async with connected(muster, "here") as bus:
        supervisor = Supervisor(bus, load_team(muster.folder / "team.yaml"), model)
        await supervisor.start()
        try:
            yield supervisor
        finally:
            await supervisor.stop(grace_seconds=2.0)


def delivery_of(bus: Bus, number: int, ack_wait: float, waited_seconds: float = 0.0) -> Delivery:
    """A delivery of request 1 that nobody keeps alive."""
    lease, at = Lease(LeaseKeeper(bus.nc, ack_wait), f"nobody.hears.{number}"), time.time() - waited_seconds
    return Delivery("requests.default", {}, b"", "REQUESTS", "s_default", number, 1, at, lease)


def owner_of(
    muster: Muster,
    bus: Bus,
    number: int,
    ack_wait: float = 60.0,
    *,
    waited_seconds: float = 0.0,
    model: Model | None = None,
) -> Owner:
    """Who holds a delivery of the request `r1`, which has a minute."""
    team = load_team(muster.folder / "team.yaml")
    measuring, breakers = Measuring(bus, team), Breakers(bus, team)
    slots = ModelSlots(1)
    resources = Resources(
        bus, team, model or Scripted([]), slots, ack_wait, measuring, 86400.0, breakers, Callbacks(bus, team)
    )
    return Owner(
        resources,
        "r1",
        Request(plan=PLAN, deadline_seconds=60),
        "hash",
        delivery_of(bus, number, ack_wait, waited_seconds),
    )


def task_of(task_id: str, *, description: str = "{}", deadline: float | None = None) -> Task:
    now = time.time()
    return Task(
        request_id="r1",
        task_id=task_id,
        attempt=1,
        tag="scripted",
        team="default",
        description=description,
        timeout_seconds=60,
        deadline=now + 60 if deadline is None else deadline,
        reserved_at=now,
        reserved_sequence=0,
    )


def hang_while(others_act: Callable[[], Coroutine[object, object, None]]) -> None:
    """Nothing turns in this process while somebody else acts."""
    thread = threading.Thread(target=lambda: asyncio.run(others_act()))
    thread.start()
    thread.join()


async def put_task(muster: Muster, task: Task) -> None:
    await muster.bus.store(task, muster.bus.origin(task.request_id))


async def put_result(
    bus: Bus, request_id: str, task_id: str, status: ResultStatus, error: Failure | None = None
) -> None:
    result = Result(
        request_id=request_id,
        task_id=task_id,
        attempt=1,
        status=status,
        output=None if error else "found",
        error=error,
        worker="w1",
        role="scripted",
    )
    await bus.store(result, bus.origin(request_id))


async def next_deliveries(muster: Muster, queue: Queue, count: int, within: float) -> list[Delivery]:
    """What the next holder gets, and gets soon."""
    got: asyncio.Queue[Delivery] = asyncio.Queue()
    pull = Pull(muster.bus, queue, count, 60.0, got.put)
    await pull.start()
    try:
        async with asyncio.timeout(within):
            return [await got.get() for _ in range(count)]
    finally:
        await pull.close()
        pull.stop()
