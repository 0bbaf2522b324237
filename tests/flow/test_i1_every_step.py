"""I1, I2, I3: a supervisor is killed, paused past its lease or told to stop at every step, with and without a peer."""

import signal

import pytest

from muster_protocol import subjects
from muster_protocol.messages import Answer, AnswerStatus, PlanRecorded
from tests.harness import Muster

STEPS = [
    "after:taken",
    "before:plan",
    "after:plan",
    "before:reserved",
    "after:reserved",
    "before:dispatched",
    "after:dispatched",
    "before:answer",
    "after:answer",
    "before:ack",
]
QUICK = [("stop", "after:reserved", True), ("term", "before:answer", False)]


@pytest.mark.parametrize(
    ("fault", "step", "has_peer"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.sweep)
        for case in [
            (fault, step, peer) for fault in ("kill", "stop", "term") for step in STEPS for peer in (True, False)
        ]
    ],
)
async def test_no_fault_of_a_supervisor_loses_or_doubles_anything(
    muster: Muster, fault: str, step: str, has_peer: bool
) -> None:
    if "answer" in step or "ack" in step:  # else work waits: a task that is done is no longer noted as dispatched
        muster.release("go")
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s1", die_at=step if fault == "kill" else f"{fault}@{step}")
    request = await muster.submit(
        [{"id": "a", "orders": {"until": "go"}}, {"id": "b"}, {"id": "c", "dependencies": ["a", "b"]}]
    )

    await _until_struck(muster, fault)
    if has_peer:
        await muster.start("supervisor", "s2")
        await muster.until_log(request, lambda state: state.owner == "s2" or state.answer is not None)
    if fault == "stop":
        await muster.past_lease()
        muster.signal("s1", signal.SIGCONT)
    elif not has_peer:
        await muster.ended("s1")
        await muster.start("supervisor", "s1")
    muster.release("go")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert len(await muster.entries(request, PlanRecorded)) == 1
    assert len(await muster.entries(request, Answer)) == 1
    assert muster.executions(request) == {"a": 1, "b": 1, "c": 1}
    assert len(await muster.results(request)) == 3
    await muster.until_settled(subjects.requests("default"))


async def _until_struck(muster: Muster, fault: str) -> None:
    if fault == "kill":
        assert await muster.ended("s1") == 137
    elif fault == "term":
        assert await muster.ended("s1") == 0
    else:
        await muster.until_paused("s1")
