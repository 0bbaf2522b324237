"""`muster reply`: reply to what a request asks, such as whether its plan is carried out."""

import json
from argparse import Namespace
from typing import Any

from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.json_file import read_plan
from muster_cli.view.console import say, say_json
from muster_cli.view.requests import check_provisioned, known_view
from muster_client.replies import question_for
from muster_protocol.fields import check_spelling
from muster_protocol.plan import Plan
from muster_protocol.questions import decision_as_json, words_of


async def reply(given: Namespace, settings: Settings) -> int:
    plan = None if given.plan is None else read_plan(given.plan)
    if plan is not None:
        check_spelling(plan, Plan, "plan")
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        state = (await known_view(client, given.id)).state
        asked = question_for(state, given.question)
        said: dict[str, Any] = {"choice": given.reply} if asked.question.choices else {"value": _value(given.reply)}
        said |= {"question": asked.question.id, "plan": plan, "reason": given.reason}
        decision = await client.reply(state.request_id, **said)
    if given.json:
        taken_in = None if decision is None else decision_as_json(decision)
        say_json({"request_id": state.request_id, "question": asked.question.id, "decision": taken_in})
    elif decision is None:
        say(f"{state.request_id}: the reply is kept; no supervisor has taken it in yet")
    else:
        say(f"{state.request_id}: {words_of(decision)}")
    return Exit.DONE


def _value(text: str) -> object:
    """JSON if it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
