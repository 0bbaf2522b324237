"""One request is one trace: a single tree of spans over three services, exported for real."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncGenerator

import pytest_asyncio

from muster_bus.embedded import free_port
from muster_protocol.messages import AnswerStatus
from tests.harness import Muster
from tests.otlp import Collector, Seen


@pytest_asyncio.fixture
async def collector() -> AsyncGenerator[Collector]:
    started = Collector()
    await started.start()
    yield started
    await started.stop()


async def test_a_request_by_http_is_one_tree_of_spans_over_three_services(muster: Muster, collector: Collector) -> None:
    port = free_port()
    await muster.start("coordinator", "c1", "--port", str(port), env=collector.environment)
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)

    tasks = [{"id": "a", "tag": "acting", "description": "{}"}, {"id": "b", "tag": "second", "description": "{}"}]
    request = await asyncio.to_thread(_post, port, {"plan": {"tasks": tasks}})
    answer = await muster.answer(request)
    await muster.until(lambda: _count(collector, "POST /v1/requests") == 1, "the coordinator's spans came")
    await muster.until(lambda: _count(collector, "process requests.{team}") == 1, "the supervisor's spans came")
    await muster.until(lambda: _count(collector, "process tasks.{tag}") == 2, "the worker's spans came")

    assert answer.status is AnswerStatus.DONE
    spans = [span for span in collector.spans if span.trace == answer.trace_id]
    assert {span.service for span in spans} == {"muster-coordinator", "muster-supervisor", "muster-worker"}
    by_id = {span.id: span for span in spans}
    (root,) = (span for span in spans if span.parent not in by_id)
    assert (root.name, root.parent) == ("POST /v1/requests", "")
    assert _paths(spans, by_id) == {
        "publish requests.{team}",
        "publish requests.{team} > process requests.{team}",
        "publish requests.{team} > process requests.{team} > plan",
        "publish requests.{team} > process requests.{team} > publish tasks.{tag}",
        "publish requests.{team} > process requests.{team} > publish tasks.{tag} > process tasks.{tag}",
        "publish requests.{team} > process requests.{team} > compose",
    }
    assert all(span.links == (span.parent,) for span in spans if span.name.startswith("process"))


async def test_a_dead_collector_costs_the_request_nothing(muster: Muster) -> None:
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    await muster.start("supervisor", "s1", env=nowhere)
    await muster.start("worker", "w1", env=nowhere)

    request = await muster.submit([{"id": "a"}])

    assert (await muster.answer(request)).status is AnswerStatus.DONE


def _post(port: int, body: object) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/requests",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
        return str(json.load(reply)["id"])


def _count(collector: Collector, name: str) -> int:
    return sum(span.name == name for span in collector.spans)


def _paths(spans: list[Seen], by_id: dict[str, Seen]) -> set[str]:
    """Every span by its way down from the publish; what the web framework adds above that is its own."""

    def path(span: Seen) -> str:
        above = by_id.get(span.parent)
        is_ours = above is not None and span.name != "publish requests.{team}"
        return f"{path(above)} > {span.name}" if above is not None and is_ours else span.name

    return {found for span in spans if (found := path(span)).startswith("publish")}
