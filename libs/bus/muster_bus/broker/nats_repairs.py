"""nats-py's client with its faults repaired: needed for correctness.

Each repair names the fault that it is for; when nats-py no longer has it, the method can go. Decision 4 has the list.
"""

import asyncio

from nats.aio.client import Client
from nats.errors import FlushTimeoutError


class RepairedClient(Client):
    """A connection that proves what it flushed, can be cancelled, and gives a dead peer up at once."""

    async def flush(self, timeout: int = 10) -> None:
        """nats-py writes its ping past its own buffer: without what is in it, the pong proves nothing."""
        await self._flush_pending(force_flush=True)  # before the ping
        await super().flush(timeout)

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

    async def _process_op_err(self, e: Exception) -> None:
        """The connection is given up: nats-py would first wait until a peer that hangs has read what is unsent."""
        if not self.is_reconnecting:
            self._abort()
        await super()._process_op_err(e)

    async def _process_connect_init(self) -> None:
        self._ps.reset()  # the old connection's reader may have had one more turn since it was given up
        try:
            await super()._process_connect_init()
        except BaseException:
            self._abort()  # nats-py goes on to the next server and leaves this one open
            raise

    def _abort(self) -> None:
        writer: asyncio.StreamWriter | None = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
