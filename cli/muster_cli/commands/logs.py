"""`muster logs`: what every service did for one request, line by line, from the streams."""

import asyncio
import sys
import time
from argparse import Namespace

from muster_bus.process.command import Exit
from muster_bus.process.printable import printable
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.view.console import say, say_json
from muster_cli.view.requests import check_provisioned
from muster_client.log_lines import LogLine
from muster_client.queue import resolve_id
from muster_client.read_lines import LineReader

LOOK_SECONDS = 0.5  # between two looks at the streams


async def logs(given: Namespace, settings: Settings) -> int:
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        request_id = await resolve_id(client.bus, given.id)
        reader = LineReader(client.bus, request_id)
        while True:
            was_answered = reader.is_answered
            for line in await reader.new():
                if given.json:
                    say_json(line.as_json(request_id))
                else:
                    say(shown(line))
            sys.stdout.flush()
            if was_answered or not given.follow:  # after the answer one more look: an event may be a little late
                return Exit.DONE
            await asyncio.sleep(LOOK_SECONDS)


def shown(line: LogLine) -> str:
    """Time, who, and what: as the services log it, on one line."""
    clock = time.strftime("%H:%M:%S", time.localtime(line.time))
    sender = "-".join(line.sender.split("/")[:2])
    return printable(f"{clock}.{int(line.time % 1 * 1000):03}  {sender}  {line.message}")
