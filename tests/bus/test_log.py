"""A request's log: read whole, followed by what the broker repeats, written with compare-and-set."""

import asyncio

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_bus.log import RequestLog, read_log
from muster_bus.publish import CompareAndSetLost
from muster_bus.read_stream import read_subject
from muster_protocol.messages import Result
from muster_testing import Proxy, until
from tests.bus.broker_tools import Recorder, answer, plan, result, taken
from tests.bus.conftest import Connect
from tests.guards import guards

LARGE = "x" * 2_000_000


async def opened(bus: Bus, request_id: str = "r1") -> RequestLog:
    log = RequestLog(bus, request_id)
    await log.open()
    await bus.flush()
    return log


async def reaches(log: RequestLog, sequence: int, within: float = 10.0) -> None:
    """Wait as an owner does: by `changed` alone."""
    async with asyncio.timeout(within):
        while log.state.last_sequence < sequence:
            await log.changed(timeout=within)


@guards(
    "libs/bus/muster_bus/read_stream.py", "if pending == 0 or is_page:", rule="I2", replace="if True:", case="False"
)
@pytest.mark.parametrize("from_leader", [True, False])
async def test_a_log_of_2500_entries_is_read_whole(bus: Bus, from_leader: bool):
    storing = (bus.store(result(f"t{n}"), bus.origin("r1")) for n in range(2500))
    await asyncio.gather(*storing)

    entries = await read_log(bus, "r1", from_leader=from_leader)

    assert [entry.sequence for entry in entries] == list(range(1, 2501))


async def test_a_read_is_of_one_subject_after_a_sequence_and_a_page_is_its_beginning(bus: Bus):
    for n in range(4):
        await bus.publisher.store(f"results.r{n % 2}", str(n).encode(), {})

    after = await read_subject(bus.nc, "results.r1", 2, from_leader=True)
    page = await read_subject(bus.nc, "results.r1", is_page=True)

    assert [raw.data for raw in after] == [b"3"]
    assert [raw.data for raw in page] == [b"1", b"3"]


async def test_a_read_from_the_leader_asks_the_leader_of_the_stream(bus: Bus, other: Bus):
    leader_asked = await Recorder.on(other, "$JS.API.STREAM.MSG.GET.RESULTS")
    log = RequestLog(bus, "r1")

    await log.refresh(from_leader=False)
    await other.flush()
    asked_for_any = len(leader_asked.messages)
    await log.refresh()
    await other.flush()

    assert (asked_for_any, len(leader_asked.messages)) == (0, 1)


async def test_what_is_repeated_is_folded_in_order_without_a_read(bus: Bus, other: Bus):
    listener, owner = await opened(other), await opened(bus)
    reads = await Recorder.on(bus, "$JS.API.DIRECT.GET.RESULTS")

    term = await owner.append(taken())
    await owner.compare_and_set(plan(), term=term)
    last = await owner.append(result())
    await reaches(listener, last)
    await bus.flush()

    assert listener.state == owner.state
    assert listener.state.plan is not None
    assert reads.messages == []


async def test_entries_from_before_it_listened_are_noticed_as_a_gap(bus: Bus, other: Bus):
    owner = await opened(bus)
    term = await owner.append(taken())
    await owner.compare_and_set(plan(), term=term)
    listener = await opened(other)

    last = await owner.append(result())
    await reaches(listener, last)

    assert listener.state == owner.state
    assert listener.state.term == term


async def test_a_repetition_that_was_lost_is_noticed_at_the_next(bus: Bus, proxy: Proxy, connect: Connect):
    listener, owner = await opened(await connect(proxy.url)), await opened(bus)
    await reaches(listener, await owner.append(taken()))

    proxy.drops_replies = True
    await owner.compare_and_set(plan("lost"), term=owner.state.term)
    await bus.flush()
    proxy.drops_replies = False
    last = await owner.append(result())
    await reaches(listener, last)

    assert listener.state == owner.state
    assert listener.state.plan is not None


async def test_entries_from_while_the_connection_was_lost_are_read_when_it_is_back(
    bus: Bus, proxy: Proxy, connect: Connect
):
    listener, owner = await opened(await connect(proxy.url)), await opened(bus)
    await reaches(listener, await owner.append(taken()))

    await proxy.close()
    last = await owner.append(result())
    await proxy.open()
    await reaches(listener, last)

    assert listener.state == owner.state


async def test_an_entry_that_comes_while_the_log_is_read_is_not_missed(bus: Bus, other: Bus):
    writer = RequestLog(bus, "r1")
    await writer.append(taken())
    for n in range(8):
        await writer.append(result(f"t{n}", LARGE))
    listener = await opened(other)
    await bus.store(result("gap"), bus.origin("r1"))
    reading = asyncio.create_task(reaches(listener, 11, within=60))
    await until(lambda: listener.state.last_sequence > 0, "the log is being read")

    stored = await bus.store(result("late"), bus.origin("r1"))

    assert stored.sequence == 11
    await reading


@guards("libs/bus/muster_bus/log.py", "await self.catch_up(stored.sequence)", rule="I3")
async def test_an_append_returns_when_its_entry_is_folded(bus: Bus, other: Bus):
    owner, worker = await opened(bus), RequestLog(other, "r1")

    for n in range(50):
        assert worker.state.last_sequence < await worker.append(result(f"t{n}"))
        sequence = await owner.append(result(f"u{n}"))
        assert owner.state.last_sequence == sequence
        assert worker.state.last_sequence == sequence - 1


async def test_of_two_writers_of_a_plan_exactly_one_wins_and_the_other_reads_it(
    bus: Bus, broker: Server, connect: Connect
):
    peer = await connect(broker.url, "supervisor", "s2")
    for n in range(20):
        one, two = await opened(bus, f"r{n}"), await opened(peer, f"r{n}")
        term = await one.append(taken())
        await two.refresh()

        won = await asyncio.gather(
            one.compare_and_set(plan("one"), term=term), two.compare_and_set(plan("two"), term=term)
        )

        assert sorted(won) == [False, True]
        goals = [log.state.plan.goal for log in (one, two) if log.state.plan]
        assert goals == ["one" if won[0] else "two"] * 2
        assert len(await read_subject(bus.nc, f"results.r{n}", from_leader=True)) == 2


async def test_a_plan_that_does_not_count_does_not_block_the_next(bus: Bus):
    """A supervisor that takes a request again may plan again, whatever it wrote in its former term."""
    log = await opened(bus)
    former = await log.append(taken(delivery=1))
    current = await log.append(taken(delivery=2))

    assert await log.compare_and_set(plan("former"), term=former)
    assert log.state.plan is None
    assert await log.compare_and_set(plan("current"), term=current)

    assert log.state.plan is not None
    assert log.state.plan.goal == "current"


async def test_a_stray_entry_before_the_plan_does_not_block_the_plan(bus: Bus, other: Bus):
    await bus.publisher.store("results.r1", b"stray", {})
    log = await opened(bus)
    term = await log.append(taken())
    await RequestLog(other, "r1").append(result("t9"))
    await reaches(log, 3)

    assert await log.compare_and_set(plan(), term=term)
    assert log.state.plan is not None


@guards("libs/bus/muster_bus/log.py", "own is not None and own.is_stored_as(raw)", rule="I1", replace="own is not None")
@pytest.mark.parametrize(("sent", "arrived"), [(b"the answer", b"the\nanswer"), (b"kind: answer", b"kind: anSwer")])
async def test_an_answer_whose_bytes_changed_on_the_wire_does_not_count_for_its_writer_either(
    bus: Bus, sent: bytes, arrived: bytes, proxy: Proxy, connect: Connect
):
    await bus.flush()  # the streams are there
    log = await opened(await connect(proxy.url))
    await log.compare_and_set(taken(), term=0)
    proxy.replace(sent, arrived)

    await log.compare_and_set(answer("the answer"), term=log.state.term)
    was_answered = log.state.answer is not None
    await log.compare_and_set(answer("the answer"), term=log.state.term)

    assert not was_answered
    assert log.state.answer is not None


@guards("libs/bus/muster_bus/log.py", "await self._read_past(seen)", rule="I2")
async def test_an_answer_is_not_written_over_a_result_that_was_not_seen(bus: Bus, other: Bus):
    log = RequestLog(bus, "r1")
    term = await log.append(taken())
    await log.compare_and_set(plan(), term=term)
    seen = await RequestLog(other, "r1").append(result("t1"))

    assert not await log.compare_and_set(answer(), term=term)

    assert log.state.last_sequence == seen
    assert await log.compare_and_set(answer(), term=term)
    assert log.state.answer == answer()


async def test_refused_and_repeated_writes_are_published_on_results_but_are_in_no_log(bus: Bus, other: Bus):
    plain = await Recorder.on(other, "results.r1")
    listener, owner = await opened(other), await opened(bus)
    term = await owner.append(taken())

    with pytest.raises(CompareAndSetLost):
        await bus.store(plan("refused"), bus.origin("r1", term=term), expected=0)
    await bus.store(taken(), bus.origin("r1", term=0))
    last = await owner.append(result("t2"))
    await reaches(listener, last)

    assert [(message.headers or {})["kind"] for message in plain.messages] == ["taken", "plan", "taken", "result"]
    assert listener.state == owner.state
    assert listener.state.plan is None
    assert last == 2


async def test_a_wait_for_news_ends_when_none_comes_and_when_something_else_wakes_it(bus: Bus):
    log = await opened(bus)

    assert not await log.changed(timeout=0.05)
    log.wake()
    assert await log.changed(timeout=60)


async def test_a_log_is_read_after_the_broker_was_killed(bus: Bus, broker: Server):
    log = await opened(bus)
    await log.append(taken())

    broker.kill()
    await broker.start()
    await log.append(result(output="after"))

    entries = await read_log(bus, "r1", from_leader=True)
    assert [entry.body.kind for entry in entries] == ["taken", "result"]
    assert isinstance(entries[1].body, Result)
    assert log.state.last_sequence == 2
