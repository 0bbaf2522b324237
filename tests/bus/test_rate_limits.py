"""The gates of several processes that share a bucket: what they start together, and what they learn from each other."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from muster_agent.budget import Meter
from muster_agent.errors import LimitReached, RateLimited, TooLate
from muster_agent.limiting.gate import Gate
from muster_agent.limiting.headers import note_headers
from muster_agent.limiting.limited import Limited
from muster_agent.limiting.waiter import Caller, Permit, Waiting
from muster_agent.models.port import Ask, Reply, WorkBrief
from muster_agent.models.scripted import Scripted
from muster_bus.broker.embedded import Server
from muster_bus.buckets.limits import LimitStore, shown_limits
from muster_bus.connection import Bus
from muster_protocol.messages import Usage
from muster_protocol.workers.rate_limits import Limits
from muster_testing.waiting import until, until_asked

WINDOW = 1.0
CALLER = Caller()
ASK = Ask(WorkBrief("hello"))


@asynccontextmanager
async def gates(limits: Limits | None, *buses: Bus) -> AsyncGenerator[list[Gate]]:
    made = [Gate(LimitStore(bus, "default", "anthropic"), "anthropic", limits) for bus in buses]
    try:
        yield made
    finally:
        await asyncio.gather(*(gate.close() for gate in made))


async def started(gate: Gate, caller: Caller = CALLER, tokens: int = 0) -> Permit:
    async with asyncio.timeout(20):
        return await gate.enter(tokens, caller)


def most_in_a_window(times: list[float], window: float) -> int:
    return max(sum(begin <= at < begin + window for at in times) for begin in times)


@pytest.mark.parametrize("requests", [5, 120])
async def test_two_processes_start_no_more_than_the_limit_in_any_window(bus: Bus, other: Bus, requests: int) -> None:
    times: list[float] = []

    async def call(gate: Gate) -> None:
        permit = await started(gate)
        times.append(gate.now)
        gate.leave(permit, 0, {})

    async with gates(Limits(requests, window=WINDOW), bus, other) as two:
        await asyncio.gather(*(call(gate) for gate in two for _ in range(requests)))

    assert len(times) == 2 * requests
    assert most_in_a_window(times, WINDOW) <= requests


async def test_wide_limits_cost_few_writes(bus: Bus) -> None:
    async with gates(Limits(60_000), bus) as (gate,):
        for _ in range(200):
            gate.leave(await started(gate), 0, {})
        writes = await bus.read("$KV.limits.default.anthropic")

    stored = (await bus.nc.jetstream().stream_info("KV_limits")).state
    assert len(writes) == 1
    assert stored.last_seq < 100


async def test_as_many_are_under_way_as_may_be_and_the_next_starts_when_one_ends(bus: Bus, other: Bus) -> None:
    async with gates(Limits(concurrent=2), bus, other) as (first, second):
        held = [await started(first), await started(second)]
        told: list[Waiting | None] = []
        waiting = asyncio.create_task(started(second, Caller(tell=told.append)))
        await until(lambda: bool(told), "it waits")
        assert told[0] == Waiting("anthropic's limit of 2 calls at once", None)
        assert not waiting.done()

        first.leave(held[0], 0, {})
        second.leave(await waiting, 0, {})
        second.leave(held[1], 0, {})


async def test_a_process_that_is_closed_gives_back_what_it_holds(bus: Bus, other: Bus) -> None:
    async with gates(Limits(concurrent=1), bus, other) as (first, second):
        await started(first)
        await first.close()
        second.leave(await started(second), 0, {})


@pytest.mark.parametrize("limits", [None, Limits(1_000)])
async def test_one_refusal_holds_all_processes(bus: Bus, other: Bus, limits: Limits | None) -> None:
    async with gates(limits, bus, other) as (first, second):
        for gate in (first, second):
            gate.leave(await started(gate), 0, {})
        until_time = first.refuse(0.7)
        await until_asked(lambda: is_held(bus), "all are told")
        (shown,) = await shown_limits(bus, bus.clock.now())
        told: list[Waiting | None] = []
        second.leave(await started(second, Caller(tell=told.append)), 0, {})

        assert second.now >= until_time
        assert shown["provider"] == "default.anthropic"
        assert told[0] is not None
        assert told[0].what == "anthropic, which says that it is asked too often"


async def test_without_limits_and_refusals_nothing_is_written(bus: Bus) -> None:
    async with gates(None, bus) as (gate,):
        for _ in range(20):
            gate.leave(await started(gate), 100, {"requests": 0})

    assert (await bus.nc.jetstream().stream_info("KV_limits")).state.last_seq == 0


async def test_a_wait_beyond_the_callers_time_fails_at_once(bus: Bus) -> None:
    async with gates(Limits(1), bus) as (gate,):
        gate.leave(await started(gate), 0, {})
        now = gate.now
        with pytest.raises(TooLate, match=r"limit of 1 request a minute, for about 6\d s, and 10 s are left"):
            await started(gate, Caller(deadline=now + 10))
        with pytest.raises(LimitReached, match="half of what is left of the attempt's time") as reached:
            await started(gate, Caller(ends_at=now + 10, deadline=now + 3600))

        assert reached.value.until > now + 50
        assert gate.now < now + 5


async def test_an_attempt_keeps_half_of_its_time_for_the_call_itself(bus: Bus) -> None:
    async with gates(Limits(1, window=4.0), bus) as (gate,):
        model = Scripted(lambda _: Reply("hi"))
        model.provider = "anthropic"
        await Limited(model, gate, CALLER).ask(ASK)
        with pytest.raises(LimitReached):
            await Limited(model, gate, Caller(ends_at=gate.now + 6)).ask(ASK)
        await Limited(model, gate, Caller(ends_at=gate.now + 30)).ask(ASK)


async def test_an_installation_without_the_bucket_asks_without_limits(bus: Bus) -> None:
    await bus.nc.jetstream().delete_stream("KV_limits")
    async with gates(None, bus) as (gate,):
        began = gate.now
        gate.leave(await started(gate), 0, {})

        assert gate.now - began < 3


async def test_an_installation_without_the_bucket_makes_no_call_that_is_limited(bus: Bus) -> None:
    await bus.nc.jetstream().delete_stream("KV_limits")
    async with gates(Limits(5), bus) as (gate,):
        with pytest.raises(TooLate, match="wait for the broker, which keeps the limits"):
            await started(gate, Caller(deadline=gate.now + 2))


async def test_a_wait_that_is_cancelled_takes_nobodys_place(bus: Bus) -> None:
    async with gates(Limits(concurrent=1), bus) as (gate,):
        held = await started(gate)
        waiting = asyncio.create_task(started(gate))
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        gate.leave(held, 0, {})
        gate.leave(await started(gate), 0, {})


async def test_what_a_reply_says_is_counted_and_tokens_are_corrected(bus: Bus) -> None:
    limits = Limits(requests=10, tokens=50_000)
    usage = Usage(input_tokens=100, output_tokens=50)

    class Headed(Scripted):
        async def ask(self, ask: Ask) -> Reply:
            note_headers({"anthropic-ratelimit-requests-remaining": "4", "x-ratelimit-remaining-tokens": "90000"})
            return await super().ask(ask)

    async with gates(limits, bus) as (gate,):
        model = Headed(lambda _: Reply("hi", usage=usage))
        model.provider = "anthropic"
        await Limited(model, gate, CALLER).ask(ASK)
        await until_asked(lambda: are_counted(bus, 6, usage.tokens), "what was learnt is counted")


async def is_held(bus: Bus) -> bool:
    return bool(await shown_limits(bus, bus.clock.now()))


async def are_counted(bus: Bus, starts: int, tokens: int) -> bool:
    cells = (await LimitStore(bus, "default", "anthropic").read()).cells
    return (sum(cell.starts for cell in cells), sum(cell.tokens for cell in cells)) == (starts, tokens)


async def test_a_refused_call_is_made_again_and_nobody_is_asked_meanwhile(bus: Bus) -> None:
    asking: list[str] = []
    meter = Meter()
    replies = iter([RateLimited("429", 0.5), RateLimited("429", None), Reply("hi")])

    def reply(_: Ask) -> Reply | Exception:
        asking.append(meter.asking)
        return next(replies)

    async with gates(None, bus) as (gate,):
        model = Scripted(reply)
        model.provider = "anthropic"
        heard: list[str] = []
        caller = Caller(meter=meter, tell=lambda _: heard.append(meter.asking))
        began = gate.now

        assert (await Limited(model, gate, caller).ask(ASK)).text == "hi"
        assert gate.now - began >= 1.5
        assert asking == ["anthropic"] * 3
        assert set(heard) == {""}


async def test_calls_wait_while_the_broker_is_away_and_go_on_after_its_restart(bus: Bus, broker: Server) -> None:
    async with gates(Limits(5), bus) as (gate,):
        gate.leave(await started(gate), 0, {})
        broker.kill()
        await until(lambda: not bus.connected.is_set(), "the broker is away")
        waiting = asyncio.create_task(started(gate, replace(CALLER, deadline=gate.now + 60)))
        await broker.start()

        gate.leave(await waiting, 0, {})
    stored = await LimitStore(bus, "default", "anthropic").read()
    assert sum(cell.starts for cell in stored.cells) == 2
