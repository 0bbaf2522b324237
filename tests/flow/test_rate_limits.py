"""The limits of a provider hold over all replicas: real workers, the real `anthropic` package, a strict server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import AnswerStatus
from muster_protocol.workers.rate_limits import LEASE_SECONDS as PLACE_SECONDS
from muster_testing.messages_server import CannedReply, MessagesServer, message, refusal, running_messages_server, text
from tests.flow.command_line import Here
from tests.harness import LEASE_SECONDS, Muster

PROVIDER = "anthropic-base-url"
TEAM = """\
team: default
supervisor: {model: %s}
roles:
  - {name: thinker, model: claude-sonnet-5-5, slots: %d}
rate_limits: {%s}
"""
CLAUDE = "claude-sonnet-5-5"
HELLO = message(text("hello"))
HELD = replace(HELLO, is_held=True)
WINDOW = 2.0
SIX = f"{PROVIDER}: {{requests_per_minute: 180, window_seconds: {WINDOW:g}}}"
TWO_AT_ONCE = f"{PROVIDER}: {{max_concurrent: 2}}"


@dataclass
class Limited:
    """A team whose workers ask one provider."""

    muster: Muster
    server: MessagesServer

    async def submit(self, count: int, **more: Any) -> str:
        tasks = [
            {"id": f"t{n}", "tag": "thinker", "description": "Say hello.", "max_attempts": 1} for n in range(count)
        ]
        return await self.muster.client.submit(plan={"tasks": tasks}, **more)

    async def asked(self, count: int) -> None:
        await self.muster.until(lambda: len(self.server.requests) >= count, f"{count} model calls")

    async def status(self, request: str) -> str:
        here = self.muster.folder / "here"
        here.mkdir(exist_ok=True)
        run = Here(here, MUSTER_NATS_URL=self.muster.broker.url, COLUMNS="200").run
        return (await asyncio.to_thread(run, "status", request)).stdout


@asynccontextmanager
async def limited(
    folder: Path, limits: str, *script: CannedReply, slots: int = 8, model: str = "offline"
) -> AsyncGenerator[Limited]:
    """Two workers and a supervisor, with a provider that gives these replies."""
    (folder / "team.yaml").write_text(TEAM % (model, slots, limits))
    async with (
        running_messages_server(*script) as server,
        Muster.provisioned(folder / "team.yaml", folder, lease_seconds=LEASE_SECONDS) as muster,
    ):
        names = {"w1": "worker", "w2": "worker", "s1": "supervisor"}
        await asyncio.gather(*(muster.start(kind, name, env=server.environment) for name, kind in names.items()))
        yield Limited(muster, server)


def most_in_a_window(times: list[float], window: float) -> int:
    return max(sum(begin <= at < begin + window for at in times) for begin in times)


@pytest.mark.parametrize("count", [10, pytest.param(60, marks=pytest.mark.sweep)])
async def test_two_replicas_make_no_more_calls_than_the_limit_in_any_window(tmp_path: Path, count: int) -> None:
    async with limited(tmp_path, SIX, *[HELLO] * count) as team:
        request = await team.submit(count)
        await team.asked(6)
        shown = await team.status(request) if count > 10 else ""
        answer = await team.muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        assert len(team.server.times) == count
        assert most_in_a_window(team.server.times, WINDOW) <= 6
        if count > 10:
            assert f"waits for {PROVIDER}'s limit of 6 requests in 2 s, about" in shown


async def test_one_refusal_slows_both_replicas_and_is_no_strike(tmp_path: Path) -> None:
    busy = refusal(429, "rate_limit_error", "Too many requests", retry_after="2")
    async with limited(tmp_path, "", busy, *[HELLO] * 20, slots=1) as team:
        first = await team.submit(1)
        await team.asked(1)
        await team.muster.until_logged(await asking(team), "which says that it is asked too often")
        others = [await team.submit(1) for _ in range(4)]
        answers = [await team.muster.answer(request) for request in (first, *others)]

        assert {answer.status for answer in answers} == {AnswerStatus.DONE}
        assert team.server.times[1] - team.server.times[0] >= 2
        results = await team.muster.results(first)
        assert [(result.attempt, result.status) for result in results] == [(1, "done")]


async def test_a_wait_beyond_the_time_of_one_attempt_is_no_failure_of_the_task(tmp_path: Path) -> None:
    busy = refusal(429, "rate_limit_error", "Too many requests", retry_after="2")
    async with limited(tmp_path, "", busy, HELLO, slots=1) as team:
        task = {"id": "t", "tag": "thinker", "description": "Say hello.", "max_attempts": 1, "timeout_seconds": 1.5}
        answer = await team.muster.answer(await team.muster.client.submit(plan={"tasks": [task]}))

        assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.DONE, 2)
        assert len(team.server.requests) == 2


async def asking(team: Limited) -> str:
    """The worker that has said of its attempt that it waits."""
    names = ("w1", "w2")
    await team.muster.until(lambda: any("too often" in team.muster.service_log(name) for name in names), "one waits")
    return next(name for name in names if "too often" in team.muster.service_log(name))


@pytest.mark.sweep
async def test_no_more_calls_are_under_way_than_may_be_over_both_replicas(tmp_path: Path) -> None:
    async with limited(tmp_path, TWO_AT_ONCE, *[HELD] * 2, *[HELLO] * 4) as team:
        request = await team.submit(6)
        await team.asked(2)
        names = ("w1", "w2")
        limit = "waits for anthropic-base-url's limit of 2 calls at once"
        await team.muster.until(lambda: any(limit in team.muster.service_log(name) for name in names), "others wait")
        shown = await team.status(request)
        asked = len(team.server.requests)
        team.server.released.set()

        assert asked == 2
        assert limit in shown
        assert (await team.muster.answer(request)).status is AnswerStatus.DONE


@pytest.mark.sweep
async def test_the_places_of_a_worker_that_is_killed_are_free_after_their_lease(tmp_path: Path) -> None:
    async with limited(tmp_path, TWO_AT_ONCE, *[HELD] * 2, *[HELLO] * 4, slots=2) as team:
        team.muster.kill("w2")
        request = await team.submit(2)
        await team.asked(2)
        team.muster.kill("w1")
        await team.muster.start("worker", "w3", env=team.server.environment)
        answer = await team.muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        assert team.server.times[2] - team.server.times[1] >= PLACE_SECONDS / 2


@pytest.mark.sweep
async def test_calls_wait_for_a_broker_that_is_away_and_are_made_once(tmp_path: Path) -> None:
    async with limited(tmp_path, SIX, *[HELLO] * 9) as team:
        request = await team.submit(9)
        await team.asked(6)
        team.muster.broker.kill()
        await team.muster.broker.start()
        answer = await team.muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        assert most_in_a_window(team.server.times, WINDOW) <= 6


async def test_a_spend_limit_is_not_asked_twice(tmp_path: Path) -> None:
    spent = refusal(429, "rate_limit_error", "You have reached your spend limit")
    assert isinstance(spent.body, dict)
    spent.body["error"]["details"] = {"error_code": "enforced_spend_limit_reached"}
    async with limited(tmp_path, "", spent, HELLO) as team:
        request = await team.muster.client.submit(
            plan={"tasks": [{"id": "t", "tag": "thinker", "description": "Say hello."}]}
        )
        answer = await team.muster.answer(request)

        assert (answer.status, len(team.server.requests)) == (AnswerStatus.FAILED, 1)
        assert "spend limit" in answer.reason + answer.text


@pytest.mark.sweep
async def test_a_wait_beyond_the_deadline_fails_at_once_and_says_why(tmp_path: Path) -> None:
    hour = f"{PROVIDER}: {{requests_per_minute: 1}}"
    async with limited(tmp_path, hour, *[HELLO] * 3, slots=1) as team:
        request = await team.submit(2, deadline_seconds=40)
        answer = await team.muster.answer(request)

        assert (answer.status, len(team.server.requests)) == (AnswerStatus.PARTIAL, 1)
        assert answer.seconds < 20
        (failed,) = [row for row in answer.tasks if row.status == "failed"]
        assert "limit of 1 request a minute" in (failed.reason or "")


@pytest.mark.sweep
async def test_a_cancel_ends_a_wait_within_a_second(tmp_path: Path) -> None:
    async with limited(tmp_path, TWO_AT_ONCE, *[HELD] * 2, slots=3) as team:
        request = await team.submit(3)
        await team.asked(2)
        await team.muster.client.cancel(request)
        answer = await team.muster.answer(request, within=5)

        assert answer.status is AnswerStatus.CANCELLED


async def test_the_supervisors_own_calls_pass_the_same_gate(tmp_path: Path) -> None:
    one = f"{PROVIDER}: {{requests_per_minute: 30, window_seconds: {WINDOW:g}}}"
    async with limited(tmp_path, one, *[HELLO] * 4, model=CLAUDE) as team:
        answer = await team.muster.answer(await team.submit(2))

        assert answer.status is AnswerStatus.DONE
        assert len(team.server.requests) >= 3  # two tasks, and the answer
        assert most_in_a_window(team.server.times, WINDOW) == 1
