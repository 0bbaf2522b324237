"""Provisioning makes what is missing, adds what is new, changes or refuses what differs; services only bind."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import KeyValueConfig, ObjectStoreConfig

from muster_bus.broker.embedded import Server
from muster_bus.broker.queues import (
    ack_wait_of,
    last_sequence,
    longest_deadline,
    request_queue,
    task_queue,
    teams_provisioned,
    until_there,
)
from muster_bus.broker.topology import Provisioning, provision, remove
from muster_bus.connection import Bus
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Misconfigured
from muster_testing import pause, resume, until
from tests.bus.broker_tools import api, change_stream, consumer, put_task
from tests.bus.conftest import Connect
from tests.guards import guards

SETTINGS = Provisioning(lease_seconds=1, ack_wait_seconds=1)


@pytest.fixture
async def bare(broker: Server, connect: Connect) -> Bus:
    """A connection to a node that holds nothing."""
    return await connect(broker.url)


async def everything(bus: Bus) -> list[dict[str, Any]]:
    """The configuration of every stream and every consumer."""
    found: list[dict[str, Any]] = []
    for stream in (await api(bus, "STREAM.LIST"))["streams"]:
        found.append(stream["config"])
        listed = (await api(bus, f"CONSUMER.LIST.{stream['config']['name']}"))["consumers"]
        found.extend(one["config"] for one in listed)
    return found


@guards("libs/bus/muster_bus/broker/topology.py", "max_deliver=-1,", rule="I1", replace="max_deliver=5,")
async def test_provisioning_twice_changes_nothing(bare: Bus):
    await provision(bare, SETTINGS, ["default"], ["a", "b"])
    before = await everything(bare)

    await provision(bare, SETTINGS, ["default"], ["a", "b"])

    assert await everything(bare) == before


async def test_a_new_team_and_a_new_tag_leave_the_others_as_they_are(bare: Bus):
    await provision(bare, SETTINGS, ["one"], ["a"])
    await put_task(bare, "a", "kept")

    await provision(bare, SETTINGS, ["two"], ["b"])

    assert await teams_provisioned(bare) == ["one", "two"]
    assert (await api(bare, "STREAM.INFO.TASKS"))["config"]["subjects"] == ["tasks.a", "tasks.b"]
    assert (await consumer(bare, "w_a"))["num_pending"] == 1
    assert (await consumer(bare, "w_b"))["num_pending"] == 0
    assert await ack_wait_of(bare, request_queue("one")) == await ack_wait_of(bare, request_queue("two")) == 1


@guards(
    "libs/bus/muster_bus/broker/topology.py",
    "subjects=lanes, retention=queue)",
    rule="I1",
    replace="subjects=lanes, retention=queue, max_age=3600.0)",
)
@pytest.mark.parametrize("stream", ["REQUESTS", "TASKS"])
async def test_queues_have_no_age_and_their_consumers_count_no_deliveries(bus: Bus, stream: str):
    config = (await api(bus, f"STREAM.INFO.{stream}"))["config"]
    consumers = (await api(bus, f"CONSUMER.LIST.{stream}"))["consumers"]

    assert config["max_age"] == 0
    assert config["retention"] == "workqueue"
    assert {one["config"]["max_deliver"] for one in consumers} == {-1}


@guards(
    "libs/bus/muster_bus/broker/topology.py",
    "else api.DiscardPolicy.NEW,",
    rule="I1",
    replace="else api.DiscardPolicy.OLD,",
)
async def test_every_stream_is_bounded_and_refuses_what_is_new_when_it_is_full(bus: Bus):
    for stream in (await api(bus, "STREAM.LIST"))["streams"]:
        config = stream["config"]
        discard = "old" if config["name"] in ("KV_conflicts", "KV_tool_outputs") else "new"  # there the oldest go
        assert (config["max_bytes"] > 0, config["discard"]) == (True, discard), config["name"]


async def test_the_log_has_an_age_and_no_limit_per_subject(bus: Bus):
    config = (await api(bus, "STREAM.INFO.RESULTS"))["config"]

    assert config["max_msgs_per_subject"] == -1
    assert config["max_age"] == SETTINGS.results_age.total_seconds() * 1e9
    assert await longest_deadline(bus) == SETTINGS.results_age.total_seconds() / 2


@guards("libs/bus/muster_bus/broker/compare.py", "if _bound(before) > _bound(after):", rule="I1", replace="if False:")
@pytest.mark.parametrize(
    ("stream", "field", "value", "text"),
    [
        ("RESULTS", "max_age", 0, r"stream RESULTS exists with max_age = 0\.0, but Muster needs 345600"),
        ("KV_workers", "max_age", 0, r"bucket workers exists with max_age = 0\.0, but Muster needs 15"),
        ("KV_workers", "max_msgs_per_subject", 5, "workers exists with max_msgs_per_subject = 5, but .* needs 1"),
    ],
)
async def test_a_limit_that_would_delete_what_is_stored_is_refused_by_name_field_and_both_values(
    bus: Bus, stream: str, field: str, value: Any, text: str
):
    """Without its age the registry never forgets a dead worker."""
    await change_stream(bus, stream, **{field: value, "duplicate_window": 1_000_000_000})
    before = await everything(bus)

    with pytest.raises(Misconfigured, match=f"{text}.*; it holds data, so change or remove it by hand"):
        await provision(bus, SETTINGS, ["new"], ["new"])

    assert await everything(bus) == before


@guards("libs/bus/muster_bus/broker/compare.py", '"allow_direct", "republish")', rule="I1", replace='"republish")')
@guards("libs/bus/muster_bus/broker/compare.py", '("max_age", ', rule="I1", replace='("max_msgs_per_subject", ')
@pytest.mark.parametrize(
    ("stream", "field", "value"),
    [
        ("TASKS", "max_age", 60_000_000_000),
        ("REQUESTS", "max_age", 60_000_000_000),
        ("RESULTS", "max_age", 60_000_000_000),
        ("RESULTS", "max_msgs_per_subject", 5),
        ("RESULTS", "allow_direct", False),
        ("RESULTS", "republish", None),
        ("RESULTS", "republish", {"src": "results.*", "dest": "elsewhere.{{wildcard(1)}}"}),
        ("TASKS", "discard", "old"),
        ("KV_workers", "allow_direct", False),
        ("OBJ_bodies", "max_age", 60_000_000_000),
    ],
)
async def test_a_setting_that_differs_is_changed_where_nothing_is_lost(bus: Bus, stream: str, field: str, value: Any):
    """With an age queues lose what is leased, with a limit the log loses plans, with a short age answers go."""
    wanted = (await api(bus, f"STREAM.INFO.{stream}"))["config"]
    await change_stream(bus, stream, **{field: value, "duplicate_window": 1_000_000_000})

    await provision(bus, SETTINGS, ["default"], ["a"])

    changed = (await api(bus, f"STREAM.INFO.{stream}"))["config"]
    assert changed == {**wanted, "duplicate_window": 1_000_000_000}


async def test_what_the_broker_refuses_to_change_is_named_with_stream_field_and_both_values(bus: Bus):
    text = r"refuses to change stream REQUESTS: num_replicas from 1 to 3: replicas > 1 not supported"
    with pytest.raises(Misconfigured, match=text):
        await provision(bus, replace(SETTINGS, replicas=3), ["default"], ["a"])


async def test_a_registry_in_memory_is_refused(bare: Bus):
    kept_in_memory = {"storage": "memory", "discard": "new", "allow_direct": True, "max_msgs_per_subject": 1}
    age = {"max_age": 15_000_000_000, "duplicate_window": 15_000_000_000}
    registry = {"name": "KV_workers", "subjects": ["$KV.workers.>"], **kept_in_memory, **age}
    await api(bare, "STREAM.CREATE.KV_workers", registry)

    with pytest.raises(Misconfigured, match="bucket workers exists with storage = memory, but Muster needs file"):
        await provision(bare, SETTINGS, ["default"], ["a"])


async def test_buckets_that_nats_py_made_with_our_ages_are_taken_as_they_are(bare: Bus):
    js = bare.nc.jetstream()
    await js.create_key_value(KeyValueConfig(bucket="workers", ttl=15.0, direct=True))
    await js.create_object_store("bodies", ObjectStoreConfig(ttl=2 * SETTINGS.results_age.total_seconds()))

    await provision(bare, SETTINGS, ["default"], ["a"])

    assert (await api(bare, "STREAM.INFO.KV_workers"))["config"]["allow_msg_ttl"]


async def test_a_stream_of_another_retention_is_refused(bare: Bus):
    await api(bare, "STREAM.CREATE.TASKS", {"name": "TASKS", "subjects": ["tasks.a"], "discard": "new"})

    with pytest.raises(Misconfigured, match="stream TASKS exists with retention = limits, but Muster needs workqueue"):
        await provision(bare, SETTINGS, ["default"], ["a"])


@guards("libs/bus/muster_bus/broker/topology.py", '"max_deliver", existing.max_deliver, -1)', rule="I1")
async def test_a_consumer_that_differs_is_refused(bus: Bus):
    config = (await consumer(bus, "w_a"))["config"]
    changed = {"stream_name": "TASKS", "config": {**config, "max_deliver": 5}, "action": "update"}
    await api(bus, "CONSUMER.CREATE.TASKS.w_a.tasks.a", changed)

    with pytest.raises(Misconfigured, match="consumer w_a exists with max_deliver = 5, but Muster needs -1"):
        await provision(bus, SETTINGS, ["default"], ["a"])


@guards("libs/bus/muster_bus/broker/topology.py", "await js.add_consumer(stream, replace(existing", rule="I1")
async def test_provisioning_again_changes_the_leases_and_keeps_what_is_queued(bare: Bus):
    await provision(bare, SETTINGS, ["one"], ["a"])
    await put_task(bare, "a", "kept")
    before = (await consumer(bare, "w_a"))["config"]

    await provision(bare, Provisioning(lease_seconds=4, ack_wait_seconds=7), ["one"], ["a"])

    assert await ack_wait_of(bare, request_queue("one")) == 4
    after = await consumer(bare, "w_a")
    assert after["config"] == {**before, "ack_wait": 7_000_000_000}
    assert after["num_pending"] == 1


async def test_a_stream_that_takes_our_subjects_under_another_name_is_a_clear_error(bare: Bus):
    await api(bare, "STREAM.CREATE.MINE", {"name": "MINE", "subjects": ["results.*"]})

    with pytest.raises(Misconfigured, match="the broker refuses to provision: subjects overlap"):
        await provision(bare, SETTINGS, ["default"], ["a"])


async def test_removing_leaves_nothing_of_ours_and_all_of_others(bus: Bus):
    await api(bus, "STREAM.CREATE.MINE", {"name": "MINE", "subjects": ["mine"]})

    for _ in range(2):
        await remove(bus)

        assert [stream["config"]["name"] for stream in (await api(bus, "STREAM.LIST"))["streams"]] == ["MINE"]


async def test_a_broker_without_jetstream_is_a_clear_error(tmp_path: Path, connect: Connect):
    plain = Server(tmp_path / "plain", extra="jetstream: disabled\n")
    await plain.start()
    bus = await connect(plain.url)

    for attempt, what in (
        (provision(bus, SETTINGS, ["default"], ["a"]), "provision"),
        (remove(bus), "remove REQUESTS"),
    ):
        with pytest.raises(BrokerAway, match=f"the broker did not {what}: "):
            await attempt
    await plain.stop()


async def test_a_service_waits_for_its_consumer_and_then_names_the_way_out(bare: Bus):
    began = time.monotonic()

    with pytest.raises(Misconfigured, match="there is no consumer w_a on TASKS; run `muster provision`"):
        await ack_wait_of(bare, task_queue(["a"]), give_up_after=0.5)

    assert 0.4 < time.monotonic() - began < 4
    assert (await api(bare, "STREAM.LIST"))["streams"] == []


async def test_what_is_not_provisioned_is_a_clear_error(bare: Bus):
    with pytest.raises(Misconfigured, match="there is no stream RESULTS; run `muster provision`"):
        await longest_deadline(bare)
    with pytest.raises(Misconfigured, match="there is no stream ERRORS; run `muster provision`"):
        await last_sequence(bare, subjects.ERRORS)


async def test_a_broker_that_does_not_answer_is_an_error_and_not_an_empty_one(bus: Bus, broker: Server):
    pause(broker)
    try:
        for look in (teams_provisioned(bus), longest_deadline(bus), last_sequence(bus, subjects.ERRORS)):
            with pytest.raises(BrokerAway, match="the broker did not look up"):
                await look
    finally:
        resume(broker)


async def test_before_anything_is_provisioned_there_is_no_team(bare: Bus):
    assert await teams_provisioned(bare) == []


@guards(
    "libs/bus/muster_bus/broker/queues.py",
    "if isinstance(error, NotProvisioned) else math.inf",
    rule="I4",
    replace="if True else math.inf",
)
async def test_a_service_that_starts_while_the_broker_hangs_waits_for_it(
    bus: Bus, broker: Server, caplog: pytest.LogCaptureFixture
):
    """A supervisor that ended instead would leave its requests to nobody until it is started again."""
    pause(broker)
    looking = asyncio.create_task(until_there(bus, lambda: longest_deadline(bus), give_up_after=0.0))
    try:
        await until(lambda: "not ready: the broker did not look up RESULTS: nats: timeout" in caplog.text, "it waits")
        assert "look up RESULTS" in bus.lacking
    finally:
        resume(broker)

    assert await looking > 0
    assert not bus.lacking
