"""A broker's operator, its accounts and a user's credentials file: keys and tokens as the tool `nsc` makes them."""

import base64
import json
import os
import time
from typing import Any, NamedTuple

import nkeys

CREDS = """\
-----BEGIN NATS USER JWT-----
{token}
------END NATS USER JWT------

************************* IMPORTANT *************************
NKEY Seed printed below can be used to sign and prove identity.

-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""


class Issued(NamedTuple):
    """What the broker's configuration needs, and what a user's file holds."""

    config: str
    creds: str
    seed: str


def issue() -> Issued:
    """An operator with one account of work, its system account, and one user."""
    seed = _seed(nkeys.PREFIX_BYTE_USER)
    operator, system, account = (
        _key(_seed(prefix)) for prefix in (nkeys.PREFIX_BYTE_OPERATOR, *[nkeys.PREFIX_BYTE_ACCOUNT] * 2)
    )
    limits = {"subs": -1, "conn": -1, "data": -1, "payload": -1, "leaf": -1, "imports": -1, "exports": -1}
    accounts = {
        _public(key): _token(key, operator, name, {"type": "account", "limits": {**limits, "wildcards": True}})
        for key, name in ((system, "SYS"), (account, "muster"))
    }
    token = _token(_key(seed), account, "ann", {"type": "user", "subs": -1, "data": -1, "payload": -1})
    preloaded = "\n".join(f"{public}: {signed}" for public, signed in accounts.items())
    config = (
        f"operator: {_token(operator, operator, 'tests', {'type': 'operator'})}\nsystem_account: {_public(system)}\n"
        f"resolver: MEMORY\nresolver_preload: {{\n{preloaded}\n}}\n"
    )
    return Issued(config, CREDS.format(token=token, seed=seed), seed)


def _seed(prefix: int) -> str:
    return bytes(nkeys.encode_seed(os.urandom(32), prefix)).decode()


def _key(seed: str) -> nkeys.KeyPair:
    return nkeys.from_seed(bytearray(seed.encode()))


def _public(key: nkeys.KeyPair) -> str:
    return bytes(key.public_key).decode()


def _token(subject: nkeys.KeyPair, issuer: nkeys.KeyPair, name: str, nats: dict[str, Any]) -> str:
    """A token about one key, signed with another."""
    claims = {
        "jti": os.urandom(16).hex(),
        "iat": int(time.time()),
        "iss": _public(issuer),
        "name": name,
        "sub": _public(subject),
        "nats": {**nats, "version": 2},
    }
    signed = ".".join(map(_encoded, (json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}), json.dumps(claims))))
    return f"{signed}.{_encoded(bytes(issuer.sign(signed.encode())))}"


def _encoded(part: str | bytes) -> str:
    text = part if isinstance(part, bytes) else part.encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")
