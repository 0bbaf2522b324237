"""A client's connection from the command line: the broker and the team that are up in this folder."""

import logging
import os
import sys

from muster_cli.local.folder import nats_url, read_address
from muster_client import Client


async def connect(team: str | None = None, url: str | None = None) -> Client:
    """A client of the broker that is meant here; raises BrokerAway."""
    muster = logging.getLogger("muster")
    if not muster.handlers:
        muster.setLevel(logging.ERROR)  # what a person has to know is shown; what broke is logged
    client = await Client.connect(url or nats_url(), team=team or _team_here(), name="muster")
    if url is None and not os.environ.get("MUSTER_NATS_URL") and read_address() is None:
        print(f"no `muster up` runs in this folder; this is {nats_url()}", file=sys.stderr)
    return client


def _team_here() -> str:
    address = None if os.environ.get("MUSTER_NATS_URL") else read_address()
    return address.team if address else "default"
