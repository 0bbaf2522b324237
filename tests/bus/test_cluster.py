"""What differs on three nodes: compare-and-set, stale replicas, elections."""

import asyncio
import contextlib
import secrets
import time

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import Provisioning, provision, streams
from muster_bus.connection import Bus, Incoming
from muster_bus.log import RequestLog
from muster_bus.read_stream import read_subject
from muster_testing import Proxy, until, until_asked
from muster_testing.cluster import Cluster
from tests.bus.broker_tools import api, change_stream, consumer, plan, put_task, result, taken
from tests.bus.conftest import Connect, Pulling
from tests.guards import guards


def new_id() -> str:
    """All tests here share one cluster."""
    return f"r{secrets.token_hex(6)}"


async def test_of_two_writers_of_a_plan_on_three_nodes_exactly_one_wins(nodes: list[Bus]):
    for _ in range(50):
        request_id = new_id()
        one, two = RequestLog(nodes[0], request_id), RequestLog(nodes[1], request_id)
        term = await one.append(taken())
        await two.refresh()

        won = await asyncio.gather(
            one.compare_and_set(plan("one"), term=term), two.compare_and_set(plan("two"), term=term)
        )

        stored = await read_subject(nodes[2].nc, f"results.{request_id}", from_leader=True)
        assert [raw.headers["kind"] for raw in stored] == ["taken", "plan"]
        assert sorted(won) == [False, True]
        goals = [log.state.plan.goal for log in (one, two) if log.state.plan]
        assert goals == ["one" if won[0] else "two"] * 2


@guards("libs/bus/muster_bus/log.py", "if stored.is_duplicate:", rule="I2")
async def test_a_compare_and_set_whose_acknowledgement_was_lost_is_read_again(
    nodes: list[Bus], proxy_to_node: Proxy, connect: Connect
):
    """The retry finds its own first try: a duplicate or a refusal, never a second plan."""
    request_id = new_id()
    log = RequestLog(await connect(proxy_to_node.url), request_id)
    term = await log.append(taken())
    proxy_to_node.drops_replies = True
    planning = asyncio.create_task(log.compare_and_set(plan(), term=term))

    async def plans() -> int:
        stored = await read_subject(nodes[1].nc, f"results.{request_id}", from_leader=True)
        return sum(raw.headers["kind"] == "plan" for raw in stored)

    async def is_planned() -> bool:
        return await plans() == 1

    await until_asked(is_planned, "the plan is stored")
    await proxy_to_node.close()
    await proxy_to_node.open()
    async with asyncio.timeout(60):
        has_won = await planning

    assert not has_won
    assert log.state.plan is not None
    assert await plans() == 1


async def test_a_read_on_a_wake_up_has_the_newest_entry(nodes: list[Bus]):
    """The wake-up comes from the leader and overtakes what its followers have; they answer most reads."""
    leader = await stream_leader(nodes[0], "RESULTS")
    for follower in [bus for node, bus in enumerate(nodes) if node != leader]:
        request_id = new_id()
        reader, wakes = RequestLog(follower, request_id), asyncio.Queue[Incoming]()
        await follower.subscribe(f"live.results.{request_id}", wakes.put_nowait)
        await follower.flush()
        for n in range(200):
            await follower.store(result(f"t{n}", request_id=request_id), follower.origin(request_id))
            async with asyncio.timeout(60):
                wake_up = await wakes.get()
                await reader.refresh()
            assert reader.state.last_sequence == int((wake_up.headers or {})["Nats-Sequence"])


async def test_an_append_returns_when_its_entry_is_folded_on_every_node(nodes: list[Bus]):
    request_id = new_id()
    logs = [RequestLog(bus, request_id) for bus in nodes]
    await logs[0].open()

    for n in range(200):
        log = logs[n % 3]
        sequence = await log.append(result(f"t{n}", request_id=request_id))
        assert log.state.last_sequence == sequence
    await logs[0].close()


async def test_listeners_on_all_nodes_fold_to_the_same_state(nodes: list[Bus]):
    request_id = new_id()
    logs = [RequestLog(bus, request_id) for bus in nodes]
    for log, bus in zip(logs, nodes, strict=True):
        await log.open()
        await bus.flush()

    appending = (logs[n % 3].append(result(f"t{n}", request_id=request_id)) for n in range(90))
    last = max(await asyncio.gather(*appending))
    for log in logs:
        async with asyncio.timeout(60):
            while log.state.last_sequence < last:
                await log.changed(timeout=60)

    assert logs[0].state == logs[1].state == logs[2].state
    for log in logs:
        await log.close()


async def test_no_pull_ends_when_the_leader_of_its_consumer_changes(nodes: list[Bus], pulling: Pulling):
    holder = await pulling(nodes[0], ["w_b"], slots=1, ack_wait=10)
    await nodes[0].flush()

    await api(nodes[1], "CONSUMER.LEADER.STEPDOWN.TASKS.w_b")
    await put_task(nodes[1], "b", "one")
    delivery = await holder.next(within=10)
    delivery.lease.ack()

    assert delivery.data == b"one"


@guards(
    "libs/bus/muster_bus/broker/compare.py",
    "(existing.num_replicas or 1) < (",
    rule="I1",
    replace="(existing.num_replicas or 1) != (",
    seconds=60,
)
@guards("libs/bus/muster_bus/broker/compare.py", "if (existing.num_replicas or 1) <", rule="I1", seconds=60)
async def test_replicas_of_what_exists_are_raised_and_never_lowered(nodes: list[Bus]):
    bus, names = nodes[0], ["CONTROL", "KV_workers"]
    await until_asked(lambda: has_all_nodes(bus), "no node is missing")
    for name in names:
        await change_stream(bus, name, num_replicas=1)
        await until_asked(lambda name=name: has_copies(bus, name, 1), f"{name} has one copy")

    await provision(bus, Provisioning(replicas=3, lease_seconds=10, ack_wait_seconds=10), ["default"], ["a", "b"])
    for name in names:
        await until_asked(lambda name=name: has_copies(bus, name, 3), f"{name} has three copies", within=30)
    await provision(bus, Provisioning(replicas=1, lease_seconds=10, ack_wait_seconds=10), ["default"], ["a", "b"])

    for stream in streams(Provisioning(), (), ()):
        assert (await api(bus, f"STREAM.INFO.{stream.name}"))["config"]["num_replicas"] == 3, stream.name


@guards("libs/bus/muster_bus/lease.py", "10  # an election", rule="I1", replace="2  # an election", seconds=60)
@pytest.mark.sweep
async def test_no_live_lease_is_lost_when_the_leader_is_killed(
    three_nodes: Cluster, connect: Connect, pulling: Pulling
):
    """A hundred leases of ten seconds outlive an election of up to nine."""
    holding, waiting = await connect(three_nodes.url), await connect(three_nodes.url)
    holder = await pulling(holding, ["w_a"], slots=100, ack_wait=10)
    await asyncio.gather(*(put_task(holding, "a", str(n)) for n in range(100)))
    held = [await holder.next() for _ in range(100)]
    next_in_line = await pulling(waiting, ["w_a"], slots=1, ack_wait=10)
    leader = await leader_of(waiting, three_nodes, "w_a")
    began = time.monotonic()
    await until(lambda: time.monotonic() - began > 6.0, "rarer keep-alives would be due during the election")

    leader.kill()
    with contextlib.suppress(TimeoutError):
        await next_in_line.next(within=10)

    assert next_in_line.all == []
    assert {delivery.number for delivery in held} == {1}
    assert [delivery for delivery in held if not delivery.lease.is_held] == []
    for delivery in held:
        delivery.lease.ack()
    await until_asked(lambda: is_empty(waiting, "w_a"), "all are settled", within=60)
    await leader.start()


async def has_all_nodes(bus: Bus) -> bool:
    """Whether every node is there: one that was just started again counts as away for some seconds."""
    cluster = (await api(bus, "STREAM.INFO.TASKS"))["cluster"]
    replicas = cluster.get("replicas", [])
    return len(replicas) == 2 and all(each["current"] and not each.get("offline") for each in replicas)


async def has_copies(bus: Bus, name: str, count: int) -> bool:
    cluster = (await api(bus, f"STREAM.INFO.{name}"))["cluster"]
    others = [replica for replica in cluster.get("replicas", ()) if replica["current"]]
    return "leader" in cluster and "desired" not in cluster and len(others) == count - 1


async def stream_leader(bus: Bus, name: str) -> int:
    return int((await api(bus, f"STREAM.INFO.{name}"))["cluster"]["leader"].removeprefix("n"))


async def leader_of(bus: Bus, cluster: Cluster, name: str) -> Server:
    leader = (await consumer(bus, name))["cluster"]["leader"]
    return cluster.servers[int(leader.removeprefix("n"))]


async def is_empty(bus: Bus, name: str) -> bool:
    info = await consumer(bus, name)
    return info["num_ack_pending"] == info["num_pending"] == 0
