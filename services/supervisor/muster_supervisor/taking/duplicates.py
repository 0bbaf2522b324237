"""Keeps the messages of a request that are not its lease, until the log has an answer."""

import logging

from muster_bus.lease import Delivery
from muster_bus.log import RequestLog
from muster_supervisor.owner import Resources
from muster_supervisor.taking.disposition import Disposition, Held, classify, report_reuse, surplus
from muster_supervisor.taking.notes import note_returned, taken_note

log = logging.getLogger("muster.supervisor")

LOOKS_PER_LEASE = 4  # how often the log is read; a run that ends here is seen at once
SURPLUS_LEASES = 3  # until a message comes again that is one too many to hold: seldom enough to cost nothing


class Duplicates:
    """The messages of one request that this process holds beside its lease."""

    def __init__(self, resources: Resources, request_id: str) -> None:
        self._resources = resources
        self._log = RequestLog(resources.bus, request_id)
        self._held: dict[int, Delivery] = {}
        self._introduced: set[int] = set()
        self._is_stopping = False
        self.is_supervised = False  # a run of this process has the request

    def has(self, sequence: int) -> bool:
        return sequence in self._held

    def add(self, delivery: Delivery) -> None:
        """Keep a message, or go on with the new delivery of one that is kept."""
        if delivery.sequence in self._held:
            self._held[delivery.sequence].lease.drop()
        self._held[delivery.sequence] = delivery
        self.wake()

    def wake(self) -> None:
        """Look into the log now."""
        self._log.wake()

    def stop(self) -> None:
        """Hand everything back."""
        self._is_stopping = True
        self.wake()

    def drop(self) -> None:
        """Send nothing more about any of them: the broker delivers them again."""
        while self._held:
            self._held.popitem()[1].lease.drop()

    def release(self) -> None:
        """Hand everything back at once, without a note."""
        while self._held:
            self._held.popitem()[1].lease.hand_back()

    async def keep(self) -> None:
        """Hold the messages until none is left: answered, handed back or lost."""
        while self._held:
            await self._log.refresh()
            for delivery in list(self._held.values()):
                await self._review(delivery)
            for sequence in surplus(self._held):
                await self._put_back(self._held[sequence])
            if self._held:
                await self._log.changed(self._resources.lease_seconds / LOOKS_PER_LEASE)

    async def _review(self, delivery: Delivery) -> None:
        """Settle one message, unless it has to be kept."""
        found = await classify(self._resources.bus, self._log.state, Held.of(delivery))
        if found is Disposition.ANSWERED:
            await self._acknowledge(delivery)
        elif found is Disposition.STALE or not delivery.lease.is_held:
            self._forget(delivery)
            delivery.lease.drop()
        elif self._is_stopping or (found is not Disposition.KEPT and not self.is_supervised):
            self._forget(delivery)
            await self._return(delivery, 0.0)  # it comes again, and then it is supervised
        elif delivery.sequence not in self._introduced and found is Disposition.KEPT:
            self._introduced.add(delivery.sequence)
            await self._introduce(delivery)

    async def _acknowledge(self, delivery: Delivery) -> None:
        """There is an answer, so nobody needs it; the sender of another body is told."""
        await report_reuse(self._resources.bus, self._log.state, delivery)
        await self._resources.callbacks.store(delivery, self._log.state)  # it may hold the body that counts
        self._forget(delivery)
        delivery.lease.ack()

    async def _put_back(self, delivery: Delivery) -> None:
        """One too many to hold: it stays in the queue and comes again later, then perhaps after the answer."""
        self._forget(delivery)
        if self._log.state.term:  # its deliveries count for nothing, another message is the lease
            delivery.lease.hand_back(SURPLUS_LEASES * self._resources.lease_seconds)
        else:
            await self._return(delivery, SURPLUS_LEASES * self._resources.lease_seconds)

    async def _return(self, delivery: Delivery, delay_seconds: float) -> None:
        """Hand it back with a note, so that this delivery does not count as an unproductive take."""
        await note_returned(self._resources.bus, self._resources.team.team, delivery)
        delivery.lease.hand_back(delay_seconds)

    def _forget(self, delivery: Delivery) -> None:
        """A later delivery of the message may have replaced this one meanwhile; that one stays."""
        if self._held.get(delivery.sequence) is delivery:
            del self._held[delivery.sequence]

    async def _introduce(self, delivery: Delivery) -> None:
        """Tell the sender of another body, and let the log know of an earlier copy: its deadline holds."""
        state, bus = self._log.state, self._resources.bus
        log.info("… request %s: message %d is kept until it is answered", state.request_id, delivery.sequence)
        await report_reuse(bus, state, delivery)
        note = taken_note(bus, self._resources.team.team, delivery)
        if note.request_hash == state.request_hash and note.stored_at < state.stored_at:
            await bus.store(note, bus.origin(state.request_id, nonce="earlier"))
