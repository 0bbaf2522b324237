"""Whatever happens on the wire, every service is connected again soon, and answers the next request."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from muster_bus.broker.embedded import free_port
from muster_protocol.messages import Answer
from muster_protocol.status_words import RequestStatus
from muster_testing import Proxy, running_proxy, until_asked
from tests.guards import guards
from tests.harness import Muster

SERVICES = ("supervisor", "worker", "coordinator")
TOO_MANY = b"-ERR 'Maximum Subscriptions Exceeded'\r\n"  # the broker says so and leaves the connection open
LINES = (
    TOO_MANY,
    b"-ERR \r\n",
    b"INFO []\r\n",
    b"PONG\r\n",
    b"MSG a 1 -99\r\nx\r\n",
    b"\xff\xfe\xfd\r\n",
)
HALF_A_LEASE = 5.0
PLAN = [{"id": "a"}, {"id": "b", "dependencies": ["a"]}]
TASK = {"id": "a", "description": "{}", "tag": "scripted"}


@dataclass
class Behind:
    """A team whose three services reach the broker through a proxy each."""

    muster: Muster
    proxies: dict[str, Proxy] = field(default_factory=dict[str, Proxy])
    ports: dict[str, int] = field(default_factory=dict[str, int])

    async def start(self) -> None:
        self.ports = {service: free_port() for service in SERVICES}
        await asyncio.gather(*(self._start(service) for service in SERVICES))

    async def _start(self, service: str) -> None:
        port = str(self.ports[service])
        env = {"MUSTER_NATS_URL": self.proxies[service].url}
        options = ("--port", port) if service == "coordinator" else ()
        if service != "coordinator":
            env["MUSTER_HEALTH_PORT"] = port
        await self.muster.start(service, service, *options, env=env)

    async def is_ready(self, service: str) -> bool:
        return await asyncio.to_thread(_status, f"http://127.0.0.1:{self.ports[service]}/readyz") == 200

    async def until_ready(self, within: float = 60.0) -> None:
        for service in SERVICES:
            await until_asked(lambda name=service: self.is_ready(name), f"{service} is ready", within)

    async def answers(self) -> None:
        """All three work: a request is answered, and the coordinator shows it."""
        request_id = await self.muster.submit([dict(task) for task in PLAN])
        answer = await self.muster.answer(request_id, 60)
        assert answer.status == RequestStatus.DONE, answer
        url = f"http://127.0.0.1:{self.ports['coordinator']}/v1/requests/{request_id}/answer?wait=30"
        assert await asyncio.to_thread(_status, url) == 200


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=40) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.fixture
async def behind(muster: Muster) -> AsyncIterator[Behind]:
    group = Behind(muster)
    async with (
        running_proxy(muster.broker.port) as first,
        running_proxy(muster.broker.port) as second,
        running_proxy(muster.broker.port) as third,
    ):
        group.proxies = dict(zip(SERVICES, (first, second, third), strict=True))
        await group.start()
        yield group
        muster.kill_all()


async def test_services_answer_after_every_line_that_a_broker_could_say(behind: Behind):
    for line in LINES:
        before = {name: proxy.accepted for name, proxy in behind.proxies.items()}
        for proxy in behind.proxies.values():
            proxy.insert(line)
        if line != b"PONG\r\n":
            await behind.muster.until(
                lambda before=before: all(p.accepted > before[name] for name, p in behind.proxies.items()),
                f"all connect again after {line!r}",
            )
        await behind.until_ready()
    await behind.answers()


async def test_services_answer_after_a_cut_and_notice_a_silent_connection_within_half_a_lease(behind: Behind):
    for proxy in behind.proxies.values():
        proxy.cut()
    await behind.until_ready()
    await behind.answers()

    began = asyncio.get_running_loop().time()
    for proxy in behind.proxies.values():
        proxy.is_silent = True
    for service in SERVICES:
        await behind.muster.until_logged(service, "nats: stale connection")
    took = asyncio.get_running_loop().time() - began
    for proxy in behind.proxies.values():
        proxy.is_silent = False
    await behind.until_ready()
    await behind.answers()
    assert took < HALF_A_LEASE * 2, "noticed too late even for a busy machine"


@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "if is_written and known.state.answer is not None:",
    rule="I1",
    replace="if is_written:",
    case="refused",
    seconds=60,
)
@pytest.mark.parametrize(
    ("body", "sent", "arrived"),
    [
        pytest.param({"plan": {"tasks": [TASK]}}, b'"status":"done"', b'"status":"dOne"', id="done"),
        pytest.param({"plan": {"tasks": []}}, b"The request is invalid", b"The request is\ninvalid", id="refused"),
    ],
)
async def test_an_answer_that_nobody_can_read_is_written_again_before_the_request_is_acknowledged(
    behind: Behind, body: dict[str, object], sent: bytes, arrived: bytes
):
    muster, written = behind.muster, json.dumps(body).encode()
    behind.proxies["supervisor"].replace(sent, arrived)

    stored = await muster.publish("requests.default", written, {})
    answer = await muster.answer(muster.id_of(stored, written), 20)

    assert answer.status == (RequestStatus.FAILED if b"invalid" in sent else RequestStatus.DONE)
    assert len(await muster.entries(answer.request_id, Answer)) == 1, "the damaged one cannot be read"
    entries = await muster.bus.read(f"results.{answer.request_id}")
    assert len([raw for raw in entries if raw.headers.get("kind") == "answer"]) == 2


@pytest.mark.parametrize(
    ("count", "seed"), [(12, 1), *(pytest.param(240, seed, marks=pytest.mark.sweep) for seed in range(1, 7))]
)
async def test_services_answer_after_bytes_were_changed_on_the_wire(behind: Behind, count: int, seed: int):
    for number, proxy in enumerate(behind.proxies.values()):
        proxy.change_bytes(count // 3, seed * 10 + number, between=5)
    asked: list[str] = []
    while any(proxy.has_changes_left for proxy in behind.proxies.values()):
        asked.append(await behind.muster.submit([dict(task) for task in PLAN], deadline_seconds=20))
        await asyncio.sleep(0.1)  # the load that is damaged
    for request_id in asked:
        await behind.muster.answer(request_id, 60)  # of whatever status: a damaged task may fail
    await behind.until_ready()
    await behind.answers()


async def test_a_service_waits_unready_for_its_broker_and_says_so_once(muster: Muster):
    group = Behind(muster)
    async with running_proxy(muster.broker.port) as proxy:
        group.proxies = dict.fromkeys(SERVICES, proxy)
        await proxy.close()
        starting = asyncio.create_task(group.start())
        for service in SERVICES:
            await until_asked(lambda name=service: _is_waiting(muster, name), f"{service} says that it waits", 60)
            assert await asyncio.to_thread(_status, f"http://127.0.0.1:{group.ports[service]}/readyz") == 503
            assert await asyncio.to_thread(_status, f"http://127.0.0.1:{group.ports[service]}/healthz") == 200
            assert muster.service_log(service).count("waiting for the broker") == 1
            assert "connection refused" in muster.service_log(service)
        await proxy.open()
        await starting
        await group.until_ready()
        await group.answers()
        muster.kill_all()


async def _is_waiting(muster: Muster, service: str) -> bool:
    log = muster.folder / f"{service}.log"
    return log.exists() and "waiting for the broker" in log.read_text()
