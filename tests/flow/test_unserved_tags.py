"""A tag whose last worker is gone: named at once, and no reason to lose the rest of the request."""

import pytest

from muster_protocol.messages import AnswerStatus
from tests.harness import Muster


async def test_a_tag_that_nobody_serves_is_named_at_once_and_its_task_is_done_when_a_worker_comes(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--role", "scripted")
    request = await muster.submit([{"id": "a"}, {"id": "b", "tag": "second"}])

    await muster.until_logged("s1", f"'second' is served by no live worker, and {request}.b.1 waits for one")
    await muster.start("worker", "w2", "--role", "second")

    assert (await muster.answer(request)).status is AnswerStatus.DONE


@pytest.mark.sweep  # a worker that may only be restarting is waited for
async def test_a_task_whose_last_worker_is_gone_fails_while_there_is_time_for_the_rest(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--role", "scripted")
    after = {"id": "c", "dependencies": ["a", "b"], "gather": "done"}
    request = await muster.submit([{"id": "a"}, {"id": "b", "tag": "second"}, after], deadline_seconds=40)

    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    assert [row.status for row in answer.tasks] == ["done", "failed", "done"]
    assert "no live worker has served the tag 'second'" in str(answer.tasks[1].reason)
    assert 10 < answer.seconds < 35
