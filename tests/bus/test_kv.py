"""Keys and values with compare-and-set."""

import asyncio
import time

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Bus
from tests.guards import guards


@pytest.fixture
def bucket(bus: Bus) -> Bucket:
    return Bucket(bus, "workers")


async def test_what_is_put_is_got_with_its_revision(bucket: Bucket):
    revision = await bucket.put("x", b"one")

    found = await bucket.get("x")
    assert found is not None
    assert (found.data, found.revision) == (b"one", revision)
    assert abs(found.time - time.time()) < 5
    assert await bucket.get("y") is None


async def test_all_returns_the_newest_value_of_each_key(bucket: Bucket):
    await bucket.put("x", b"old")
    await bucket.put("x", b"new")
    await bucket.put("y", b"other")

    assert {value.key: value.data for value in await bucket.all()} == {"x": b"new", "y": b"other"}


async def test_all_returns_every_key_of_a_large_bucket(bucket: Bucket):
    """The broker gives at most 1,024 last values in one answer."""
    await asyncio.gather(*(bucket.put(f"w{number}", b"{}") for number in range(1100)))

    assert len(await bucket.all()) == 1100


@guards(
    "libs/bus/muster_bus/broker/topology.py",
    "storage=api.StorageType.FILE,  # in memory",
    rule="I1",
    replace='storage=api.StorageType.MEMORY if stream.name == "KV_workers" else api.StorageType.FILE,  # in memory',
)
async def test_a_bucket_outlives_its_broker(broker: Server, bucket: Bucket):
    await bucket.put("x", b"one")

    broker.kill()
    await broker.start()

    async with asyncio.timeout(60):
        await bucket.put("y", b"two")
        assert [value.key for value in await bucket.all()] == ["x", "y"]


async def test_a_write_over_the_revision_that_was_read_succeeds(bucket: Bucket):
    first = await bucket.compare_and_set("x", b"one", 0)
    assert first is not None

    second = await bucket.compare_and_set("x", b"two", first)

    assert second is not None
    found = await bucket.get("x")
    assert found is not None
    assert (found.data, found.revision) == (b"two", second)


@guards(
    "libs/bus/muster_bus/buckets/kv.py",
    'headers = {"Nats-Expected-Last-Subject-Sequence": str(revision)}',
    rule="I2",
    replace="headers = dict[str, str]()",
)
async def test_a_write_over_another_revision_changes_nothing_and_says_so(bucket: Bucket):
    first = await bucket.put("x", b"one")
    newest = await bucket.put("x", b"two")

    assert await bucket.compare_and_set("x", b"three", first) is None
    assert await bucket.compare_and_set("x", b"three", 0) is None
    found = await bucket.get("x")
    assert found is not None
    assert (found.data, found.revision) == (b"two", newest)


async def test_what_is_deleted_is_gone_and_can_be_put_again(bucket: Bucket):
    await bucket.put("x", b"one")

    await bucket.delete("x")

    assert await bucket.get("x") is None
    assert await bucket.all() == []
    await bucket.put("x", b"two")
    assert [value.data for value in await bucket.all()] == [b"two"]


async def test_a_value_with_a_status_of_its_own_hides_nothing(bus: Bus, bucket: Bucket):
    await bus.store_raw("$KV.workers.x", b"one", {"Status": "404"}, give_up_after=1)
    await bucket.put("y", b"two")

    assert [value.data for value in await bucket.all()] == [b"one", b"two"]
