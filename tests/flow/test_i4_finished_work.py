"""I4: finished work is in the answer, also if what was to be made of it failed, or the request was cancelled."""

import json

import pytest

from muster_protocol.messages import AnswerStatus
from tests.harness import Muster

ITEMS = ["x", "y"]


async def test_a_map_whose_reduce_fails_is_answered_with_what_its_items_came_to(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    template = {"description": json.dumps({"output": "of {item}"}), "tag": "scripted"}
    reduce = {"description": json.dumps({"fail": "no", "final": True}), "tag": "scripted"}

    request = await muster.client.submit(map={"template": template, "items": ITEMS, "reduce": reduce})
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    done = {row.id for row in answer.tasks if row.status == "done"}
    assert answer.output == dict(zip(sorted(done), ["of x", "of y"], strict=True))


@pytest.mark.parametrize("last", ["a", "b"])
async def test_a_cancelled_request_is_answered_with_the_outputs_of_the_tasks_that_are_done(
    muster: Muster, last: str
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    tasks = [{"id": name, "orders": {"until": "never"} if name == last else {}} for name in ("a", "b")]
    request = await muster.submit([*tasks, {"id": "both", "dependencies": ["a", "b"]}])
    (done,) = {"a", "b"} - {last}
    await muster.until_log(request, lambda state: bool(state.tasks) and state.tasks[done].phase == "done")

    await muster.client.cancel(request, "enough")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.CANCELLED
    assert answer.output == {done: f"{done} of {request}"}
    assert {row.id for row in answer.tasks if row.status == "done"} == {done}
