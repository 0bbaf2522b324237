"""What all entries of a request's log have in common."""

from muster_protocol import subjects
from muster_protocol.messages.base import Message
from muster_protocol.sender import Origin


class LogEntry(Message):
    """What stands in a request's log. Where it is written with compare-and-set, its id is unique to that write."""

    def subject_for(self, origin: Origin) -> str:
        return subjects.results(origin.request_id)

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.sender.instance}.{origin.nonce}"
