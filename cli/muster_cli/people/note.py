"""`muster note`: say something about a request that goes on."""

from argparse import Namespace

from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.view.console import say
from muster_cli.view.requests import check_provisioned, known_view
from muster_protocol.errors import Invalid


async def note(given: Namespace, settings: Settings) -> int:
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        state = (await known_view(client, given.id)).state
        if state.answer is not None:
            raise Invalid(f"{state.request_id} is over already", "ID")
        await client.note(state.request_id, given.text)
    say(f"{state.request_id}: noted")
    return Exit.DONE
