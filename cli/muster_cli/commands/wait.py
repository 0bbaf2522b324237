"""`muster wait`: follow a request that was asked before, as `muster ask` follows its own."""

from argparse import Namespace

from muster_bus.process.settings import Settings
from muster_cli.commands.ask import usual_deadline
from muster_cli.connect import connect
from muster_cli.view.follow import follow
from muster_cli.view.requests import check_provisioned
from muster_client.queue import resolve_id


async def wait(given: Namespace, settings: Settings) -> int:
    async with await connect(settings) as client:
        client.usual_deadline_seconds = usual_deadline(settings, client.team)
        await check_provisioned(client, settings)
        request_id = await resolve_id(client.bus, given.id)
        return await follow(client, request_id, is_json=given.json, jaeger_url=settings.jaeger_url)
