"""Task messages for which nobody waits do not stay in the queue, also where no worker is there to settle them."""

import pytest

from muster_protocol.messages import AnswerStatus
from tests.guards import guards
from tests.harness import Muster


@guards(
    "services/supervisor/muster_supervisor/abort.py",
    "    if task_sequence is not None:\n        await delete_task(owner.bus, task_sequence)",
    rule="I4",
    seconds=60,
)
async def test_the_messages_of_all_attempts_at_a_task_without_workers_are_deleted(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "timeout_seconds": 0.3, "max_attempts": 2}])

    assert (await muster.answer(request)).status is AnswerStatus.FAILED
    await muster.until_settled("tasks.scripted")
    assert "deleted: its request is answered" not in muster.service_log("s1")  # by the owner, not left over


@pytest.mark.sweep
async def test_a_task_whose_supervisor_was_killed_right_after_the_publish_is_deleted_by_another(muster: Muster) -> None:
    await muster.start("supervisor", "s1", die_at="before:dispatched")
    request = await muster.submit([{"id": "a"}], deadline_seconds=1.0)
    assert await muster.ended("s1") == 137
    await muster.past_lease()

    await muster.start("supervisor", "s2")

    assert (await muster.answer(request)).status is AnswerStatus.FAILED
    await muster.until_settled("tasks.scripted", within=20)
    await muster.until_logged("s2", "deleted: its request is answered")
