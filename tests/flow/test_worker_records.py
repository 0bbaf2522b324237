"""What a worker stores about its attempts, and what it makes of it: notes, stopped takes, events that wait."""

import asyncio
import gc
import logging
import time
from contextvars import ContextVar
from typing import Any

import pytest

from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease, LeaseKeeper
from muster_bus.process.settings import TraceSettings
from muster_bus.tracing.tracing import Tracing
from muster_protocol.messages import Failure, HandedBack, Progress, Result, ResultStatus
from muster_protocol.sender import Origin, Sender
from muster_testing.otlp import Collector
from muster_testing.waiting import until
from muster_worker.confirming import Confirming
from muster_worker.poison import is_poison
from tests.flow.in_process import task_of
from tests.flow.worker_tools import bench
from tests.guards import guards
from tests.harness import Muster

TASK = task_of("t")
OWN, OTHER = 7, 8  # two messages of the attempt
SPAN: ContextVar[str] = ContextVar("SPAN", default="none")


def delivery_of(bus: Bus, number: int) -> Delivery:
    lease = Lease(LeaseKeeper(bus.nc, 60.0), f"nobody.hears.{number}")
    return Delivery("tasks.scripted", {}, b"", "TASKS", "w_scripted", number, OWN, time.time(), lease)


async def note(muster: Muster, delivery: int, sequence: int) -> None:
    back = HandedBack(**TASK.attempt_id._asdict(), worker="w1", delivery=delivery, task_sequence=sequence)
    await muster.bus.store(back, Origin("r1", Sender("worker", "w1")))


async def stop(muster: Muster, delivery: int, sequence: int, service: str = "worker") -> None:
    error = Failure.model_validate({"class": "cancelled", "message": "told to stop"})
    result = Result(
        **TASK.attempt_id._asdict(),
        status=ResultStatus.CANCELLED,
        error=error,
        worker="w1",
        role="scripted",
        delivery=delivery,
        task_sequence=sequence,
    )
    await muster.bus.store(result, Origin("r1", Sender(service, "w1"), 1 if service == "supervisor" else None))


@guards(
    "services/worker/muster_worker/poison.py", " | await _stopped(bus, task, delivery.sequence)", rule="I6", replace=""
)
async def test_a_take_that_was_told_to_stop_is_not_counted_towards_poison(muster: Muster):
    fourth = delivery_of(muster.bus, 4)
    assert await is_poison(muster.bus, TASK, fourth)

    await stop(muster, 1, OTHER)  # of another message
    await stop(muster, 1, OWN, service="supervisor")  # the owner ended the attempt
    assert await is_poison(muster.bus, TASK, fourth)

    await stop(muster, 1, OWN)
    assert not await is_poison(muster.bus, TASK, fourth)
    assert await is_poison(muster.bus, TASK, delivery_of(muster.bus, 5))


@guards("services/worker/muster_worker/poison.py", " and note.task_sequence in (sequence, 0)", rule="I1", replace="")
async def test_the_notes_of_another_message_are_not_subtracted(muster: Muster):
    fourth = delivery_of(muster.bus, 4)
    await note(muster, 1, OTHER)
    assert await is_poison(muster.bus, TASK, fourth)

    await note(muster, 1, OWN)  # by the same worker, at the same delivery: a note of its own
    assert not await is_poison(muster.bus, TASK, fourth)


def said(number: int, text: str = "") -> Progress:
    return Progress(request_id="r1", task_id=f"t{number}", attempt=1, text=text)


async def test_events_that_are_given_up_leave_no_error_behind(muster: Muster):
    found: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    await muster.bus.store(said(0), muster.bus.origin("r1"))
    await muster.leave_room_for("EVENTS", messages=1)
    confirming = Confirming(muster.bus)
    for number in range(1, 4):
        confirming.send(said(number), muster.bus.origin("r1"))
    await until(lambda: muster.bus.publisher.retries > 1, "the stream has refused them")

    await confirming.finish(0.05)
    del confirming
    await muster.bus.flush()
    gc.collect()
    await muster.bus.flush()

    assert found == []
    assert muster.bus.counters["events dropped"] == 3


class Seen(logging.Handler):
    """In which context each line was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, SPAN.get()))


async def test_events_are_confirmed_outside_the_context_of_the_attempt_that_sent_the_first(muster: Muster):
    logger, seen = logging.getLogger("muster.worker"), Seen()
    before = logger.level
    logger.addHandler(seen)
    logger.setLevel(logging.DEBUG)
    try:
        SPAN.set("of the first attempt")
        Confirming(muster.bus).send(said(1, "x" * 9_000_000), muster.bus.origin("r1"))  # the broker takes no such event
        await until(lambda: bool(seen.lines), "a line about what was not stored")
    finally:
        logger.removeHandler(seen)
        logger.setLevel(before)

    assert seen.lines == [("DEBUG", "none")]


@guards(
    "services/worker/muster_worker/attempt.py",
    "self._span = None  # a redelivery that comes later",
    rule="I6",
    replace="pass  # a redelivery that comes later",
)
async def test_a_redelivery_after_the_end_of_its_span_is_noted_nowhere(
    patient_muster: Muster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    muster = patient_muster
    async with Collector() as collector:
        tracing = Tracing.start("worker", "here", TraceSettings(collector.environment))
        async with bench(muster, monkeypatch, tracing) as one:
            own = await one.put_and_run()
            await muster.publish("results.another", b"{}", None)
            await muster.leave_room_for("RESULTS", messages=1)  # its result waits, and its span has ended
            await one.abort(own, keeps=own + 1)
            await one.until_traced("cleaning")
            muster.release("cleaned")
            await one.until_traced("cleaned")

            await one.given_out_again(own)
            await muster.leave_room_for("RESULTS", messages=100)
            await one.result()

    assert "ended span" not in caplog.text
