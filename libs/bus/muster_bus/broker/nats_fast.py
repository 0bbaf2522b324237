"""A shorter way to and from the socket than nats-py's own: for speed only, not needed for correctness.

nats-py looks at each character of each header, sends through five coroutines and receives through a queue and a task.
Here one plain call writes a message (`post`) and one plain call receives it (`listen`). Connecting, reconnecting,
requests and pings are nats-py's, as repaired in nats_repairs.py.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping

from nats.aio.subscription import Subscription
from nats.errors import (
    ConnectionClosedError,
    MaxPayloadError,
    OutboundBufferLimitError,
    ProtocolError,
)
from nats.protocol.parser import Parser

from muster_bus.broker.nats_repairs import RepairedClient
from muster_bus.broker.watched import Watch

PLAIN = b"NATS/1.0\r\n"  # headers without a status
LAZY_SECONDS = 0.002  # what can wait goes with the next that cannot, or after this
LARGEST = 64 * 1024 * 1024  # bytes of a message: the server's own limit for `max_payload`
_SPACES = " \t\r\n\x0b\x0c"  # of ASCII: a value may begin with any other
_NEWLINES = str.maketrans({"\r": " ", "\n": " "})


class Incoming:
    """A message as the connection received it. Its headers are read when somebody asks for them."""

    __slots__ = ("_head", "_headers", "data", "reply", "subject")

    def __init__(
        self, subject: str, reply: str, data: bytes, headers: dict[str, str] | None = None, head: bytes = b""
    ) -> None:
        """`head` is the headers as they stand on the wire, after the line of the version."""
        self.subject, self.reply, self.data, self._headers, self._head = subject, reply, data, headers, head

    @property
    def headers(self) -> dict[str, str] | None:
        if self._headers is None and self._head:
            self._headers = header_lines(self._head)
        return self._headers

    def header(self, name: str) -> str:
        """One header, without the cost of reading all; empty where it is missing, or written as nobody writes it."""
        at = self._head.rfind(f"\r\n{name}: ".encode())
        if at < 0:
            return (self.headers or {}).get(name, "")
        start = at + len(name) + 4
        return self._head[start : self._head.find(b"\r\n", start)].decode("utf-8", "replace")


Listener = Callable[[Incoming], None]


class FastClient(RepairedClient):
    """A connection on which messages and their headers are cheap."""

    def __init__(self) -> None:
        super().__init__()
        self._listeners: dict[int, Listener] = {}
        self._lazy: asyncio.TimerHandle | None = None
        self._ps = FastParser(self, self._listeners)

    async def watch(self, subject: str, listener: Listener) -> Subscription:
        """`listen` to `<prefix>.*`, and notice when nothing comes through it any more."""
        sid = self._sid + 1
        self._listeners[sid] = listener  # wanted from now on
        watch = Watch(self, subject, lambda: sid in self._listeners and not self.is_closed)

        def on_message(message: Incoming) -> None:
            if watch.hears(message.subject):
                listener(message)

        return await self.listen(watch.subject, on_message)

    async def listen(self, subject: str, listener: Listener) -> Subscription:
        """Call the listener with each message as it is read from the socket, in order; it must not take long."""
        if inspect.iscoroutinefunction(listener):
            raise TypeError(f"{listener.__qualname__} is a coroutine; a listener is a plain function")
        sid = self._sid + 1
        self._listeners[sid] = listener  # before the broker can answer
        try:
            return await self.subscribe(subject)
        except BaseException:
            self._listeners.pop(sid, None)  # or the next subscription's messages would come here
            raise

    def post(
        self,
        subject: str,
        body: bytes = b"",
        reply: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        is_lazy: bool = False,
    ) -> None:
        """`publish` without waiting, and with the same errors; `make_room` waits where that matters."""
        if self.is_closed:
            raise ConnectionClosedError
        if len(body) > self._max_payload:
            raise MaxPayloadError
        if not self.is_connected and len(body) + self._pending_data_size > self._max_pending_size:
            raise OutboundBufferLimitError
        command = _command(subject, body, reply, headers)
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += len(body)
        self._pending.append(command)
        self._pending_data_size += len(command)
        if not is_lazy:
            self._write_soon()
        elif self._lazy is None:
            self._lazy = asyncio.get_running_loop().call_later(LAZY_SECONDS, self._write_lazy)

    @property
    def is_full(self) -> bool:
        """Whether more is to be written than the buffer should hold."""
        return self._pending_data_size > self._max_pending_size and self.is_connected

    async def make_room(self) -> None:
        while self.is_full:
            await self._flush_pending(force_flush=True)

    async def deliver_by_queue(self, sid: int, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        """What has no listener, such as the reply to a request."""
        await self._process_msg(sid, subject, reply, body, head)

    async def status_of(self, head: bytes) -> dict[str, str] | None:
        """The headers of a message with a status."""
        return await self._process_headers(head)

    async def listener_failed(self, error: Exception) -> None:
        """A listener raised; the next message is delivered all the same."""
        await self._error_cb(error)

    def _write_lazy(self) -> None:
        self._lazy = None
        if self._pending_data_size > 0:
            self._write_soon()

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._listeners.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        return header_lines(raw)


class FastParser(Parser):
    """Takes messages off the wire as they stand there. All else is one line each, comes seldom, and is nats-py's."""

    def __init__(self, wire: FastClient, listeners: dict[int, Listener]) -> None:
        self._wire = wire
        self._listeners = listeners
        super().__init__(wire)

    def reset(self) -> None:
        super().reset()
        self._parts: list[bytes] = []
        self._missing = 0  # bytes without which nothing can be taken

    async def parse(self, data: bytes = b"") -> None:
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        data, at, self._missing = b"".join(self._parts), 0, 0
        while (end := data.find(b"\r\n", at)) >= 0:
            words = data[at:end].split(b" ")
            if words[0] not in (b"MSG", b"HMSG"):
                self._parts = [data[end + 2 :]]
                await super().parse(data[at : end + 2])
                if self.buf:
                    raise ProtocolError("nats: a line that is no command")  # it would swallow every line after it
                data, at = b"".join(self._parts), 0  # nothing, when that line was the connection's last
                continue
            start = end + 2
            try:
                stop = start + int(words[-1])
                begin = start + int(words[-2]) if words[0] == b"HMSG" else start
                sid = int(words[2])
            except (ValueError, IndexError):
                raise ProtocolError("nats: malformed message") from None
            if not start <= begin <= stop <= start + LARGEST:
                raise ProtocolError("nats: malformed size of a message")  # it would wait for bytes that never come
            if stop + 2 > len(data):
                self._missing = stop + 2 - len(data)
                break
            if not data.startswith(b"\r\n", stop):
                raise ProtocolError("nats: a message of another size than it says")
            at = stop + 2
            await self._dispatch(sid, words, data[start:begin], data[begin:stop])
        self._parts = [data[at:]]

    async def _dispatch(self, sid: int, words: list[bytes], head: bytes, body: bytes) -> None:
        """MSG <subject> <sid> [reply] <bytes>, or HMSG <subject> <sid> [reply] <header bytes> <bytes>."""
        reply = words[3] if len(words) > (5 if head else 4) else b""
        listener = self._listeners.get(sid)
        if listener is None:
            await self._wire.deliver_by_queue(sid, words[1], reply, body, head)
            return
        try:
            is_plain = head.startswith(PLAIN)
            headers = await self._wire.status_of(head) if head and not is_plain else None
            lines = head[len(PLAIN) - 2 :] if is_plain else b""
            listener(Incoming(words[1].decode(), reply.decode(), body, headers, lines))
        except Exception as error:  # noqa: BLE001 - one message must not stop the next
            await self._wire.listener_failed(error)


def header_lines(raw: bytes) -> dict[str, str]:
    """Headers as nats-py reads them; of names with a space or a colon inside some are kept, which nobody asks for."""
    text = raw.decode("utf-8", "replace")
    lines = text.split("\r\n")
    if _is_plain(text):
        try:
            return dict([line.split(": ", 1) for line in lines if line])  # as everybody writes them
        except ValueError:
            pass  # a line without that separator
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and name.isascii() and len(name.split()) == 1:
            found[name.strip()] = value.strip(_SPACES)
    return found


def _is_plain(text: str) -> bool:
    """Whether no space or tab stands where nats-py would cut it off; four searches are quicker than one pattern."""
    return text.isascii() and "\t" not in text and "  " not in text and " \r" not in text and " :" not in text


def _command(subject: str, body: bytes, reply: str, headers: Mapping[str, str] | None) -> bytes:
    if not headers:
        return b"".join((f"PUB {subject} {reply} {len(body)}\r\n".encode(), body, b"\r\n"))
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        lines = "".join([f"{name}: {value.translate(_NEWLINES)}\r\n" for name, value in headers.items()])
    head = f"NATS/1.0\r\n{lines}\r\n".encode()
    command = f"HPUB {subject} {reply} {len(head)} {len(head) + len(body)}\r\n".encode()
    return b"".join((command, head, body, b"\r\n"))
