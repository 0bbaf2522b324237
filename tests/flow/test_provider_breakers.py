"""A provider of models that is away: its roles wait together, others go on, and so do the supervisor's own calls."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from muster_agent.errors import ModelAway
from muster_agent.models.scripted import Scripted
from muster_bus.buckets.breakers import read_breakers
from muster_bus.buckets.kv import Bucket
from muster_protocol.fold import TaskPhase
from muster_protocol.messages import AnswerStatus
from muster_protocol.workers.breaker import PAUSE_SECONDS, THRESHOLD, Breaker
from muster_testing.messages_server import message, refusal, running_messages_server, text
from muster_testing.waiting import until_asked
from tests.flow.command_line import Here
from tests.flow.in_process import supervising
from tests.harness import LEASE_SECONDS, Muster, running

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: reader, model: claude-sonnet-5-5}
  - {name: writer, model: claude-sonnet-5-5}
  - {name: either, model: claude-sonnet-5-5, other_model: offline}
  - {name: scripted, run: "muster_testing.roles:scripted"}
"""
BUSY = refusal(529, "overloaded_error", "Overloaded", retry_after="0")
NAME = "anthropic-base-url"
KEY = f"default.provider:{NAME}"
TASKS = 12


def task(number: int) -> dict[str, Any]:
    name = ("reader", "writer")[number % 2]
    return {"id": f"{name}{number}", "tag": name, "description": "Say hello in one word.", "max_attempts": 1}


async def test_roles_of_one_provider_wait_together_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)
    async with (
        running_messages_server(*[BUSY] * 200) as server,
        Muster.provisioned(tmp_path / "team.yaml", tmp_path, lease_seconds=LEASE_SECONDS) as muster,
    ):
        await asyncio.gather(*(muster.start(one, one, env=server.environment) for one in ("worker", "supervisor")))
        request = await muster.submit([task(number) for number in range(TASKS)], in_flight=1)
        await until_asked(lambda: is_open(muster), "the provider is left alone")
        await muster.until_logged("supervisor", f"waits: provider '{NAME}' does not answer")
        asked = len(server.requests)
        others = await muster.ask(plan={"tasks": [{**task(0), "id": "e", "tag": "either"}, ORDERED]})
        state = await muster.state(request)
        waiting = [one for one, found in state.tasks.items() if found.phase is TaskPhase.READY]
        here = tmp_path / "here"
        here.mkdir()
        shown = await asyncio.to_thread(Here(here, MUSTER_NATS_URL=muster.broker.url).run, "status")

        assert others.status is AnswerStatus.DONE
        assert (len(waiting), asked) == (TASKS - THRESHOLD, THRESHOLD * 3)
        assert len(server.requests) == asked
        assert f"provider 'default.{NAME}' does not answer (open)" in shown.stdout

        server.script[:] = [message(text("hello"))] * 50
        nearly_over = Breaker(openings=1, opened_at=muster.bus.clock.now() - PAUSE_SECONDS + 1)
        await Bucket(muster.bus, "breakers").put(KEY, nearly_over.model_dump_json().encode())
        answer = await muster.answer(request)

        assert sum(row.status == "done" for row in answer.tasks) == len(waiting)
        assert (await read_breakers(muster.bus, "default"))[f"provider:{NAME}"].is_closed


ORDERED = {"id": "s", "tag": "scripted", "description": "{}"}


@pytest.mark.sweep
@pytest.mark.parametrize("count", [2, 4])
async def test_the_supervisors_own_calls_count_and_wait_as_well(tmp_path: Path, count: int) -> None:
    model = Scripted(lambda _: ModelAway("busy (529)", retry_after_seconds=0.0))
    model.provider = "anthropic"
    async with running(tmp_path) as muster, supervising(muster, model):
        asked = [await muster.client.submit(f"plan {n}", deadline_seconds=8) for n in range(count)]
        answers = [await muster.answer(request) for request in asked]

        assert {answer.status for answer in answers} == {AnswerStatus.FAILED}
        assert all("provider 'anthropic' does not answer" in answer.reason for answer in answers)
        assert len(model.asked) <= THRESHOLD + count
        assert not (await read_breakers(muster.bus, "default"))["provider:anthropic"].is_closed


async def is_open(muster: Muster) -> bool:
    breaker = (await read_breakers(muster.bus, "default")).get(f"provider:{NAME}")
    return breaker is not None and not breaker.is_closed
