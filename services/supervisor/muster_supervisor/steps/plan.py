"""The plan of a request: made within its time, written once, or the request is refused with the reason."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext

from muster_bus import telemetry
from muster_bus.reports import Source
from muster_protocol.errors import Invalid, MusterError, Retryable
from muster_protocol.messages import AnswerStatus, PlanRecorded, Usage
from muster_supervisor.decide import GiveAnswer
from muster_supervisor.owner import Owner
from muster_supervisor.planner import Unplannable, make_plan
from muster_supervisor.steps.answer import give_answer

log = logging.getLogger("muster.supervisor")

RETRY_SECONDS = 1.0


async def plan(owner: Owner) -> None:
    """Make the plan and write it, unless another one is there by then."""
    request, team, model = owner.request, owner.resources.team, owner.resources.model
    try:
        with telemetry.span("plan", telemetry.SpanKind.INTERNAL, {"gen_ai.operation.name": "plan"}):
            async with asyncio.timeout(owner.seconds_left()), _place(owner):
                planned, usage, warnings = await make_plan(request, team, model)
    except (TimeoutError, Retryable) as error:
        await _pause(owner, "planning is tried again", error)
        return
    except MusterError as error:
        owner.spent += error.usage if isinstance(error, Unplannable) else Usage()
        await refuse(owner, str(error))
        return
    except Exception as error:
        log.exception("planning %s broke", owner.request_id)
        await refuse(owner, f"no plan could be made: {error!r}")
        return
    plan_entry = PlanRecorded(
        plan=planned,
        text=request.text or planned.goal,
        team=team.team,
        request_hash=owner.request_hash,
        deadline=owner.deadline,
        in_flight=min(request.in_flight or team.limits.in_flight, team.limits.in_flight),
        max_attempts=team.limits.max_attempts,
        timeout_seconds=team.limits.task_timeout_seconds,
        budget=request.budget,
        planner=model.name if request.text else "given",
        warnings=warnings,
        usage=usage,
    )
    await _write(owner, plan_entry)


async def _write(owner: Owner, plan_entry: PlanRecorded) -> None:
    """A plan that no message can carry is refused; one that is not taken for now is kept, since it may have cost."""
    while _is_wanted(owner):  # an entry that came meanwhile costs a try, not the plan
        try:
            if await owner.compare_and_set(plan_entry):
                log.info("☰ plan    %s  %d tasks", owner.request_id, len(plan_entry.plan.tasks))
        except Retryable as error:
            await _pause(owner, "the plan is not stored yet", error)
        except Invalid as error:
            owner.spent += plan_entry.usage
            await refuse(owner, f"the plan cannot be stored: {error}")


def _is_wanted(owner: Owner) -> bool:
    state = owner.state
    return state.plan_entry is None and state.answer is None and state.cancelled is None and owner.seconds_left() > 0


async def _pause(owner: Owner, what: str, error: Exception) -> None:
    if owner.seconds_left() > 0:  # else `due` says that the deadline was reached
        owner.planning_error = f"{what}: {str(error) or type(error).__name__}"
        log.warning("… request %s  %s", owner.request_id, owner.planning_error)
        await owner.log.changed(min(RETRY_SECONDS, owner.seconds_left()))


def _place(owner: Owner) -> AbstractAsyncContextManager[object]:
    """Among those who think; a plan that is given needs no model and waits for none."""
    return owner.resources.model_slots if owner.request.text is not None else nullcontext()


async def refuse(owner: Owner, reason: str) -> None:
    """Report a request that cannot be done, and answer it all the same, without the model: it may be what breaks."""
    delivery = owner.delivery
    source = Source.of(delivery)
    await owner.bus.report(reason, source, request_id=owner.request_id)
    await give_answer(owner, GiveAnswer(AnswerStatus.FAILED, reason, is_plain=True))
