"""Large bodies travel by reference and come back whole, or not at all."""

import asyncio

import pytest

from muster_bus.bodies import BUCKET, MAX_INLINE
from muster_bus.connection import Bus, Incoming
from muster_bus.log import RequestLog, read_log
from muster_bus.read_stream import read_subject
from muster_bus.receive import open_live
from muster_protocol.errors import Invalid
from muster_protocol.messages import LOG_KINDS, Result
from muster_testing import until
from tests.bus.broker_tools import api, errors, result
from tests.guards import guards

LARGE = "x" * 2_000_000


async def test_a_large_output_travels_by_reference_and_comes_back_whole(bus: Bus, other: Bus):
    await RequestLog(bus, "r1").append(result(output=LARGE))

    (raw,) = await read_subject(other.nc, "results.r1")
    (entry,) = await read_log(other, "r1")

    assert raw.data == b""
    assert isinstance(entry.body, Result)
    assert entry.body.output == LARGE


async def test_a_large_output_reaches_those_who_listen(bus: Bus, other: Bus):
    listener = RequestLog(other, "r1")
    await listener.open()

    sequence = await RequestLog(bus, "r1").append(result(output=LARGE))

    assert await listener.changed(timeout=60)
    assert listener.state.last_sequence == sequence
    await listener.close()


@guards("libs/bus/muster_bus/bodies.py", "if hashlib.sha256(body).hexdigest() == name:", rule="I10", replace="if True:")
async def test_a_body_that_was_tampered_with_is_invalid(bus: Bus):
    reference = await bus.bodies.put(LARGE.encode())
    name, _, _ = reference.partition(".")
    bucket = await bus.nc.jetstream().object_store(BUCKET)
    await bucket.put(name, b"y" * len(LARGE))

    with pytest.raises(Invalid, match=f"body-ref: the stored body does not match {name}"):
        await bus.bodies.get(reference)


async def test_a_body_that_is_missing_is_invalid(bus: Bus):
    with pytest.raises(Invalid, match="body-ref: no body is stored under"):
        await bus.bodies.get(f"{'0' * 64}.700000")


@pytest.mark.parametrize(
    "reference",
    ["", "short.1", f"{'0' * 64}.x", f"{'0' * 64}.²", f"{'0' * 64}.99999999", f"{'0' * 64}.{'9' * 5000}"],
    ids=["none", "short", "letter", "power", "large", "long"],
)
async def test_a_reference_that_is_none_is_invalid(bus: Bus, reference: str):
    with pytest.raises(Invalid, match=r"is not <sha256>\.<bytes>"):
        await bus.bodies.get(reference)


async def test_a_body_whose_bytes_are_replaced_while_it_is_fetched_comes_back_whole(bus: Bus, other: Bus):
    """Storing the same body again removes the old bytes, also while another reader fetches them."""
    reference = await bus.bodies.put(LARGE.encode())
    await api(bus, f"STREAM.PURGE.OBJ_{BUCKET}", {"filter": f"$O.{BUCKET}.C.>"})
    fetching = asyncio.create_task(other.bodies.get(reference))
    await until(lambda: other.nc.stats["out_msgs"] >= 3, "the bytes were asked for")

    await bus.bodies.put(LARGE.encode())

    async with asyncio.timeout(60):
        assert await fetching == LARGE.encode()


def test_a_body_that_is_too_large_to_travel_inside_is_invalid():
    message = Incoming("results.r1", "", b"x" * (MAX_INLINE + 1), {"sender": "worker/w1", "kind": "result"})

    with pytest.raises(Invalid, match=f"body-ref: the body has {MAX_INLINE + 1} bytes"):
        open_live(message, LOG_KINDS)


async def test_an_entry_whose_body_is_missing_is_one_error_and_its_neighbours_count(bus: Bus):
    log = RequestLog(bus, "r1")
    await log.append(result("t1"))
    headers = {"sender": "worker/w1", "kind": "result", "body-ref": f"{'0' * 64}.700000"}
    await bus.publisher.store("results.r1", b"", headers)
    await log.append(result("t2"))

    entries = await read_log(bus, "r1")

    assert [entry.sequence for entry in entries] == [1, 3]
    assert len(await errors(bus)) == 1
