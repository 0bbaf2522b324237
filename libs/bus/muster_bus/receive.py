"""The gate: everything that arrives from the broker is opened here, and what cannot be used is reported here.

A message has a valid sender, a kind that its reader knows, a size that may travel, and a body that its kind accepts. On
`requests.*` alone sender and kind may be missing, because a request comes from any client. A body that lies in the
object store is fetched and checked against its hash.

What is read from a stream is opened by `opened`: it reports what is invalid to `errors` (each stored message once,
whoever reads it) and raises the reason. What is only repeated live is opened by `open_live`: it may not be stored at
all, so nothing is reported, and whoever reads the stream does that. How a stream is read is in `read_stream.py`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from muster_bus.bodies import MAX_INLINE
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.messages import Message, Request
from muster_protocol.subjects import ALL_CONTROL, ALL_EVENTS, last_token

if TYPE_CHECKING:
    from muster_bus.connection import Bus

M = TypeVar("M", bound=Message)

ANONYMOUS = "anonymous"
_NAMES_ITS_REQUEST = (ALL_CONTROL[:-1], ALL_EVENTS[:-1])  # subjects whose last token the body repeats


class Incoming(Protocol):
    """A message with its subject, as the connection received it or as a stream holds it."""

    @property
    def subject(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str] | None: ...
    @property
    def data(self) -> bytes: ...


class Stored(Incoming, Protocol):
    """A message with its place in a stream."""

    @property
    def stream(self) -> str: ...
    @property
    def sequence(self) -> int: ...
    @property
    def time(self) -> float: ...


class Opened(NamedTuple, Generic[M]):
    """A message that can be used: who sent it, and what it says."""

    sender: str
    body: M


async def opened(
    bus: "Bus",
    message: Stored,
    kinds: Mapping[str, type[M]],
    request_id: str | None = None,
    check: Callable[[M], None] | None = None,
) -> Opened[M]:
    """Open a stored message, fetching a body that lies elsewhere. Raises Invalid after it was reported.

    `check` is what its reader demands beyond the kind; it raises Invalid.
    """
    try:
        sender, kind = check_headers(message, kinds)
        reference = (message.headers or {}).get(h.BODY_REF)
        body = kind.read(message.data if reference is None else await bus.bodies.get(reference))
        _check_request(message, body)
        if check is not None:
            check(body)
        return Opened(sender, body)
    except Invalid as reason:
        await bus.report(str(reason), message, request_id=request_id or (message.headers or {}).get(h.REQUEST_ID))
        raise


def open_live(message: Incoming, kinds: Mapping[str, type[M]]) -> Opened[M]:
    """Open a message that brought its body along. Raises Invalid, unreported."""
    sender, kind = check_headers(message, kinds)
    if h.BODY_REF in (message.headers or {}):
        raise Invalid("the body lies in the object store", h.BODY_REF)
    body = kind.read(message.data)
    _check_request(message, body)
    return Opened(sender, body)


def check_headers(message: Incoming, kinds: Mapping[str, type[M]]) -> tuple[str, type[M]]:
    """Sender and kind of a message, judged without its body. Raises Invalid, unreported."""
    headers = message.headers or {}
    if Request.kind in kinds:
        sender = h.require_sender(headers) if h.SENDER in headers else ANONYMOUS
        kind = h.require_kind(headers, kinds) if h.KIND in headers else kinds[Request.kind]
    else:
        sender, kind = h.require_sender(headers), h.require_kind(headers, kinds)
    size = len(message.data)
    if size > MAX_INLINE and h.BODY_REF not in headers:
        raise Invalid(f"the body has {size} bytes; over {MAX_INLINE} it must travel by reference", h.BODY_REF)
    return sender, kind


class HeaderGate:
    """Opens stored entries by their headers, for a watcher that may not wait; what is invalid is reported later."""

    def __init__(self, report: Callable[[str, Stored], None]) -> None:
        self._report = report

    @classmethod
    def of(cls, bus: "Bus") -> "HeaderGate":
        """A gate that reports through this connection."""
        return cls(lambda reason, entry: bus.reports.add_later(reason, entry, last_token(entry.subject)))

    def open(self, entry: Stored, kinds: Mapping[str, type[M]], *, checks_body: bool) -> tuple[str, type[M]] | None:
        """Sender and kind of an entry, or None; an entry that nobody else checks is parsed as well."""
        try:
            sender, kind = check_headers(entry, kinds)
            if checks_body:
                kind.read(entry.data)
        except Invalid as reason:
            self._report(str(reason), entry)
            return None
        return sender, kind

    async def body(self, bus: "Bus", entry: Stored) -> bytes | None:
        """The body of an entry that lies in the object store, or None."""
        try:
            return await bus.bodies.get((entry.headers or {}).get(h.BODY_REF, ""))
        except Invalid as reason:
            self._report(str(reason), entry)
            return None


def _check_request(message: Incoming, body: Message) -> None:
    """The broker says who may publish on a subject; the body must not speak of another request."""
    if message.subject.startswith(_NAMES_ITS_REQUEST):
        about = getattr(body, "request_id", "")
        if about != last_token(message.subject):
            raise Invalid(f"the message is about {about}", "request_id")
