"""The span that says what a request came to is in its tree, whoever died after the answer was written."""

from typing import Any

import pytest

from muster_bus.tracing.context import answer_id_of, trace_id_of, workflow_id_of
from muster_testing.otlp import Collector, ExportedSpan
from tests.flow.trees import has, tree_of
from tests.guards import guards
from tests.harness import Muster

DONE, REFUSED = {"id": "a", "tag": "scripted", "description": "{}"}, {"id": "a", "tag": "nobody", "description": "x"}


async def crash(muster: Muster, collector: Collector, step: str, task: dict[str, Any] | None) -> str:
    """Let a supervisor die at this step of a request, and another come after it."""
    muster.spawn("supervisor", "s1", die_at=step, env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)
    if task is None:  # refused unread: nobody takes it
        request = muster.id_of(await muster.publish("requests.default", b"{", None), b"{")
    else:
        request = await muster.client.submit(plan={"tasks": [task]})
    await muster.ended("s1")
    await muster.start("supervisor", "s2", env=collector.environment)
    return request


@guards(
    "services/supervisor/muster_supervisor/taking/answered.py",
    "await acknowledge(callbacks, delivery, state)",
    rule="I8",
    replace="delivery.lease.ack()",
    case="done",
    seconds=60,
)
@pytest.mark.parametrize(("task", "status"), [(DONE, "done"), (None, "failed")], ids=["done", "refused unread"])
async def test_a_supervisor_that_died_after_it_answered_leaves_a_tree_with_the_answer(
    muster: Muster, collector: Collector, task: dict[str, Any] | None, status: str
) -> None:
    request = await crash(muster, collector, "after:answer", task)

    answer = await muster.answer(request)
    tree = await tree_of(collector, trace_id_of(request), has())

    (answered,) = tree.named("answer")
    assert (answered.name, answered.id) == (f"answer {status}", answer_id_of(request))
    assert (tree.root.id, answered.parent) == (workflow_id_of(request), workflow_id_of(request))
    assert answered.attributes["muster.seconds"] == answer.seconds
    assert answered.error_type == answer.error_class == ("" if status == "done" else "invalid")
    await muster.until_settled("requests.default")


async def test_an_answer_that_is_exported_twice_is_the_same_span(muster: Muster, collector: Collector) -> None:
    request = await crash(muster, collector, "before:ack", REFUSED)

    await muster.until_settled("requests.default")
    await muster.until(lambda: len(_answers(collector)) == 2, "the answer came twice")

    first, second = _answers(collector)
    assert first == second
    assert (first.id, first.error_type) == (answer_id_of(request), "invalid")
    await tree_of(collector, trace_id_of(request), has())


def _answers(collector: Collector) -> list[ExportedSpan]:
    return [span for span in collector.spans if span.name == "answer failed"]
