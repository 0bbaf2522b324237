"""Asks people whether a plan is carried out, and takes a question's default when nobody replies in time.

Nothing is held while the question is open: the run waits for its log like any other.
"""

import logging

from muster_protocol.counted import counted
from muster_protocol.fold import last_moment
from muster_protocol.messages import Decision, Question
from muster_protocol.messages.people import APPROVAL, APPROVE, EDIT, REJECT, question_id
from muster_supervisor.control import read_controls
from muster_supervisor.decide import TakeDefault
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")


async def ask_approval(owner: Owner) -> None:
    """Ask whether the plan is to be carried out."""
    plan_entry = owner.state.plan_entry
    assert plan_entry is not None
    now = owner.now()
    until = now + plan_entry.person_seconds if plan_entry.person_seconds else last_moment(owner.state) or owner.deadline
    question = Question(
        id=question_id(owner.request_id, APPROVAL),
        cause=APPROVAL,
        text=f"Carry out this plan of {counted(len(plan_entry.plan.tasks), 'task')}?",
        choices=(APPROVE, EDIT, REJECT),
        until=until,
        otherwise=REJECT,
    )
    await owner.append(question)
    log.info("? plan    %s  waits for approval, question %s", owner.request_id, question.id)


async def take_default(owner: Owner, step: TakeDefault) -> None:
    """Copy what was said in time and not copied yet; if there is no reply among it, record the default."""
    await read_controls(owner, 0)
    asked = owner.state.questions[step.question]
    if asked.decision is None:
        await owner.append(
            Decision(
                decision="default",
                control_sequence=0,
                by=str(owner.bus.sender),
                question=step.question,
                choice=asked.question.otherwise,
            )
        )
