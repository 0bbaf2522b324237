"""A supervisor dies or hangs while a model is asked by what a plan grows: one growth, one answer, each task once."""

import asyncio
import signal
from pathlib import Path

import pytest

from muster_protocol.messages import Answer, AnswerStatus, Reserved
from muster_testing.crash import KILLED
from muster_testing.messages_server import CannedReply
from tests.flow.test_reviews import ASKED, BROKEN, COMPOSED, MORE, PLAN, REPLACED, growths, thinking
from tests.harness import Muster

BUDGET = 90_000
CAUSES = {"review": "review:1", "failure": "failure:t1"}
STEPS = ("before:reserved", "after:reserved", "before:extended", "after:extended")
SCRIPTS: dict[str, tuple[list[CannedReply], CannedReply, list[CannedReply]]] = {
    "review": ([PLAN], MORE, [COMPOSED]),
    "failure": ([BROKEN], REPLACED, []),
}
EXECUTED = {"review": {"one": 1, "two": 1, "why": 1}, "failure": {"t1": 1, "t2": 1, "t4": 1, "t5": 1}}
QUICK = {("failure", "before:extended", "kill", True)}


def cases() -> list[object]:
    """All of them; the quick ones stay in the short run."""
    every = [
        (cause, step, fault, has_peer)
        for cause in CAUSES
        for step in STEPS
        for fault in ("kill", "stop")
        for has_peer in (False, True)
        if has_peer or fault == "kill"  # who hangs with nobody beside goes on by itself: see below
    ]
    return [pytest.param(*case, marks=() if case in QUICK else pytest.mark.sweep) for case in every]


def replies(cause: str, step: str) -> list[CannedReply]:
    """What the model says; it is asked twice where the first word was not written down."""
    before, verdict, after = SCRIPTS[cause]
    return [*before, *([verdict] * (2 if step == "before:extended" else 1)), *after]


def limits(cause: str) -> dict[str, int]:
    return {"rounds": int(cause == "review"), "replacements": int(cause == "failure")}


async def set_aside(muster: Muster, request: str, purpose: str) -> list[int]:
    found = [entry.body for entry in await muster.entries(request, Reserved)]
    return [body.tokens or 0 for body in found if isinstance(body, Reserved) and body.purpose == purpose]


async def check(muster: Muster, request: str, cause: str, step: str) -> Answer:
    """One growth, one answer, each task once, and nobody spent more than there was."""
    answer = await muster.answer(request)
    reserved = await set_aside(muster, request, CAUSES[cause])
    assert answer.status is AnswerStatus.DONE
    assert [grown.cause for grown in await growths(muster, request)] == [CAUSES[cause]]
    assert (await growths(muster, request))[0].refused is None
    assert muster.executions(request) == EXECUTED[cause]
    assert answer.usage.tokens <= BUDGET
    lost = reserved[:-1]
    assert len(lost) == (1 if step in ("after:reserved", "before:extended") else 0)
    assert answer.usage.tokens >= sum(lost) + 1_200 + 800
    return answer


@pytest.mark.parametrize(("cause", "step", "fault", "has_peer"), cases())
async def test_a_model_is_asked_by_what_the_plan_grows_and_the_plan_grows_once(
    tmp_path: Path, cause: str, step: str, fault: str, has_peer: bool
) -> None:
    when, _, kind = step.partition(":")
    prefix = "stop@" if fault == "stop" else ""
    async with thinking(tmp_path, *replies(cause, step), **limits(cause)) as (muster, server):
        die_at = f"{prefix}{when}:{kind}={CAUSES[cause]}"
        muster.spawn("supervisor", "s1", die_at=die_at, env=server.environment)
        await muster.until_logged("s1", "ready")
        request = await muster.client.submit(ASKED, budget={"tokens": BUDGET})
        if has_peer:
            await muster.until_log(request, lambda state: state.plan_entry is not None)
            await muster.start("supervisor", "s2", env=server.environment)
        if fault == "kill":
            assert await muster.ended("s1") == KILLED
        else:
            await muster.until_paused("s1")
        if not has_peer:
            await muster.start("supervisor", "s2", env=server.environment)

        answer = await check(muster, request, cause, step)
        if fault == "stop":
            muster.signal("s1", signal.SIGCONT)
            await muster.stop("s1")  # it goes on first, as far as it may
            state = await muster.state(request)
            assert [grown.cause for grown in state.grown] == [CAUSES[cause]]
            assert state.answer == answer
            assert muster.executions(request) == EXECUTED[cause]


@pytest.mark.sweep
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("step", STEPS)
async def test_a_supervisor_that_hangs_past_its_lease_alone_goes_on(tmp_path: Path, cause: str, step: str) -> None:
    when, _, kind = step.partition(":")
    script = [*replies(cause, step), *SCRIPTS[cause][2]]
    async with thinking(tmp_path, *script, **limits(cause)) as (muster, server):
        muster.spawn("supervisor", "s1", die_at=f"stop@{when}:{kind}={CAUSES[cause]}", env=server.environment)
        request = await muster.client.submit(ASKED, budget={"tokens": BUDGET})
        await muster.until_paused("s1")
        await muster.past_lease()
        muster.signal("s1", signal.SIGCONT)

        answer = await muster.answer(request)
        assert answer.status is AnswerStatus.DONE
        assert [grown.cause for grown in await growths(muster, request)] == [CAUSES[cause]]
        assert muster.executions(request) == EXECUTED[cause]
        assert answer.usage.tokens <= BUDGET


@pytest.mark.sweep
async def test_a_supervisor_that_is_stopped_while_it_reviews_hands_the_request_back(tmp_path: Path) -> None:
    held = CannedReply(MORE.body, is_held=True)
    async with thinking(tmp_path, PLAN, held, MORE, COMPOSED) as (muster, server):
        await muster.start("supervisor", "s1", env=server.environment)
        request = await muster.client.submit(ASKED, budget={"tokens": BUDGET})
        await muster.until(lambda: len(server.requests) == 2, "the supervisor reviews")
        await asyncio.gather(muster.stop("s1"), muster.start("supervisor", "s2", env=server.environment))

        await check(muster, request, "review", "after:reserved")
