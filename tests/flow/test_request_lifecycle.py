"""The life of a request through real services, when nothing goes wrong and when tasks do."""

from muster_protocol.messages import AnswerStatus
from tests.harness import Muster


async def test_a_request_becomes_a_plan_tasks_results_and_one_answer(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit(
        [{"id": "a"}, {"id": "b"}, {"id": "c", "dependencies": ["a", "b"], "orders": {"output": "both"}}]
    )
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert answer.text == "both"
    assert {task.id: task.status for task in answer.tasks} == {"a": "done", "b": "done", "c": "done"}
    assert muster.executions(request) == {"a": 1, "b": 1, "c": 1}


async def test_a_failed_attempt_of_a_function_is_tried_again_as_it_was(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit([{"id": "a", "orders": {"fail": "the disk is full", "times": 1}}])
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert answer.tasks[0].attempts == 2
    task = (await muster.state(request)).tasks["a"]
    assert task.description == task.spec.description


async def test_a_worker_says_which_attempt_it_has_settled(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit([{"id": "a", "orders": {"fail": "the disk is full", "times": 1}}])

    for sign, settled in (("✗", "attempt 1  failed: logic: the disk is full"), ("✓", "attempt 2  done")):
        line = f"{sign} result  {request}/a  {settled}"
        await muster.until(lambda line=line: line in muster.service_log("w1"), settled)


async def test_three_failed_attempts_end_a_task_and_what_depends_on_it_while_the_rest_goes_on(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit(
        [
            {"id": "bad", "orders": {"fail": "never"}, "max_attempts": 2},
            {"id": "after", "dependencies": ["bad"]},
            {"id": "last", "dependencies": ["after"]},
            {"id": "good", "orders": {"output": "fine"}},
        ]
    )
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    assert answer.output == {"good": "fine"}
    assert answer.text.startswith(
        "## good\n\nfine\n\n## Missing\n\n- bad failed: never\n- after was skipped: bad failed"
    )
    statuses = {task.id: task.status for task in answer.tasks}
    assert statuses == {"bad": "failed", "after": "skipped", "last": "skipped", "good": "done"}
    reasons = {task.id: task.reason or "" for task in answer.tasks}
    assert "after skipped" in reasons["last"]
    assert "bad failed: never" in reasons["last"]


async def test_a_final_failure_is_not_tried_again(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit([{"id": "a", "orders": {"fail": "no such thing", "final": True}}])
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert "no such thing" in answer.text
    assert muster.executions(request) == {"a": 1}


async def test_cancel_stops_what_runs_and_what_waits(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--slots", "1")
    request = await muster.submit([{"id": "runs", "orders": {"sleep": 60}}, {"id": "waits"}])
    await muster.until(lambda: muster.executions(request)["runs"] == 1, "the first task runs")

    await muster.client.cancel(request, "changed my mind")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.CANCELLED
    assert "changed my mind" in answer.gaps
    next_request = await muster.submit([{"id": "free", "orders": {"output": "the slot is free"}}])
    assert (await muster.answer(next_request)).text == "the slot is free"
    assert muster.executions(request) == {"runs": 1}


async def test_a_map_over_items_becomes_one_task_each_and_a_reduce(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.client.submit(
        map={
            "template": {"description": '{"output": "{item}"}', "tag": "scripted"},
            "items": ["x", "y", "z"],
            "reduce": {"description": '{"output": "all three"}', "tag": "second"},
        }
    )
    answer = await muster.answer(request)

    assert answer.text == "all three"
    assert len(answer.tasks) == 4


async def test_a_task_within_a_budget_of_tokens_is_reserved_its_share(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit([{"id": "a"}, {"id": "b"}], budget={"tokens": 30_000})
    await muster.answer(request)

    state = await muster.state(request)
    reserved = [state.tasks[task].attempts[0].tokens or 0 for task in ("a", "b")]
    assert reserved == [20_000, 10_000]
