"""Outputs that are too large or too odd to travel: a failure that says why, or an answer that is cut."""

from muster_protocol.messages import AnswerStatus
from tests.flow.misbehaving_team import orders, start_misbehaving
from tests.harness import Muster

ODD = {
    "itself": (orders(action="cancel itself"), "cancelled"),
    "own-task": (orders(action="cancel its own task"), "the role cancelled its own task"),
    "base": (orders(action="raise", what="what is no Exception"), "GeneratorExit"),
    "name": (orders(action="raise", what="a name that is no Unicode"), "FileNotFoundError"),
    "deep": (orders(action="nest", levels=230), "recursion"),
    "deeper": (orders(action="nest", levels=600), "recursion"),
    "number": (orders(action="count far"), "digits"),
    "output": (orders(action="say much", characters=70_000_000), "the most is"),
    "error": (orders(action="complain much", characters=70_000_000), "ValueError"),
}


async def test_a_result_that_cannot_travel_is_a_failure_that_says_why(muster: Muster) -> None:
    await start_misbehaving(muster)

    request = await muster.submit([{"id": name, "description": ODD[name][0], "max_attempts": 1} for name in ODD])
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert [task.id for task in answer.tasks if ODD[task.id][1] not in (task.reason or "")] == []
    assert muster.executions(request) == dict.fromkeys(ODD, 1)


async def test_an_answer_that_is_too_large_to_travel_is_cut_and_given(muster: Muster) -> None:
    await start_misbehaving(muster)
    much = orders(action="say much", characters=12_000_000)

    request = await muster.submit([{"id": f"a{n}", "description": much} for n in range(3)])  # in text and output
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert "cut here" in answer.text


async def test_a_task_that_would_take_in_too_much_fails_and_the_rest_is_answered(muster: Muster) -> None:
    await start_misbehaving(muster)
    much = orders(action="say much", characters=25_000_000)
    tasks = [{"id": f"a{n}", "description": much} for n in range(3)]

    everything = [*tasks, {"id": "all", "dependencies": ["a0", "a1", "a2"]}]
    request = await muster.submit(everything, deadline_seconds=100)  # a busy machine takes its time over 75 MB
    answer = await muster.answer(request, within=105)

    assert answer.status is AnswerStatus.PARTIAL
    assert "the most is" in (answer.tasks[-1].reason or "")
