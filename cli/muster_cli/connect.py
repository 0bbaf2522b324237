"""A client's connection from the command line, to the broker and the team that are up in this folder."""

import logging

from muster_bus.broker.access import shown
from muster_bus.process.settings import Settings
from muster_bus.tracing.tracing import OFF, Tracing
from muster_cli.local.folder import nats_url, read_address, team_name
from muster_cli.view.console import say
from muster_client import Client


async def connect(settings: Settings, team: str | None = None, *, is_traced: bool = False) -> Client:
    """A client of the broker that is named, or of this folder's `muster up`; raises BrokerAway.

    With an endpoint set, what a traced one sends is the root of its trace.
    """
    if not logging.getLogger().handlers:
        # a command shows what a person has to know; only bugs are logged
        logging.getLogger("muster").setLevel(logging.ERROR)
    tracing = Tracing.start("client", "muster", settings.trace) if is_traced else OFF
    url, team = nats_url(settings), team or team_name(settings)
    client = await Client.connect(url, team=team, name="muster", tracing=tracing)
    if settings.nats_url is None and read_address() is None:
        say(f"no `muster up` runs in this folder; this is {shown(url)}", is_error=True)
    return client
