"""Whoever dies, pauses or comes back, the spans of a request stay one tree without orphans."""

import asyncio
import signal
from typing import Any

import pytest

from muster_bus.tracing import names
from muster_bus.tracing.context import workflow_id_of
from muster_protocol.messages import AnswerStatus
from muster_testing.otlp import Collector, ExportedSpan
from tests.flow.trees import Tree, has, tree_of
from tests.flow.ways import Asked, ask
from tests.guards import guards
from tests.harness import Muster

WAYS = ("client", *(pytest.param(way, marks=pytest.mark.sweep) for way in ("command", "http")))


def waiting() -> list[dict[str, Any]]:
    return [{"id": "a", "orders": {"until": "go"}}]


async def start(muster: Muster, collector: Collector, **services: str) -> None:
    """Start services by name, such as s1="supervisor"."""
    starting = (muster.start(kind, name, grace_seconds=2, env=collector.environment) for name, kind in services.items())
    await asyncio.gather(*starting)


async def begun(muster: Muster, request: str, times: int = 1) -> None:
    await muster.until(lambda: muster.executions(request)["a"] == times, f"the task was begun {times} times")


async def finished(muster: Muster, collector: Collector, asked: str | Asked, **counts: int) -> Tree:
    asked = Asked(asked) if isinstance(asked, str) else asked
    answer = await muster.answer(asked.request_id)
    assert answer.status is AnswerStatus.DONE
    tree = await tree_of(collector, answer.trace_id or "", has(compose=1, **counts), caller=asked.caller)
    workflow = tree.spans[workflow_id_of(asked.request_id)]
    assert tree.path(workflow) == " > ".join((*asked.above, "invoke_workflow default"))
    direct = {span.name.split(" ")[0] for span in tree.spans.values() if span.parent == workflow.id}
    assert {"invoke_agent", "answer"} <= direct
    return tree


def events(span: ExportedSpan) -> list[str]:
    return [event.name for event in span.events]


async def test_a_retry_is_a_second_task_span_and_its_back_off_is_seen(muster: Muster, collector: Collector) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")

    flaky = {"id": "a", "orders": {"fail": "not today", "times": 1}}
    request = await muster.submit([flaky, {"id": "b", "dependencies": ["a"]}])
    tree = await finished(muster, collector, request, invoke_agent=3)

    first, second, third = tree.named("invoke_agent")
    assert third.attributes["muster.task.dependencies"] == third.attributes["muster.task.waited_for"] == ["a"]
    assert "muster.task.dependencies" not in first.attributes
    assert (first.is_failed, first.error_type) == (True, "logic")
    assert (second.is_failed, second.attributes["muster.task.attempt"]) == (False, 2)
    assert second.attributes["muster.task.waited_for"] == ["attempt 1"]
    (again,) = tree.named("try again scripted")
    assert [(event.name, event.attributes["muster.seconds"] > 0.1) for event in again.events] == [("back-off", True)]
    assert tree.path(again) == "invoke_workflow default > try again scripted"
    assert tree.named("chat") == []
    assert not any(set(names.CONTENT) & span.attributes.keys() for span in tree.spans.values())


@pytest.mark.parametrize("way", WAYS)
async def test_a_workers_death_leaves_no_orphan_and_its_task_is_seen_again(
    muster: Muster, collector: Collector, way: str
) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")
    asked = await ask(way, muster, collector, waiting())
    request = asked.request_id
    await begun(muster, request)

    muster.kill("w1")
    await start(muster, collector, w2="worker")
    await begun(muster, request, 2)
    muster.release("go")
    tree = await finished(muster, collector, asked, invoke_agent=1)

    (task,) = tree.named("invoke_agent")
    assert task.attributes["muster.delivery"] == 2
    assert events(task) == ["queued", "redelivered"]
    assert task.events[0].attributes["muster.seconds"] > 0.5  # a lease


async def test_a_task_that_a_stopping_worker_hands_back_has_not_failed(muster: Muster, collector: Collector) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")
    request = await muster.submit(waiting())
    await begun(muster, request)

    assert await muster.stop("w1") == 0
    await start(muster, collector, w2="worker")
    muster.release("go")
    tree = await finished(muster, collector, request, invoke_agent=2)

    first, second = tree.named("invoke_agent")
    assert (first.is_failed, events(first)[-1]) == (False, "handed back")
    assert (second.is_failed, second.attributes["muster.delivery"]) == (False, 2)


@pytest.mark.parametrize("way", WAYS)
@guards(
    "services/supervisor/muster_supervisor/run.py",
    "self._export_workflow()  # before",
    rule="I8",
    case="client",
    seconds=40,
)
async def test_a_supervisors_death_after_the_dispatch_leaves_no_orphan(
    muster: Muster, collector: Collector, way: str
) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")
    asked = await ask(way, muster, collector, waiting())
    request = asked.request_id
    await begun(muster, request)

    muster.kill("s1")
    await start(muster, collector, s2="supervisor")
    await muster.until_log(request, lambda state: state.owner == "s2")
    muster.release("go")
    tree = await finished(muster, collector, asked, invoke_agent=1)

    (taken,) = tree.named("take over")
    assert (taken.attributes["muster.delivery"], taken.attributes["muster.previous_owner"]) == (2, "s1")
    assert len([span for span in collector.spans if span.id == workflow_id_of(request)]) == 1


async def test_a_supervisors_death_before_its_first_reservation_leaves_no_orphan(
    muster: Muster, collector: Collector
) -> None:
    muster.spawn("supervisor", "s1", die_at="after:plan", env=collector.environment)
    await start(muster, collector, w1="worker")
    request = await muster.submit([{"id": "a"}])
    await muster.ended("s1")

    await start(muster, collector, s2="supervisor")
    tree = await finished(muster, collector, request, invoke_agent=1)

    copies = [span for span in collector.spans if span.id == tree.root.id]
    assert 1 <= len(copies) <= 2  # nobody can know whether the first one left
    assert {(span.start, span.end, str(span.attributes)) for span in copies} == {
        (tree.root.start, tree.root.end, str(tree.root.attributes))
    }


@pytest.mark.parametrize("way", WAYS)
async def test_a_supervisor_that_stops_exports_the_root_once(muster: Muster, collector: Collector, way: str) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")
    asked = await ask(way, muster, collector, waiting())
    request = asked.request_id
    await begun(muster, request)

    assert await muster.stop("s1") == 0
    await start(muster, collector, s2="supervisor")
    await muster.until_log(request, lambda state: state.owner == "s2")
    muster.release("go")
    tree = await finished(muster, collector, asked, invoke_agent=1)

    (taken,) = tree.named("take over")
    assert taken.attributes["muster.previous_owner"] == "handed back"
    assert len([span for span in collector.spans if span.id == workflow_id_of(request)]) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_broker_that_restarts_is_an_event_of_what_ran_meanwhile(
    muster: Muster, collector: Collector, way: str
) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")
    asked = await ask(way, muster, collector, waiting())
    request = asked.request_id
    await begun(muster, request)

    muster.broker.kill()
    await muster.broker.start()
    await muster.until_logged("w1", "the broker is back")
    muster.release("go")
    tree = await finished(muster, collector, asked, invoke_agent=1)

    assert any({"broker away", "broker back"} <= set(events(span)) for span in tree.named("invoke_agent"))


@pytest.mark.parametrize("way", WAYS)
async def test_a_pause_and_a_redelivery_to_the_same_process_are_events(
    muster: Muster, collector: Collector, way: str
) -> None:
    await start(muster, collector, s1="supervisor", w1="worker")
    asked = await ask(way, muster, collector, waiting())
    request = asked.request_id
    await begun(muster, request)

    for instance in ("w1", "s1"):
        muster.signal(instance, signal.SIGSTOP)
    await muster.past_lease()
    await muster.past_lease()
    for instance in ("w1", "s1"):
        muster.signal(instance, signal.SIGCONT)
    await muster.until_log(request, lambda state: state.delivery > 1)
    muster.release("go")
    tree = await finished(muster, collector, asked, invoke_agent=1)

    assert any("paused" in events(span) for span in tree.named("invoke_agent"))
    (taken, *_) = tree.named("take over")
    assert taken.attributes["muster.previous_owner"] == "s1"
    assert len([span for span in collector.spans if span.id == workflow_id_of(request)]) == 1
