"""For whoever receives callbacks: is this one from us?"""

import time
from collections.abc import Mapping

from muster_protocol.calling.signing import is_signed

TOLERANCE_SECONDS = 300.0  # between our clock and the receiver's; an older copy is refused


def verify(secret: str, headers: Mapping[str, str], body: bytes, tolerance_seconds: float = TOLERANCE_SECONDS) -> bool:
    """Whether a callback was signed with this secret, just now, with exactly this body; takes constant time.

    A callback may come more than once: its `Muster-Request-Id` says which one it is.
    """
    return is_signed(secret, headers, body, now=time.time(), tolerance_seconds=tolerance_seconds)
