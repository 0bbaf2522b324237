"""I1: whatever a request, a result or a control message holds, the request gets its answer."""

import asyncio
import hashlib
import json
from typing import Any

import pytest

from muster_bus import bodies
from muster_bus.bodies import MAX_BODY
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import AnswerStatus, Failure, PlanRecorded, ResultStatus
from muster_protocol.plan import Plan, TaskSpec
from muster_supervisor.decide import GiveAnswer
from muster_supervisor.steps.answer import give_answer
from muster_testing.otlp import Collector
from tests.flow.dying import die_in_turn
from tests.flow.in_process import connected, owner_of, put_result
from tests.flow.trees import has, tree_of
from tests.guards import guards
from tests.harness import Muster
from tests.unit.protocol.log_builder import reserved

PLAN = {"tasks": [{"id": "a", "description": "{}", "tag": "scripted"}]}


@guards(
    "libs/bus/muster_bus/tracing/context.py",
    "if len(given) == LENGTH and _is_traceparent(given) else {}",
    rule="I1",
    replace="",
)
async def test_an_invalid_traceparent_is_not_copied_into_messages(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    body = json.dumps({"plan": PLAN}).encode()
    stored = await muster.publish("requests.default", body, {"traceparent": "0" * 65_420})  # headers end at 65,535

    answer = await muster.answer(muster.id_of(stored, body))

    assert answer.status is AnswerStatus.DONE


@guards(
    "services/supervisor/muster_supervisor/intake.py",
    "if may_be_suspect(delivery.number) and not await self._check",
    rule="I1",
)
async def test_a_body_that_kills_whoever_reads_it_is_answered_as_poison_unread(
    muster: Muster, collector: Collector
) -> None:
    request = await muster.submit([{"id": "a"}])
    await die_in_turn(muster, "before:read")

    await muster.start("supervisor", "wary", die_at="before:read", env=collector.environment)
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert "poison" in answer.text
    tree = await tree_of(collector, answer.trace_id or "", has())
    assert [span.error_type for span in tree.named("answer failed")] == ["poison"]


@guards(
    "libs/protocol/muster_protocol/messages/result.py",
    "    seconds: float = Field(default=0.0, ge=0, le=MOST)",
    rule="I1",
    replace="    seconds: float = 0.0",
    case="more0",
)
@guards(
    "libs/protocol/muster_protocol/messages/base.py",
    "    usd: float = Field(default=0.0, ge=0, le=MOST)",
    rule="I1",
    replace="    usd: float = Field(default=0.0, ge=0)",
    case="more1",
)
@pytest.mark.parametrize("more", [{"seconds": 1e308}, {"usage": {"usd": 1e308, "model_calls": 1}}])
@pytest.mark.sweep
async def test_numbers_whose_sum_would_overflow_are_refused(muster: Muster, more: dict[str, Any]) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}, {"id": "b"}], deadline_seconds=8)
    await muster.until_log(request, lambda state: state.in_flight == 2)

    for name in ("a", "b"):
        result = {"request_id": request, "task_id": name, "attempt": 1, "status": "done", "worker": "w", "role": "r"}
        headers = {"sender": "worker/w", "kind": "result"}
        await muster.publish(f"results.{request}", json.dumps({**result, **more}).encode(), headers)

    assert (await muster.answer(request)).status is AnswerStatus.FAILED
    assert len(await muster.errors()) == 2


@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "is Disposition.OURS:  # again after a lost write",
    rule="I1",
    replace="is Disposition.OURS and not known.state.term:",
)
async def test_a_request_that_its_next_owner_finds_invalid_is_answered_all_the_same(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}], deadline_seconds=7200)
    await muster.until_log(request, lambda state: state.in_flight == 1)
    muster.kill("s1")

    js = muster.bus.nc.jetstream(timeout=5)
    config = (await js.stream_info("RESULTS")).config
    config.max_age, config.duplicate_window = 3600, 120  # somebody shortens the lives of logs: 7200 s are too long now
    await js.update_stream(config)
    await muster.start("supervisor", "s2")
    answer = await muster.answer(request)

    assert "deadline_seconds" in answer.text
    await muster.until_settled(subjects.requests("default"))


async def test_a_map_that_would_become_gigabytes_is_refused_by_its_field(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    over = {"template": {"tag": "scripted", "description": "x" * 400_000 + "{item}"}, "items": ["i"] * 100}
    body = json.dumps({"map": over}).encode()

    answer = await muster.answer(muster.id_of(await muster.publish("requests.default", body, None), body))

    assert answer.status is AnswerStatus.FAILED
    assert "map: unfolds to 40,000,200 characters" in answer.text


@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "if draft.is_cut:\n                raise",
    rule="I1",
    replace=("if draft.output is None:\n                raise"),
)
async def test_reasons_that_are_together_too_long_for_a_message_are_cut_in_the_answer(
    muster: Muster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MAX_BODY", 700_000)  # as sixty thousand of them meet the real one
    names = [f"t{number}" for number in range(200)]
    plan = Plan(tasks=tuple(TaskSpec(id=name, description="{}", tag="scripted", max_attempts=1) for name in names))
    error = Failure.model_validate({"class": "logic", "message": "字" * 2000})
    async with connected(muster, "s1") as bus:
        owner = owner_of(muster, bus, 1)
        await owner.log.open()
        assert await owner.take_first()
        plan_entry = PlanRecorded(
            plan=plan, team="default", request_hash="hash", deadline=owner.deadline, in_flight=200
        )
        assert await owner.compare_and_set(plan_entry)
        await owner.append(reserved(*((name, 1) for name in names)))
        await asyncio.gather(*(put_result(muster.bus, "r1", name, ResultStatus.FAILED, error) for name in names))
        await owner.log.refresh()

        await give_answer(owner, GiveAnswer(AnswerStatus.FAILED, "all of them failed"))
        await owner.close()

    answer = await muster.answer("r1")
    assert len(answer.tasks) == 200
    assert all(0 < len(task.reason or "") <= 200 for task in answer.tasks)


@guards(
    "services/supervisor/muster_supervisor/steps/replies.py",
    "reason=control.reason[:MAX_REASON]",
    rule="I1",
    replace="reason=control.reason",
)
async def test_a_cancel_with_a_long_reason_is_a_cancel(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}])
    await muster.until_log(request, lambda state: state.in_flight == 1)

    await muster.client.cancel(request, "x" * 9_000_000)
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.CANCELLED
    assert len(answer.gaps[0]) == 2000


@guards(
    "libs/bus/muster_bus/reports.py",
    "request_id=subjects.as_id(request_id) if request_id else None",
    rule="I1",
    replace="request_id=request_id",
)
async def test_a_bad_task_with_a_long_request_id_is_reported_and_gone(muster: Muster) -> None:
    await muster.start("worker", "w1")

    headers = {"sender": "client/c", "kind": "task", "request-id": "r" * 65_470}  # of 65,535
    await muster.publish("tasks.scripted", b"junk", headers)

    await muster.until_settled(subjects.tasks("scripted"))
    assert len(await muster.errors()) == 1


async def test_an_object_that_is_larger_than_a_body_may_be_is_not_fetched(muster: Muster) -> None:
    store = await muster.bus.nc.jetstream(timeout=30).object_store("bodies")
    large = b"x" * (MAX_BODY + 1)
    name = hashlib.sha256(large).hexdigest()
    await store.put(name, large)

    with pytest.raises(Invalid, match="no body of at most"):
        await muster.bus.bodies.get(f"{name}.10")
