"""How a callback is signed, and how its receiver checks that. Pure."""

import hashlib
import hmac
from collections.abc import Mapping

REQUEST_ID = "Muster-Request-Id"
TIMESTAMP = "Muster-Timestamp"
SIGNATURE = "Muster-Signature"
VERSION = "v1"


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """What stands in the header: `v1=` and the HMAC-SHA256 of `<timestamp>.<body>` in hexadecimal digits."""
    signed = str(timestamp).encode() + b"." + body
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def is_signed(secret: str, headers: Mapping[str, str], body: bytes, *, now: float, tolerance_seconds: float) -> bool:
    """Whether who knows the secret signed this body, not longer ago (or ahead) than is tolerated."""
    found = {name.lower(): value for name, value in headers.items()}
    stamp, given = found.get(TIMESTAMP.lower(), ""), found.get(SIGNATURE.lower(), "")
    if not secret or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    is_right = hmac.compare_digest(signature(secret, int(stamp), body).encode(), given.encode())
    return is_right and abs(now - int(stamp)) <= tolerance_seconds
