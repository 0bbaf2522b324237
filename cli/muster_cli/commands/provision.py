"""`muster provision`: make the streams, consumers and buckets of a team."""

import math
from argparse import Namespace
from pathlib import Path

from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_bus.broker.access import Access, shown
from muster_bus.connection import Bus
from muster_bus.process.command import Exit
from muster_bus.process.logging import set_up_logging
from muster_bus.process.service import instance_name
from muster_bus.process.settings import Settings
from muster_cli.local.folder import nats_url
from muster_cli.local.provisioning import provision_team
from muster_cli.view.console import say, say_json
from muster_protocol.sender import Sender


async def provision(given: Namespace, settings: Settings) -> int:
    team = load_team(find_team_file(given.team_file, settings.team_file, Path.cwd()))
    set_up_logging("provision", "", settings.log)
    url = nats_url(settings)
    bus = await _connect(url, settings.access, given.wait)
    try:
        await provision_team(bus, team, given.replicas, give_up_after=given.wait)
    finally:
        await bus.close()
    document = {"nats_url": shown(url), "team": team.team, "tags": team.tags, "replicas": given.replicas}
    text = f"team {team.team} is provisioned at {shown(url)}: tags {', '.join(team.tags)}"
    if given.json:
        say_json(document)
    else:
        say(text)
    return Exit.DONE


async def _connect(url: str, access: Access, wait_seconds: float) -> Bus:
    """Who may wait for ever waits as a service does: also for a broker that refuses us, and says so now and then."""
    sender = Sender("provision", instance_name(None))
    if wait_seconds < math.inf:
        return await Bus.connect(url, sender, timeout=wait_seconds, access=access)
    bus = Bus.unconnected(url, sender, access=access)
    await bus.open()
    return bus
