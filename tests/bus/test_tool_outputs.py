"""What cached tools returned is shared by the workers of a request, and forgotten rather than wrong."""

from muster_bus.broker.embedded import Server
from muster_bus.buckets.tool_outputs import MAX_BYTES, ToolOutputs
from muster_bus.connection import Bus
from muster_protocol.sender import Sender
from tests.guards import guards

KEY = "k" * 64


async def test_an_output_is_found_by_another_worker_of_the_same_request(bus: Bus, broker: Server):
    other = await Bus.connect(broker.url, Sender("worker", "other"))
    try:
        await ToolOutputs(bus, "r1").put(KEY, "apples é \udc80")

        assert await ToolOutputs(other, "r1").get(KEY) == "apples é \udc80"
        assert await ToolOutputs(other, "r2").get(KEY) is None
        assert await ToolOutputs(other, "r1").get("j" * 64) is None
    finally:
        await other.close()


@guards(
    "libs/bus/muster_bus/buckets/tool_outputs.py",
    "is_whole = body[:_DIGEST] == hashlib.sha256(key.encode() + text).digest()",
    rule="I10",
    replace="is_whole = True",
)
async def test_what_somebody_else_wrote_there_is_passed_over(bus: Bus):
    outputs = ToolOutputs(bus, "r1")
    await outputs.put("j" * 64, "another call")
    (stored,) = await bus.read("$KV.tool_outputs.>")

    for body in (b"", b"garbage", b"\xff" * 40, stored.data):
        await bus.store_raw(f"$KV.tool_outputs.r1.{KEY}", body, {}, 5)
        assert await outputs.get(KEY) is None


async def test_a_long_output_is_not_kept(bus: Bus):
    outputs = ToolOutputs(bus, "r1")
    await outputs.put(KEY, "x" * (MAX_BYTES + 1))

    assert await outputs.get(KEY) is None


async def test_without_its_bucket_nothing_is_kept_and_nothing_fails(bus: Bus):
    await bus.nc.jetstream().delete_stream("KV_tool_outputs")
    outputs = ToolOutputs(bus, "r1")

    await outputs.put(KEY, "apples")

    assert await outputs.get(KEY) is None


async def test_a_broker_that_is_away_costs_a_moment(bus: Bus, broker: Server):
    outputs = ToolOutputs(bus, "r1")
    broker.kill()

    await outputs.put(KEY, "apples")

    assert await outputs.get(KEY) is None
    await broker.start()
