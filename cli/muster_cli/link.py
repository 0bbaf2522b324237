"""A client's connection from the command line: short patience, and the team that is up in this folder."""

import logging
import os
import secrets
import sys

from muster_bus.connection import Bus
from muster_cli.place import nats_url, read_address
from muster_client import Client
from muster_protocol.headers import Sender

CONNECT_SECONDS = 3.0  # a person waits


async def connect(team: str | None = None, url: str | None = None) -> Client:
    """A client of the broker that is meant here; raises BrokerAway."""
    muster = logging.getLogger("muster")
    if not muster.handlers:
        muster.setLevel(logging.ERROR)  # what a person has to know is shown; what broke is logged
    sender = Sender("client", f"muster-{secrets.token_hex(4)}")
    bus = await Bus.connect(url or nats_url(), sender, timeout=CONNECT_SECONDS)
    if url is None and not os.environ.get("MUSTER_NATS_URL") and read_address() is None:
        print(f"no `muster up` runs in this folder; this is {nats_url()}", file=sys.stderr)
    return Client(bus, team=team or _team_here())


def _team_here() -> str:
    address = None if os.environ.get("MUSTER_NATS_URL") else read_address()
    return address.team if address else "default"
