"""Does what may take long, such as a call of a model, for as long as somebody wants it: a cancel ends it at once."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from muster_bus.background import end
from muster_supervisor.owner import Owner

T = TypeVar("T")


class Unwanted(Exception):
    """The request is to end now: nobody waits for this any more."""


async def while_wanted(owner: Owner, work: Coroutine[None, None, T]) -> T:
    """What the work gives; raises Unwanted, with the work cancelled, as soon as the request is."""
    doing = asyncio.ensure_future(work)
    ending = asyncio.ensure_future(owner.is_ending.wait())
    try:
        await asyncio.wait((doing, ending), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Unwanted
        return doing.result()
    finally:
        await end(doing, ending)  # what it spent is known when it has ended
