"""What an attempt has spent whose worker gave no result: its stored turns say, with a call that may be lost."""

import asyncio
import logging

from muster_bus.turns import TurnsOfTask, purge_turns
from muster_protocol.errors import MusterError
from muster_protocol.messages import Result, Usage
from muster_supervisor.choosing.among import functions
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")

READ_SECONDS = 2.0  # a busy broker must not hold the failure up


async def with_lost(owner: Owner, result: Result) -> Result:
    """The result that is to be written for an attempt, with what the attempt has spent."""
    task = owner.state.tasks[result.task_id]
    attempt = task.attempts[result.attempt - 1]
    if {task.tag, attempt.role} & functions(owner.resources.team):
        return result
    turns = TurnsOfTask(owner.bus, owner.request_id, result.task_id)
    try:
        async with asyncio.timeout(READ_SECONDS):
            known = await turns.read()
    except (TimeoutError, MusterError) as error:
        log.warning("… result  %s  what it had spent could not be read: %s", result.attempt_id, error)
        most = Usage(output_tokens=attempt.tokens or 0, usd=attempt.usd or 0.0)  # what was set aside is the most
        return result.model_copy(update={"usage": most})
    if known.claim is None:
        return result
    return result.model_copy(update={"usage": known.spent_by(result.attempt), "spent": known.spent})


async def forget_turns(owner: Owner) -> None:
    """The request is answered: nobody goes on with its turns. Requests that paid for nothing have none."""
    state = owner.state
    if state.usage.model_calls and any(task.spent.model_calls for task in state.tasks.values()):
        await purge_turns(owner.bus, owner.request_id)
