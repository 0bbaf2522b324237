"""nats-py's client with its faults repaired: needed for correctness.

Each repair names the fault that it is for; when nats-py no longer has it, the method can go. Decisions 4 and 25 have
the list.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from nats.aio.client import DEFAULT_BUFFER_SIZE, Client, Srv
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import FlushTimeoutError, ProtocolError, SecureConnWantedError, StaleConnectionError, UnexpectedEOF
from nats.errors import TimeoutError as NatsTimeoutError
from nats.protocol import command
from nats.protocol.parser import PERMISSIONS_ERR, STALE_CONNECTION

from muster_bus.background import end
from muster_bus.broker.cancelling import heeding_cancellation
from muster_bus.broker.silence import Silence

SHORT_SECONDS = 5.0  # a connection that ends sooner was no good …
LONGEST_PAUSE_SECONDS = 2.0  # … and the next is tried later each time, up to this
CLOSE_SECONDS = 1.0
PINGS_PER_LEASE = 8
LEAST_PING_SECONDS = 0.5  # a busy machine stands still for a second, which is no dead peer
MOST_PING_SECONDS = 5.0  # where leases are long a dead peer is noticed soon all the same
ECHO = "echo"  # the last word of a subject that nobody replies on
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)  # from nats-py, at a reply with a changed byte


class RepairedClient(Client):
    """A connection that proves what it flushed, can be cancelled, gives a dead peer up at once and never stays lost."""

    def __init__(self) -> None:
        super().__init__()
        self.tried_at = time.monotonic()  # when a connection was last tried
        self._connected_at = 0.0
        self._short_lived = 0  # connections in a row that ended soon
        self._silence = Silence(self, self._request_inbox)
        self._giving_up: asyncio.Task[None] | None = None

    async def flush(self, timeout: int = 10) -> None:
        """nats-py writes its ping past its own buffer: without what is in it, the pong proves nothing."""
        await self._flush_pending(force_flush=True)  # before the ping
        with heeding_cancellation():
            await super().flush(timeout)

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """All requests share one inbox: when no reply comes any more, its subscription may have been lost."""
        try:
            with heeding_cancellation():
                return await super().request(subject, payload, timeout, old_style, headers)
        except NatsTimeoutError:
            self._silence.missed()
            raise

    async def _request_sub_callback(self, msg: Msg) -> None:
        self._silence.since = 0.0
        await super()._request_sub_callback(msg)

    def _request_inbox(self) -> str:
        prefix: bytearray | None = getattr(self, "_resp_sub_prefix", None)
        return "" if prefix is None else prefix.decode().rstrip(".")

    def echo(self, inbox: str) -> None:
        """Write to an own inbox."""
        subject = f"{inbox}.{ECHO}"
        self._pending.append(command.pub_cmd(subject, "", b""))
        self._pending_data_size += len(self._pending[-1])
        self._write_soon()

    def _write_soon(self) -> None:
        """Wake the task that writes, unless it is about to write anyway."""
        if self._flush_queue is not None and self._flush_queue.empty() and self.is_connected:
            self._flush_queue.put_nowait(asyncio.get_running_loop().create_future())

    def give_up(self, error: Exception) -> None:
        """The connection is up and does not do what it should: replace it."""
        self._giving_up = asyncio.get_running_loop().create_task(self._process_op_err(error))

    def notice_within_half(self, lease_seconds: float) -> None:
        """Notice a dead peer in time: by the third ping, after two that were not answered."""
        self.options["ping_interval"] = min(MOST_PING_SECONDS, max(LEAST_PING_SECONDS, lease_seconds / PINGS_PER_LEASE))

    async def _flush_pending(self, force_flush: bool = False) -> None:
        """nats-py's swallows the cancellation of whoever waits in it, so that a cancelled reconnect lives on."""
        if self._flush_queue is None or self._flusher_task is None or self._flusher_task.done():
            await super()._flush_pending(force_flush)
        elif self.is_connected:
            written = asyncio.get_running_loop().create_future()
            await self._flush_queue.put(written)
            if force_flush:
                await self._wait_for(written)

    async def _wait_for(self, written: "asyncio.Future[None]") -> None:
        try:
            async with asyncio.timeout(self._flush_timeout):
                await written
        except TimeoutError:
            await self._error_cb(FlushTimeoutError())

    async def _process_err(self, err_msg: str) -> None:
        """nats-py closes for ever at an error line, though the broker may have kept the connection open."""
        error = StaleConnectionError() if STALE_CONNECTION in err_msg else NatsError(f"nats: {err_msg}")
        if PERMISSIONS_ERR in err_msg:
            await self._error_cb(error)  # one message was refused, all else goes on
        else:
            await self._process_op_err(error)

    async def _process_pong(self) -> None:
        """nats-py stops reading when the flush that asked for this pong was given up."""
        self._pings_outstanding = 0
        pongs: list[asyncio.Future[bool]] = getattr(self, "_pongs", [])
        if pongs and not (asked := pongs.pop(0)).done():
            asked.set_result(True)

    async def _read_loop(self) -> None:
        """nats-py's ends at an error that it does not expect, and leaves a connection that nobody reads."""
        while not (self.is_closed or self.is_reconnecting) and self._transport is not None:
            try:
                if self._transport.at_eof():
                    raise UnexpectedEOF
                await self._ps.parse(data := await self._transport.read(DEFAULT_BUFFER_SIZE))
                if len(data) == DEFAULT_BUFFER_SIZE:
                    await asyncio.sleep(0)  # more is there, and what came with this part is to be done first
            except Exception as error:  # noqa: BLE001 - whatever came over the wire
                await self._process_op_err(error)
                return

    async def _flusher(self) -> None:
        """nats-py's ends silently at some errors, and leaves a connection that nobody writes to."""
        await super()._flusher()
        if self._flusher_task is asyncio.current_task() and self.is_connected:
            await self._process_op_err(ProtocolError("nats: writing to the connection ended"))

    async def _ping_interval(self) -> None:
        await super()._ping_interval()
        if self._ping_interval_task is asyncio.current_task() and self.is_connected:
            await self._process_op_err(StaleConnectionError())

    async def _process_op_err(self, e: Exception) -> None:
        """The connection is given up: nats-py would first wait until a peer that hangs has read what is unsent."""
        if self.is_connected:
            await self._error_cb(e)  # nats-py does not say why
        if not self.is_reconnecting:
            self._abort()
        await super()._process_op_err(e)

    async def _connect_to_server(self, s: Srv) -> None:
        self.tried_at = time.monotonic()
        await super()._connect_to_server(s)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """nats-py would go on in clear text where TLS was asked for, and send the password there."""
        server = self._current_server
        wants_tls = "tls" in self.options or (server is not None and server.uri.scheme == "tls")
        if initial_connection and wants_tls and not info.get("tls_required"):
            raise SecureConnWantedError()
        await super()._process_info(info, initial_connection)

    async def _process_connect_init(self) -> None:
        self._ps.reset()  # the old connection's reader may have had one more turn since it was given up
        try:
            await super()._process_connect_init()
            if not self.is_connected:
                raise ProtocolError("nats: the broker's first reply is not a pong")
            self._connected_at = time.monotonic()
        except (OSError, NatsError, TimeoutError, asyncio.CancelledError) as error:
            refusal = self._unread_refusal() if isinstance(error, OSError) else None
            self._leave()  # nats-py goes on to the next server and leaves this one open
            if refusal is not None:
                raise refusal from error
            raise
        except Exception as error:
            self._leave()
            raise ProtocolError(f"nats: the broker's greeting cannot be read: {error}") from error  # a known error

    def _unread_refusal(self) -> NatsError | None:
        """The error line before a reset: asyncio's reader raises the reset although it has the line."""
        reader: asyncio.StreamReader | None = getattr(self._transport, "_io_reader", None)
        _, found, rest = bytes(getattr(reader, "_buffer", b"")).decode(errors="replace").partition("-ERR ")
        return NatsError(f"nats: {rest.splitlines()[0]}") if found and rest else None

    async def _attempt_reconnect(self) -> None:
        """nats-py's ends for ever at an error that it does not expect, and keeps the tasks of a try that failed."""
        self._leave()
        await self._close_transport()
        self._err = None
        if self._disconnected_cb is not None:
            await self._disconnected_cb()
        is_short = time.monotonic() - self._connected_at < SHORT_SECONDS
        self._short_lived = self._short_lived + 1 if is_short else 0
        while not self.is_closed:
            self.tried_at = time.monotonic()
            try:
                await asyncio.sleep(self._pause())
                await self._select_next_server()
                await self._process_connect_init()
                await self._resume()
                return
            except Exception as error:  # noqa: BLE001 - only closing ends the tries
                self._leave()
                self._err = error
                await self._error_cb(error)
                self._status = Client.RECONNECTING
                self._short_lived += 1

    def _pause(self) -> float:
        """Before the next try: the first is at once, and a broker that ends every connection is not flooded."""
        if self._short_lived < 2:
            return 0.0
        return min(LONGEST_PAUSE_SECONDS, self.options["reconnect_time_wait"] * 2.0 ** min(self._short_lived, 10))

    async def _resume(self) -> None:
        """Subscribe again to everything, and see that the broker has taken it."""
        assert self._transport is not None
        for sid, sub in list(self._subs.items()):
            self._transport.write(command.sub_cmd(sub.subject, sub.queue, sid))
        await self._transport.drain()
        self.stats["reconnects"] += 1
        await self.flush(timeout=int(self.options["connect_timeout"]))
        if self._reconnected_cb is not None:
            await self._reconnected_cb()

    def _leave(self) -> None:
        """End what belongs to the connection: its tasks would go on beside those of the next."""
        for name in ("_reading_task", "_ping_interval_task", "_flusher_task"):
            task: asyncio.Task[None] | None = getattr(self, name)
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self._abort()

    async def _close_transport(self) -> None:
        if self._transport is None:
            return
        try:
            self._transport.close()
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._transport.wait_closed()
        except Exception as error:  # noqa: BLE001 - it is gone anyway
            await self._error_cb(error)

    def _abort(self) -> None:
        writer: asyncio.StreamWriter | None = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


async def connect_within(seconds: float, connecting: Coroutine[Any, Any, None], refused: asyncio.Event) -> None:
    """A limit that holds: `wait_for` inside nats-py may swallow a cancel, so it is repeated until the task ends.

    A broker that refuses us is not asked again: somebody has to change something first.
    """
    task = asyncio.get_running_loop().create_task(connecting)
    refusal = asyncio.get_running_loop().create_task(refused.wait())
    try:
        await asyncio.wait({task, refusal}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TimeoutError
        task.result()
    finally:
        await end(task, refusal)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it as never retrieved
