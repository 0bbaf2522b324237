"""A worker's sign of life: a card that others read, and a word where it cannot be written."""

import itertools

import pytest

from muster_bus.broker.topology import Provisioning, provision
from muster_bus.buckets.workers import live_workers, read_signs
from muster_protocol.workers.card import WorkerCard
from muster_worker import registry
from muster_worker.registry import Registry
from tests.flow.coordinator_harness import eventually
from tests.harness import Muster


async def test_the_card_of_a_worker_is_there_until_it_leaves(muster: Muster) -> None:
    here = Registry(muster.bus, ["scripted", "other"], slots=4, busy=lambda: 3)

    await here.start()
    (card,) = await live_workers(muster.bus)
    assert card == WorkerCard(name="observer", tags=("scripted", "other"), slots=4, busy=3, renewed_at=card.renewed_at)
    assert (await read_signs(muster.bus)).silence(card) < 5

    await here.stop()
    assert await live_workers(muster.bus) == []
    assert card.renewed_at < (await read_signs(muster.bus)).left["observer"]


async def test_a_worker_that_cannot_register_says_so_once_until_it_can(
    muster: Muster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "BEAT_SECONDS", 0.1)
    beats = itertools.count()
    last = 0

    def busy() -> int:
        nonlocal last
        last = next(beats)
        return last

    def warnings() -> int:
        return sum("not registered" in record.getMessage() for record in caplog.records)

    async def is_seen() -> bool:
        return bool(await live_workers(muster.bus))

    js = muster.bus.nc.jetstream(timeout=5)
    await js.delete_key_value("workers")
    here = Registry(muster.bus, ["scripted"], 4, busy)
    await here.start()
    await muster.until(lambda: last >= 3, "three tries were in vain")
    assert warnings() == 1

    await provision(muster.bus, Provisioning(lease_seconds=1, ack_wait_seconds=1), ["default"], ["scripted"])
    await eventually(is_seen)
    seen = last
    await muster.until(lambda: last > seen, "it knows that it is seen")
    await js.delete_key_value("workers")
    await muster.until(lambda: warnings() == 2, "it says so again")
    await here.stop()
