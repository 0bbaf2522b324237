"""One request is one trace: a single tree of spans over three services, exported for real."""

import asyncio
import json
import re
import signal
import urllib.request
from pathlib import Path

from muster_bus.broker.embedded import free_port
from muster_bus.telemetry import trace_id_of
from muster_protocol.messages import AnswerStatus
from muster_testing.otlp import Collector, ExportedSpan
from tests.flow.command_line import Here
from tests.harness import Muster

TASKS = [{"id": "a", "tag": "scripted", "description": "{}"}, {"id": "b", "tag": "second", "description": "{}"}]
UNDER_THE_REQUEST = {
    "process requests.{team}",
    "process requests.{team} > plan",
    "process requests.{team} > publish tasks.{tag}",
    "process requests.{team} > publish tasks.{tag} > process tasks.{tag}",
    "process requests.{team} > compose",
}


async def test_a_request_by_http_is_one_tree_of_spans_over_three_services(muster: Muster, collector: Collector) -> None:
    await muster.start("coordinator", "c1", env=collector.environment)
    (address,) = re.findall(r"ready: (http://\S+)", muster.service_log("c1"))
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)

    request = await asyncio.to_thread(_post, address, {"plan": {"tasks": TASKS}})
    answer = await muster.answer(request)
    await muster.until(lambda: _count(collector, "POST /v1/requests") == 1, "the coordinator's spans came")
    await _until_exported(muster, collector)

    assert answer.status is AnswerStatus.DONE
    spans = [span for span in collector.spans if span.trace == answer.trace_id]
    assert {span.service for span in spans} == {"muster-coordinator", "muster-supervisor", "muster-worker"}
    (root,) = _roots(spans)
    assert (root.name, root.parent) == ("POST /v1/requests", "")
    assert _paths(spans, "publish requests.{team}") == {
        "publish requests.{team}",
        *(f"publish requests.{{team}} > {path}" for path in UNDER_THE_REQUEST),
    }
    assert all(span.links == (span.parent,) for span in spans if span.name.startswith("process"))


async def test_a_request_from_the_command_line_is_one_tree_that_begins_with_its_publish(
    muster: Muster, collector: Collector, tmp_path: Path
) -> None:
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url, **collector.environment)

    ran = await asyncio.to_thread(
        here.run, "submit", "--plan", "-", "--team", "default", "--json", text=json.dumps({"tasks": TASKS})
    )
    await _until_exported(muster, collector)

    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    spans = collector.spans
    assert {span.trace for span in spans} == {answer["trace_id"]} == {trace_id_of(answer["request_id"])}
    (root,) = _roots(spans)
    assert (root.service, root.name, root.parent) == ("muster-client", "publish requests.{team}", "")
    assert _paths(spans, root.name) == {root.name, *(f"{root.name} > {path}" for path in UNDER_THE_REQUEST)}


async def test_a_request_of_a_client_that_does_not_trace_is_one_tree_all_the_same(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)

    request = await muster.submit([{"id": "a"}, {"id": "b"}])
    answer = await muster.answer(request)
    await _until_exported(muster, collector)

    spans = collector.spans
    assert {span.trace for span in spans} == {answer.trace_id} == {trace_id_of(request)}
    (root,) = _roots(spans)
    assert (root.service, root.name, root.parent) == ("muster-supervisor", "process requests.{team}", "")
    assert _paths(spans, root.name) == UNDER_THE_REQUEST


async def test_i8_a_supervisor_that_takes_over_goes_on_in_the_same_trace(muster: Muster, collector: Collector) -> None:
    await muster.start("supervisor", "s1", grace_seconds=1, env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task was begun")

    muster.signal("s1", signal.SIGTERM)
    await muster.ended("s1")
    await muster.start("supervisor", "s2", env=collector.environment)
    await muster.until_log(request, lambda state: state.owner == "s2")
    muster.release("go")
    answer = await muster.answer(request)
    await muster.until(lambda: _count(collector, "process requests.{team}") == 2, "both supervisors' spans came")
    await muster.until(lambda: _count(collector, "process tasks.{tag}") == 1, "the worker's span came")

    assert {span.trace for span in collector.spans} == {answer.trace_id} == {trace_id_of(request)}


async def test_workers_whose_supervisor_does_not_trace_name_the_same_trace(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", env=collector.environment)

    request = await muster.submit([{"id": "a"}, {"id": "b"}])
    answer = await muster.answer(request)
    await muster.until(lambda: _count(collector, "process tasks.{tag}") == 2, "the worker's spans came")

    assert {span.trace for span in collector.spans} == {answer.trace_id} == {trace_id_of(request)}


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


async def test_a_dead_collector_costs_the_request_nothing(muster: Muster) -> None:
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    await muster.start("supervisor", "s1", env=nowhere)
    await muster.start("worker", "w1", env=nowhere)

    request = await muster.submit([{"id": "a"}])

    assert (await muster.answer(request)).status is AnswerStatus.DONE


def _post(address: str, body: object) -> str:
    request = urllib.request.Request(
        f"{address}/v1/requests",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return str(json.load(reply)["id"])


def _count(collector: Collector, name: str) -> int:
    return sum(span.name == name for span in collector.spans)


async def _until_exported(muster: Muster, collector: Collector) -> None:
    """Parents end after their children, and each service exports by itself."""
    await muster.until(lambda: _count(collector, "process requests.{team}") == 1, "the supervisor's spans came")
    await muster.until(lambda: _count(collector, "process tasks.{tag}") == 2, "the worker's spans came")


def _roots(spans: list[ExportedSpan]) -> list[ExportedSpan]:
    ids = {span.id for span in spans}
    return [span for span in spans if span.parent not in ids]


def _paths(spans: list[ExportedSpan], top: str) -> set[str]:
    """Every span by its way down from the top; what the web framework adds above that is its own."""
    by_id = {span.id: span for span in spans}

    def path(span: ExportedSpan) -> str:
        above = by_id.get(span.parent)
        return f"{path(above)} > {span.name}" if above is not None and span.name != top else span.name

    return {found for span in spans if (found := path(span)).startswith(top)}
