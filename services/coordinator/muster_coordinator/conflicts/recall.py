"""Reads the log of a request that is not followed any more, for what it says about attempts of which news came."""

from collections import OrderedDict

from muster_bus.connection import Bus
from muster_bus.log import entry_of
from muster_bus.receive import opened
from muster_coordinator.conflicts.sightings import dispatched_seen, result_seen
from muster_coordinator.observe import Observer
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry, RequestState, apply
from muster_protocol.headers import is_owner
from muster_protocol.messages import LOG_KINDS, Answer, Dispatched, Result

MAX_PAGES = 20  # of a thousand entries
MAX_REMEMBERED = 1000


class Recall:
    """One log after the other, each once in a while."""

    def __init__(self, bus: Bus, observer: Observer) -> None:
        self._bus = bus
        self._evidence = observer.evidence
        self._wanted = observer.unfollowed
        self._read: OrderedDict[str, None] = OrderedDict()

    async def read_next(self) -> bool:
        """Read one log; False: none is wanted. One that cannot be read now is read after the others."""
        if not self._wanted:
            return False
        request_id = next(iter(self._wanted))
        del self._wanted[request_id]
        if request_id in self._read:
            return True
        try:
            await self._read_log(request_id)
        except BaseException:
            self._wanted[request_id] = None
            raise
        self._read[request_id] = None
        if len(self._read) > MAX_REMEMBERED:
            self._read.popitem(last=False)
        return True

    async def _read_log(self, request_id: str) -> None:
        state, after = RequestState(request_id), 0
        for _ in range(MAX_PAGES):
            page = await self._bus.read(subjects.results(request_id), after, is_page=True)
            if not page:
                return
            after = page[-1].sequence
            for raw in page:
                try:
                    entry = entry_of(raw, await opened(self._bus, raw, LOG_KINDS, request_id))
                except Invalid:
                    continue  # the gate has reported it
                apply(state, entry)
                self._see(state, entry)

    def _see(self, state: RequestState, entry: Entry) -> None:
        body, sender = entry.body, entry.sender
        match body:
            case Answer() if state.answer is body:
                self._evidence.see_answer(state.request_id, entry.time)
            case Dispatched() if is_owner(sender):
                for sighting in dispatched_seen(state.request_id, sender, entry.time, body):
                    self._evidence.see(sighting)
            case Result() if not is_owner(sender):
                headers = body.summary_headers()
                is_counted = state.is_counted(body)
                found = result_seen(state.request_id, sender, entry.time, headers, is_counted=is_counted)
                if found is not None:
                    self._evidence.see(found)
            case _:
                return
