"""The graph of the book: what one failure costs, what it does not, and how that is explained."""

from muster_protocol.messages import AnswerStatus
from muster_protocol.status_words import TaskStatus
from tests.harness import Muster


async def test_when_t1_fails_for_good_t4_is_kept_and_t3_and_t5_are_explained_by_their_chain(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit(
        [
            {"id": "T1", "orders": {"fail": "the source is gone", "final": True}},
            {"id": "T2", "orders": {"output": "two"}},
            {"id": "T3", "dependencies": ["T1"]},
            {"id": "T4", "dependencies": ["T2"], "orders": {"output": "four"}},
            {"id": "T5", "dependencies": ["T3", "T4"]},
        ]
    )

    answer = await muster.answer(request)

    failed, done, skipped = TaskStatus.FAILED, TaskStatus.DONE, TaskStatus.SKIPPED
    assert answer.status is AnswerStatus.PARTIAL
    assert {row.id: (row.status, row.reason) for row in answer.tasks} == {
        "T1": (failed, "the source is gone"),
        "T2": (done, None),
        "T3": (skipped, "T1 failed: the source is gone"),
        "T4": (done, None),
        "T5": (skipped, "T3 skipped: T1 failed: the source is gone"),
    }
    assert answer.output == {"T2": "two", "T4": "four"}
    assert "four" in answer.text
    assert muster.executions(request) == {"T1": 1, "T2": 1, "T4": 1}
    for gap in ("T1", "T3", "T5"):
        assert any(gap in said and "the source is gone" in said for said in answer.gaps)
