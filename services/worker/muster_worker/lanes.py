"""The lanes that a worker pulls from: those that its tags have, whoever asked for them.

A team that uses lanes has all of them. Another team that has a tag in common with it, or has turned its lanes off
again, serves what is there: what the broker has accepted has somebody who takes it.
"""

from collections.abc import Callable
from functools import partial

from muster_agent.team.schema import Priorities
from muster_bus.broker.queues import Queue, lanes_provisioned, task_queue, until_there
from muster_bus.connection import Bus
from muster_bus.lanes.lane_pull import Lanes
from muster_bus.lease import Delivery
from muster_protocol.subjects import PRIORITIES, Priority
from muster_worker.executor import Executor


async def lanes_of(bus: Bus, executor: Executor, give_way: Callable[[Delivery], bool]) -> Lanes | None:
    """The lanes of the worker's tags, and who may give way there; None: there are only normal ones."""
    tags, priorities = executor.tags, executor.priorities
    there: list[tuple[str, Priority]] = [(tag, lane) for lane in PRIORITIES for tag in tags]
    if priorities is None:
        found = set(await until_there(bus, partial(lanes_provisioned, bus, tags)))
        if not found:
            return None
        there = [(tag, lane) for tag, lane in there if lane == "normal" or (tag, lane) in found]
    weights = priorities or Priorities()
    stoppable = [tag for tag in tags if executor.can_be_stopped(tag)] if weights.preempt else []
    return Lanes(
        Queue(task_queue(()).stream, tuple(name for tag, lane in there for name in task_queue([tag], lane).consumers)),
        {"high": weights.high, "normal": weights.normal, "low": weights.low},
        frozenset(task_queue(stoppable, "low").consumers),
        give_way,
    )


def consumers_of(queue: Queue, tags: list[str]) -> list[str]:
    """Those of a queue's consumers that have tasks of some tags, in all lanes."""
    wanted = {name for lane in PRIORITIES for name in task_queue(tags, lane).consumers}
    return [name for name in queue.consumers if name in wanted]
