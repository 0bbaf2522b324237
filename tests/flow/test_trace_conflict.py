"""A conflict is seen in the trace of its request: a span with an event for each side."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_testing.otlp import Collector
from tests.flow.command_line import Here
from tests.flow.conflict_tools import Contest, contest
from tests.flow.trees import Tree, has, tree_of


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


async def test_a_conflict_is_a_span_of_the_request_that_names_both_sides(
    team: Contest, collector: Collector, tmp_path: Path
):
    busy = ("--slots", "1")  # whoever runs the task has no slot for its copy
    services = {"s1": ("supervisor",), "w1": ("worker", *busy), "w2": ("worker", *busy), "c1": ("coordinator",)}
    started = [(kind, name, *options) for name, (kind, *options) in services.items()]
    await asyncio.gather(*(team.start(*words, env=collector.environment) for words in started))
    request_id = await team.ask_one(until="go")
    await team.until_running(request_id)

    await team.copy(await team.task_message())
    await team.until_running(request_id, 2)
    found = await team.conflict(request_id, lambda record: bool(record.stops))
    await team.until_logged(found.stops[0].worker, "stopped: ")  # else it may be the first to finish
    team.release("go")
    answer = await team.answer(request_id)
    tree = await tree_of(collector, answer.trace_id or "", _is_decided)

    conflict = tree.named("conflict")[-1]  # the first one was written when it was found, this one when it was decided
    assert tree.path(conflict) == "invoke_workflow default > conflict"
    assert conflict.service == "muster-coordinator"
    assert conflict.attributes["muster.conflict.kinds"] == [kind.value for kind in found.kinds]
    assert {event.name for event in conflict.events} == {"side of a conflict"}
    told = {event.attributes["muster.worker"]: event.attributes["muster.status"] for event in conflict.events}
    assert told[found.stops[0].worker] == "told to stop"
    assert {"w1", "w2"} <= told.keys()
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=team.url)
    document = await asyncio.to_thread(here.document, "trace", request_id)
    (step,) = [step for step in document["steps"] if step["what"] == "conflict"]
    drawn = await asyncio.to_thread(here.run, "trace", request_id, COLUMNS="300")
    assert step["details"]["keep"] == (found.keep and found.keep.model_dump())
    assert step["details"]["stops"] == [stop.model_dump() for stop in found.stops]
    assert f"{found.stops[0]} was told to stop" in drawn.stdout


def _is_decided(tree: Tree) -> bool:
    statuses = [event.attributes.get("muster.status") for span in tree.named("conflict") for event in span.events]
    return has(invoke_agent=2)(tree) and "told to stop" in statuses
