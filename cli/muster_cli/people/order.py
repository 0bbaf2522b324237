"""`muster retry` and `muster reassign`: try a task of an open request again, or give it to somebody else."""

from argparse import Namespace

from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.view.console import say, say_json
from muster_cli.view.requests import check_provisioned, known_view
from muster_protocol.errors import Invalid
from muster_protocol.messages import Decision
from muster_protocol.questions import decision_as_json, words_of


async def retry(given: Namespace, settings: Settings) -> int:
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        request_id = (await known_view(client, given.id)).state.request_id
        decision = await client.retry(request_id, given.task, given.reason)
    return _show(given, request_id, decision)


async def reassign(given: Namespace, settings: Settings) -> int:
    if (given.role is None) == (given.worker is None):
        raise Invalid("name a role, or a worker with --worker", "ROLE")
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        request_id = (await known_view(client, given.id)).state.request_id
        decision = await client.reassign(request_id, given.task, given.role, worker=given.worker, reason=given.reason)
    return _show(given, request_id, decision)


def _show(given: Namespace, request_id: str, decision: Decision | None) -> int:
    if given.json:
        taken_in = None if decision is None else decision_as_json(decision)
        say_json({"request_id": request_id, "task": given.task, "decision": taken_in})
    elif decision is None:
        say(f"{request_id}: it is kept; no supervisor has taken it in yet")
    else:
        say(f"{request_id}: {words_of(decision)}")
    return Exit.DONE
