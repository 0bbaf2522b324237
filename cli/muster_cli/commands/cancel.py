"""`muster cancel`: end a request now."""

from argparse import Namespace

from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.view.console import say, say_json
from muster_cli.view.requests import check_provisioned, known_view


async def cancel(given: Namespace, settings: Settings) -> int:
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        state = (await known_view(client, given.id)).state
        is_over = state.answer is not None
        if not is_over:
            await client.cancel(state.request_id, given.reason)
    how = "is over already" if is_over else "ends now; its answer keeps what is done"
    if given.json:
        say_json({"request_id": state.request_id, "cancelled": not is_over})
    else:
        say(f"{state.request_id} {how}")
    return Exit.DONE
