"""What is on `errors` already.

The broker drops a second report of the same message for two minutes. A log is read for days: by the next owner, by a
status, by whoever follows it. So of what is older it is looked up whether somebody has reported it.
"""

from nats.aio.client import Client

from muster_bus.read import read_subject
from muster_protocol import headers as h
from muster_protocol import subjects

RECENT_SECONDS = 60.0  # half the broker's window: what came later than that ago is dropped by it


class ReportedIds:
    """The ids of all reports, read on from where the last look ended."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._ids: set[str] = set()
        self._last = 0

    async def has(self, message_id: str) -> bool:
        while page := await read_subject(self._nc, "ERRORS", subjects.ERRORS, self._last, is_page=True):
            self._last = page[-1].sequence
            self._ids.update(raw.headers.get(h.MESSAGE_ID, "") for raw in page)
        return message_id in self._ids
