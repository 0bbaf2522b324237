"""Carries out the steps that `decide.py` says are due; each has a file of its own in `steps/`."""

import asyncio
import time
from typing import assert_never

from muster_protocol.messages.growth import FAILURE, REVIEW, kind_of
from muster_supervisor.decide import (
    AskApproval,
    DispatchTasks,
    Expire,
    GiveAnswer,
    Grow,
    MakePlan,
    Refine,
    Step,
    TakeDefault,
    TryAgain,
)
from muster_supervisor.owner import Owner
from muster_supervisor.steps.answer import give_answer
from muster_supervisor.steps.dispatch import dispatch
from muster_supervisor.steps.expire import expire
from muster_supervisor.steps.grow import grow
from muster_supervisor.steps.plan import plan
from muster_supervisor.steps.refine import start_revising
from muster_supervisor.steps.review import start_review
from muster_supervisor.steps.wait_for_person import ask_approval, take_default

PACE_SECONDS = 0.005  # between two dispatches of one saturated request, so that several tasks share a reservation


class Steps:
    """The steps of one request."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._dispatched_at = 0.0

    def startable(self, steps: list[Step]) -> list[Step]:
        return [step for step in steps if not self._is_under_way(step)]

    def _is_under_way(self, step: Step) -> bool:
        """Whether a step is being carried out in the background, or must wait for that."""
        match step:
            case Refine(attempt_id=(_, task_id, _)) | TryAgain(attempt_id=(_, task_id, _)):
                return task_id in self._owner.revising
            case Grow(cause=cause):
                return cause in self._owner.growing
            case Expire(attempt_id=(_, task_id, _)):
                return task_id in self._owner.publishing  # no worker can have it yet: a full TASKS costs no attempt
            case _:
                return False

    async def carry_out(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case MakePlan():
                    await plan(self._owner)
                case AskApproval():
                    await ask_approval(self._owner)
                case TakeDefault():
                    await take_default(self._owner, step)
                case DispatchTasks():
                    await self._dispatch(step)
                case Grow():
                    await self._grow(step)
                case Refine() | TryAgain():
                    start_revising(self._owner, step)
                case Expire():
                    await expire(self._owner, step)
                case GiveAnswer():
                    await give_answer(self._owner, step)
                case _:
                    assert_never(step)

    async def _grow(self, step: Grow) -> None:
        """Ask a model where one has to say by what; the rest stands in the log."""
        if kind_of(step.cause) in (REVIEW, FAILURE):
            start_review(self._owner, step)
        else:
            await grow(self._owner, step)

    async def _dispatch(self, step: DispatchTasks) -> None:
        """Dispatch, or pause a moment if few tasks are due just after others: more may share the reservation."""
        plan_entry = self._owner.state.plan_entry
        assert plan_entry is not None
        pause = self._dispatched_at + PACE_SECONDS - time.monotonic()
        if pause > 0 and self._owner.state.in_flight and len(step.attempts) < plan_entry.in_flight // 4:
            await asyncio.sleep(pause)
            return
        self._dispatched_at = time.monotonic()
        await dispatch(self._owner, step)
