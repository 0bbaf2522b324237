"""Which addresses may be called, for a callback or a page: by URL, by the host's name, by what that stands for. Pure.

A URL comes from whoever asks, so it must not make a service talk to what only the service can reach. Three
questions keep that apart: is the URL plain (`target_of`), does the team name its host (`is_named`), and is each address
that the name stands for public (`may_be_called`).
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

from muster_protocol.errors import Invalid

FIELD = "callback_url"
ANY_HOST = "*"
MAX_URL = 2048
PORTS = {"https": 443, "http": 80}
LAST_PORT = 65_535
FIRST_FREE_PORT = 1024  # below it are the services of a machine, such as SSH and SMTP; of those only 80 and 443
_PLAIN = re.compile(r"[!-\[\]-~]+")  # printable ASCII without space and backslash, which programs read differently
# Stricter than the RFC, and without a library that repairs what it reads: scheme, host, port, path, query.
_URL = re.compile(r"(\w+)://([^/?#]*?)(?::(\d{1,5}))?(/[^?#]*)?(?:\?([^#]*))?(?:#.*)?", re.ASCII)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# What the IANA registers as special, and no more: 6to4 and Teredo stand for an IPv4 address that could be any.
_NOT_PUBLIC_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_GLOBAL_6 = ipaddress.IPv6Network(
    "2000::/3"
)  # all that is assigned; IPv4-mapped, NAT64, ULA and link-local are outside
_NOT_PUBLIC_6 = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)


class Target(NamedTuple):
    """A URL, taken apart once: what is checked is what is used."""

    is_https: bool
    host: str
    port: int
    named: str  # host and port as the URL has them, for the header `Host`
    path: str  # with the query; may hold a token, so nobody writes it down


def target_of(
    url: str, hosts: Iterable[str], *, has_http: bool = False, section: str = "callbacks", field: str = FIELD
) -> Target:
    """The parts of a URL that may be called; Invalid says why it may not, without its path.

    `section` of the team file has the keys by which more may be called.
    """
    if len(url) > MAX_URL or not _PLAIN.fullmatch(url):
        raise Invalid(f"is not a URL of at most {MAX_URL:,} plain characters; other characters are written %XX", field)
    found = _URL.fullmatch(url)
    scheme, place, port_text, path, query = found.groups() if found else ("", "", None, None, None)
    if scheme.lower() not in (("https", "http") if has_http else ("https",)):
        raise Invalid(f"must begin with https://; `{section}: {{http: true}}` in the team file allows http://", field)
    if "@" in place:
        raise Invalid("must not hold a user or password: receivers know us by the signature", field)
    host = place.lower()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not is_named(host, hosts):
        text = f"the team does not call {host[:253]!r}; its team file lists who may be called: {section}.hosts"
        raise Invalid(text, field)
    is_https = scheme.lower() == "https"
    port = PORTS[scheme.lower()] if port_text is None else int(port_text)
    if port not in PORTS.values() and not FIRST_FREE_PORT <= port <= LAST_PORT:
        raise Invalid(f"port {port} is not called; 80, 443 and those from {FIRST_FREE_PORT} are", field)
    named = place if port_text is None else f"{place}:{port_text}"
    return Target(is_https, host, port, named, (path or "/") + (f"?{query}" if query else ""))


def is_named(host: str, hosts: Iterable[str]) -> bool:
    """Whether a list has a host: by itself, or as `*.example.org`, which stands for every name below that one.

    `*` alone stands for every name; no list of hosts that are called back may have it.
    """
    host = host.lower()
    is_name = _NAME.fullmatch(host) is not None and not _is_address(host)
    return any(
        host == one or (is_name and (one == ANY_HOST or (one.startswith("*.") and host.endswith(one[1:]))))
        for one in hosts
    )


def host_pattern(text: str) -> str:
    """A host as a team file names it, in small letters; ValueError says what else it may be."""
    small = text.lower()
    name = small.removeprefix("*.")
    if _is_address(small) or (_NAME.fullmatch(name) and not _is_address(name)):
        return small
    raise ValueError(f"{text[:80]!r} is not a host such as example.org or *.example.org")


def is_public(address: str) -> bool:
    """Whether an address is on the internet for everybody, and stands for no other address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False  # also with a zone
    if isinstance(found, ipaddress.IPv4Address):
        return not any(found in network for network in _NOT_PUBLIC_4)
    return found.scope_id is None and found in _GLOBAL_6 and not any(found in network for network in _NOT_PUBLIC_6)


def may_be_called(address: str, private: Iterable[Network] = ()) -> bool:
    """Whether an address is public, or in one of the networks that the team allows besides."""
    if is_public(address):
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return getattr(found, "scope_id", None) is None and any(found in network for network in private)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
