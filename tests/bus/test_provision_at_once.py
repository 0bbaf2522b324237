"""Any number of pods provision at once: the streams end with what all of them asked for."""

import asyncio
import os
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.queues import teams_provisioned
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_testing import until
from muster_testing.cluster import provision_when_elected, running_cluster
from tests.bus.broker_tools import api
from tests.bus.conftest import Connect
from tests.guards import guards

PODS = range(10)
MUSTER = Path(sysconfig.get_path("scripts")) / "muster"
SETTINGS = Provisioning(lease_seconds=1, ack_wait_seconds=1)
TOPOLOGY = "libs/bus/muster_bus/broker/topology.py"
TEAM_FILE = """\
team: {name}
roles:
  - {{name: {name}-writer, run: "json:dumps"}}
  - {{name: shared, run: "json:dumps"}}
"""


async def listed_tags(bus: Bus) -> set[str]:
    subjects: list[str] = (await api(bus, "STREAM.INFO.TASKS"))["config"]["subjects"]
    return {subject.removeprefix("tasks.") for subject in subjects}


async def consumers(bus: Bus, stream: str) -> set[str]:
    return {one["name"] for one in (await api(bus, f"CONSUMER.LIST.{stream}"))["consumers"]}


@guards(TOPOLOGY, "if error.err_code != NAME_IN_USE:", rule="I1", replace="if True:", seconds=60)
async def test_ten_who_provision_at_once_end_with_the_teams_and_tags_of_all(broker: Server, connect: Connect):
    buses = [await connect(broker.url, "provision", f"p{pod}") for pod in PODS]

    for turn in range(5):
        await asyncio.gather(
            *(
                provision(buses[pod], SETTINGS, [f"team{turn}-{pod}"], ["shared", f"a{turn}-{pod}", f"b{turn}-{pod}"])
                for pod in PODS
            )
        )

        teams = {f"team{past}-{pod}" for past in range(turn + 1) for pod in PODS}
        tags = {f"{letter}{past}-{pod}" for letter in "ab" for past in range(turn + 1) for pod in PODS} | {"shared"}
        assert set(await teams_provisioned(buses[0])) == teams
        assert await listed_tags(buses[0]) == tags
        assert await consumers(buses[0], "REQUESTS") == {f"s_{team}" for team in teams}
        assert await consumers(buses[0], "TASKS") == {f"w_{tag}" for tag in tags}


@pytest.mark.timeout(240)
async def test_ten_processes_of_muster_provision_at_once_all_succeed(broker: Server, connect: Connect, tmp_path: Path):
    bus = await connect(broker.url)
    env = {**os.environ, "MUSTER_NATS_URL": broker.url}

    async def run(pod: int) -> tuple[int | None, str]:
        file = tmp_path / f"team{pod}.yaml"
        file.write_text(TEAM_FILE.format(name=f"team{pod}"))
        command = [str(MUSTER), "provision", "--wait", "60", "--team-file", str(file)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, env=env, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        said, _ = await process.communicate()
        return process.returncode, said.decode()

    ended = await asyncio.gather(*(run(pod) for pod in PODS))

    assert [said for code, said in ended if code != 0] == []
    assert set(await teams_provisioned(bus)) == {f"team{pod}" for pod in PODS}
    assert await listed_tags(bus) == {"shared", *(f"team{pod}-writer" for pod in PODS)}


async def test_those_who_want_lanes_and_those_who_do_not_provision_at_once(broker: Server, connect: Connect):
    """A tag that two teams share has lanes as soon as one of them wants them, whoever comes last."""
    buses = [await connect(broker.url, "provision", f"p{pod}") for pod in PODS]
    with_lanes = replace(SETTINGS, has_lanes=True)

    for turn in range(3):
        tags = [f"tag{turn}", f"high_{turn}"]
        await asyncio.gather(
            *(provision(buses[pod], with_lanes if pod % 2 else SETTINGS, [f"team{pod}"], tags) for pod in PODS)
        )
        await provision(buses[0], SETTINGS, ["team0"], tags)

        past = [tag for each in range(turn + 1) for tag in (f"tag{each}", f"high_{each}")]
        assert await listed_tags(buses[0]) == {f"{tag}{lane}" for tag in past for lane in ("", ".high", ".low")}
        assert await consumers(buses[0], "TASKS") == {f"{lane}_{tag}" for tag in past for lane in ("w", "high", "low")}


@guards(TOPOLOGY, "*recorded]", rule="I1", replace="]")
async def test_a_subject_that_somebody_elses_stale_update_took_away_comes_back(bus: Bus):
    config = (await api(bus, "STREAM.INFO.TASKS"))["config"]
    await api(bus, "STREAM.UPDATE.TASKS", {**config, "subjects": ["tasks.a"]})

    await provision(bus, SETTINGS, ["default"], ["a"])

    assert await listed_tags(bus) == {name.removeprefix("w_") for name in await consumers(bus, "TASKS")}


@guards(
    "libs/bus/muster_bus/broker/queues.py",
    "return [tasks(*lane) for lane in lanes if lane is not None]",
    rule="I1",
    replace="return [tasks(lane[0]) for lane in lanes if lane is not None]",
)
async def test_the_lanes_that_somebody_elses_stale_update_took_away_come_back_whoever_provisions(bus: Bus):
    await provision(bus, replace(SETTINGS, has_lanes=True), ["default"], ["a"])
    config = (await api(bus, "STREAM.INFO.TASKS"))["config"]
    await api(bus, "STREAM.UPDATE.TASKS", {**config, "subjects": ["tasks.a"]})

    await provision(bus, SETTINGS, ["default"], ["a"])

    assert {"a", "a.high", "a.low"} <= await listed_tags(bus)


@guards(TOPOLOGY, 'log.warning("%s; trying again", error)', rule="I4", replace="raise")
async def test_provisioning_waits_for_a_broker_that_is_not_ready_yet(
    tmp_path: Path, connect: Connect, caplog: pytest.LogCaptureFixture
):
    not_ready = Server(tmp_path / "starting", extra="jetstream: disabled\n")
    await not_ready.start()
    bus = await connect(not_ready.url)
    provisioning = asyncio.create_task(provision(bus, SETTINGS, ["default"], ["a"], give_up_after=60))
    await until(lambda: "the broker did not provision" in caplog.text, "it tries again")

    await not_ready.stop()
    ready = Server(tmp_path / "started", not_ready.port)
    await ready.start()
    await provisioning

    assert await listed_tags(bus) == {"a"}
    await ready.stop()


@pytest.mark.sweep
@pytest.mark.timeout(300)
async def test_ten_at_once_raise_the_copies_on_three_nodes_and_add_their_tags(tmp_path: Path, connect: Connect):
    """A stream takes no new consumer while its copies are made: who comes then tries again."""
    async with running_cluster(tmp_path) as cluster:
        buses = [await connect(cluster.servers[pod % 3].url, "provision", f"p{pod}") for pod in PODS]
        await provision_when_elected(buses[0], SETTINGS, ["first"], ["first"])

        three = replace(SETTINGS, replicas=3)
        await asyncio.gather(
            *(provision(buses[pod], three, [f"team{pod}"], [f"tag{pod}"], give_up_after=120) for pod in PODS)
        )

        assert await listed_tags(buses[0]) == {"first", *(f"tag{pod}" for pod in PODS)}
        for stream in (await api(buses[0], "STREAM.LIST"))["streams"]:
            assert stream["config"]["num_replicas"] == 3, stream["config"]["name"]
