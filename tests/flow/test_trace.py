"""One request is one trace: a single tree of spans, whichever way the request came in, exported for real."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from muster_bus.broker.embedded import free_port
from muster_bus.tracing.context import trace_id_of, workflow_id_of
from muster_client import Client
from muster_protocol.messages import AnswerStatus
from muster_testing.otlp import Collector
from muster_testing.services import environment
from tests.flow.command_line import Here
from tests.flow.trees import Tree, has, tree_of
from tests.flow.ways import post
from tests.guards import guards
from tests.harness import Muster

TASKS = [{"id": "a", "tag": "scripted", "description": "{}"}, {"id": "b", "tag": "second", "description": "{}"}]
TREE = Counter(
    [
        "invoke_workflow default",
        "invoke_workflow default > plan default",
        "invoke_workflow default > plan default > lint",
        "invoke_workflow default > publish tasks",
        "invoke_workflow default > invoke_agent scripted",
        "invoke_workflow default > invoke_agent second",
        "invoke_workflow default > compose",
        "invoke_workflow default > answer done",
    ]
)
APPLICATION = """
import asyncio, os, sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from muster_client import Client

provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

async def main():
    async with await Client.connect() as client:
        with trace.get_tracer("shop").start_as_current_span("checkout"):
            request_id = await client.submit(plan={"tasks": [
                {"id": "a", "tag": "scripted", "description": "{}"}, {"id": "b", "tag": "second", "description": "{}"},
            ]})
        print((await client.answer(request_id)).trace_id)
        assert trace.get_tracer_provider() is provider
        assert len([t for t in __import__("threading").enumerate() if "Batch" in t.name]) == 1

asyncio.run(main())
provider.shutdown()
"""


async def start_services(muster: Muster, collector: Collector) -> None:
    await asyncio.gather(
        muster.start("supervisor", "s1", env=collector.environment),
        muster.start("worker", "w1", env=collector.environment),
    )


def under(*above: str) -> Counter[str]:
    """The tree of a request that hangs under these spans."""
    way = " > ".join(above)
    tops = Counter(" > ".join(above[: depth + 1]) for depth in range(len(above)))
    return tops + Counter({f"{way} > {path}": count for path, count in TREE.items()})


async def complete(collector: Collector, trace_id: str) -> Tree:
    return await tree_of(collector, trace_id, has(invoke_agent=2, compose=1))


async def test_a_bare_publish_and_a_client_that_does_not_trace_have_a_root_that_the_id_names(
    muster: Muster, collector: Collector
) -> None:
    await start_services(muster, collector)
    body = json.dumps({"plan": {"tasks": TASKS}}).encode()

    bare = muster.id_of(await muster.publish("requests.default", body, None), body)
    untraced = await muster.client.submit(plan={"tasks": TASKS})

    for request in (bare, untraced):
        answer = await muster.answer(request)
        tree = await complete(collector, answer.trace_id or "")
        assert (tree.root.trace, tree.root.id) == (trace_id_of(request), workflow_id_of(request))
        assert tree.paths() == TREE
        (answered,) = tree.named("answer")
        assert answered.start == tree.root.start < tree.root.end < answered.end
        (published,) = tree.named("publish tasks")
        assert published.attributes["messaging.batch.message_count"] == 2
    assert {span.service for span in collector.spans} == {"muster-supervisor", "muster-worker"}


async def test_a_request_by_http_hangs_under_its_server_span_or_under_the_callers(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("coordinator", "c1", env=collector.environment)
    address = muster.http_url("c1")
    await start_services(muster, collector)
    for path in ("healthz", "readyz") * 3:
        await asyncio.to_thread(_get, f"{address}/{path}")
    caller = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}

    alone = await muster.answer(await asyncio.to_thread(post, address, {"plan": {"tasks": TASKS}}))
    called = await muster.answer(await asyncio.to_thread(post, address, {"plan": {"tasks": TASKS}}, caller))

    tree = await complete(collector, alone.trace_id or "")
    assert tree.paths() == under("POST /v1/requests", "publish requests.{team}")
    assert {span.service for span in tree.spans.values()} == {f"muster-{name}" for name in SERVICES}
    assert called.trace_id == "ab" * 16
    await muster.until(lambda: len(_spans(collector, "answer done")) == 2, "the second tree came")
    joined = Tree([span for span in collector.spans if span.trace == called.trace_id])
    assert (joined.root.name, joined.root.parent) == ("POST /v1/requests", "cd" * 8)
    assert {span.name for span in collector.spans if span.service == "muster-coordinator"} == {
        "POST /v1/requests",
        "publish requests.{team}",
    }


SERVICES = ("coordinator", "supervisor", "worker")


async def test_a_request_from_the_command_line_begins_with_its_publish_and_one_of_an_application_with_the_application(
    muster: Muster, collector: Collector, tmp_path: Path
) -> None:
    await start_services(muster, collector)
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url, **collector.environment)
    words = ("submit", "--plan", "-", "--team", "default", "--json")

    ran = await asyncio.to_thread(here.run, *words, text=json.dumps({"tasks": TASKS}))
    shop = await asyncio.to_thread(_run_application, muster, collector)

    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    tree = await complete(collector, answer["trace_id"])
    assert tree.paths() == under("publish requests.{team}")
    assert (tree.root.trace, tree.root.service) == (trace_id_of(answer["request_id"]), "muster-client")
    assert shop.returncode == 0, shop.stderr
    tree = await complete(collector, shop.stdout.strip())
    assert tree.paths() == under("checkout", "publish requests.{team}")
    assert {span.service for span in tree.spans.values()} == {"shop", "muster-supervisor", "muster-worker"}


@guards("libs/bus/muster_bus/tracing/tracing.py", "self._exporting.hold.mark_urgent(started", rule="I8", seconds=20)
async def test_a_python_client_exports_its_publish_span_before_the_next_batch(
    muster: Muster, collector: Collector, monkeypatch: Any
) -> None:
    for name, value in {**collector.environment, "OTEL_BSP_SCHEDULE_DELAY": "60000"}.items():
        monkeypatch.setenv(name, value)
    client = await Client.connect(muster.broker.url)

    await client.submit(plan={"tasks": TASKS})

    await muster.until(lambda: bool(_spans(collector, "publish requests.{team}")), "the span came", within=10)
    await client.close()


async def test_workers_whose_supervisor_does_not_trace_name_the_same_trace(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", env=collector.environment)

    request = await muster.submit([{"id": "a"}, {"id": "b"}])
    answer = await muster.answer(request)
    await muster.until(lambda: len(_spans(collector, "invoke_agent scripted")) == 2, "the worker's spans came")

    assert {span.trace for span in collector.spans} == {answer.trace_id} == {trace_id_of(request)}
    assert {span.parent for span in collector.spans} == {workflow_id_of(request)}


async def test_a_request_is_sampled_by_all_services_or_by_none(muster: Muster, collector: Collector) -> None:
    half = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}
    await muster.start("supervisor", "s1", env=collector.environment | half)
    await muster.start("worker", "w1", env=collector.environment | half)
    requests = [f"r{number}" for number in range(8)]
    sampled = {request for request in requests if int(trace_id_of(request)[16:], 16) < 2**63}
    assert 0 < len(sampled) < len(requests)

    for request in requests:
        await muster.submit([{"id": "a"}], id=request)
    for request in requests:
        assert (await muster.answer(request)).trace_id == trace_id_of(request)
    for instance in ("s1", "w1"):
        muster.signal(instance, signal.SIGTERM)
        await muster.ended(instance)

    for service in ("muster-supervisor", "muster-worker"):
        traces = {span.trace for span in collector.spans if span.service == service}
        assert traces == {trace_id_of(request) for request in sampled}


async def test_a_dead_collector_costs_the_request_a_moment_once(muster: Muster) -> None:
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    await muster.start("supervisor", "s1", env=nowhere)
    await muster.start("worker", "w1", env=nowhere)

    answers = [await muster.answer(await muster.submit([{"id": "a"}])) for _ in range(3)]

    assert {answer.status for answer in answers} == {AnswerStatus.DONE}
    assert min(answer.seconds for answer in answers[1:]) < 0.25  # what the first one waited for a collector


def _get(url: str) -> None:
    with urllib.request.urlopen(url, timeout=60) as reply:
        assert reply.status == 200


def _run_application(muster: Muster, collector: Collector) -> subprocess.CompletedProcess[str]:
    env = environment(muster.folder, muster.broker.url) | collector.environment
    command = [sys.executable, "-c", APPLICATION]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def _spans(collector: Collector, name: str) -> list[object]:
    return [span for span in collector.spans if span.name == name]
