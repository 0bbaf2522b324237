"""Who writes a message, and about which request."""

from dataclasses import dataclass
from typing import NamedTuple, Self


@dataclass(frozen=True, slots=True)
class Sender:
    """A service's name on every message: `<service>/<instance>`, and the role for workers."""

    service: str
    instance: str
    role: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The sender that a header names; `headers.require_sender` has checked its shape."""
        return cls(*text.split("/"))

    def __str__(self) -> str:
        return f"{self.service}/{self.instance}/{self.role}" if self.role else f"{self.service}/{self.instance}"


class Origin(NamedTuple):
    """What a message's subject, id and headers need beside its body."""

    request_id: str
    sender: Sender
    term: int | None = None  # of the owner who writes a log entry
    team: str = ""  # that a request is for
    nonce: str = ""  # where an id is to be unique to one write


def shown_name(service: str, instance: str) -> str:
    """The one name under which people meet a service, in logs, answers and lists: `worker-d3f0`."""
    return f"{service}-{instance}" if instance else service  # one that ends at its start may have no name yet


def worker_name(instance: str) -> str:
    """The same, of a worker."""
    return shown_name("worker", instance)
