"""A network as a team file writes it."""

import ipaddress
from typing import Annotated

from pydantic import BeforeValidator

from muster_protocol.calling.addresses import Network


def _network(text: object) -> Network:
    try:
        return ipaddress.ip_network(str(text))
    except ValueError as error:
        raise ValueError(f"{error}; a network is written such as 127.0.0.1/32") from None


NetworkText = Annotated[Network, BeforeValidator(_network)]
