"""Fetches what a URL leads to: each address on the way is checked, also those that a redirect or a name leads to."""

import asyncio
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urljoin

from muster_agent.calling.wire import NoReply, exchange, message
from muster_agent.functions import call
from muster_agent.team.web import WebSpec
from muster_agent.tools.web.bodies import read_body
from muster_bus.process.version import version
from muster_protocol.calling.addresses import Network, Target, may_be_called, target_of
from muster_protocol.errors import Invalid

FIELD = "url"
LOOK_UP_SECONDS = 5.0
WHOLE_SECONDS = 20.0  # of one exchange
MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a URL led to in the end."""

    url: str
    status: int
    kind: str  # the content type, as it came
    body: bytes
    is_cut: bool


async def fetch(url: str, web: WebSpec) -> Fetched:
    """What is there; Invalid says why it may not be fetched, NoReply why it could not."""
    headers = {**agent(web), "Accept": "text/html, text/plain;q=0.9, */*;q=0.5", "Accept-Encoding": "gzip"}
    tls = await call(ssl.create_default_context)  # reads files
    for _ in range(MAX_REDIRECTS + 1):
        target = target_of(url, web.hosts, has_http=web.http, section="web", field=FIELD)
        addresses = allowed(target, await look_up(target), web.private)
        sent = message("GET", target, headers)
        async with exchange(target, addresses, sent, tls, WHOLE_SECONDS) as (head, reader):
            place = head.field("location") if head.status in _REDIRECTS else None
            if place is None:
                body, is_cut = await read_body(head, reader)
                return Fetched(url, head.status, head.field("content-type") or "", body, is_cut)
        url = redirected(url, place)
    raise NoReply(f"more than {MAX_REDIRECTS} redirects")


def agent(web: WebSpec) -> Mapping[str, str]:
    """Who asks, so that a site can tell us from people and find whom to write to."""
    return {"User-Agent": f"muster/{version()} (automated{f'; +{web.contact}' if web.contact else ''})"}


def redirected(url: str, place: str) -> str:
    """Where a redirect leads."""
    try:
        return urljoin(url, place).partition("#")[0]
    except ValueError:
        raise NoReply("it redirects to what is no URL") from None


async def look_up(target: Target) -> list[str]:
    """What the host's name stands for now, in a thread of its own: a name server that hangs holds up nothing else."""
    asked = partial(socket.getaddrinfo, target.host, target.port, type=socket.SOCK_STREAM)
    try:
        async with asyncio.timeout(LOOK_UP_SECONDS):
            found = await call(asked)
    except TimeoutError:
        raise NoReply(f"the name {target.host} was not resolved within {LOOK_UP_SECONDS:g} s") from None
    except (OSError, UnicodeError):
        raise NoReply(f"the name {target.host} cannot be resolved") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def allowed(target: Target, addresses: list[str], private: Iterable[Network]) -> list[str]:
    """The same addresses, if all may be called: one that may not is the mark of a name that lies."""
    if inside := [address for address in addresses if not may_be_called(address, private)]:
        text = f"{target.host} stands for {inside[0]}, which is not public; web.private may allow its network"
        raise Invalid(text, FIELD)
    return addresses
