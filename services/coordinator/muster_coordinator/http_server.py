"""The HTTP server inside the service's own event loop; it leaves signals to the service."""

import asyncio
import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from muster_bus.process.service import stop_within
from muster_coordinator.api.app import make_app
from muster_protocol.errors import Misconfigured

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

READY_SECONDS = 10.0
STREAMS_SECONDS = 1  # how long a stop waits for clients that follow a stream; they never end by themselves


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class HttpServer:
    """Serves the API on one address."""

    def __init__(self, coordinator: "Coordinator", host: str, port: int) -> None:
        self._coordinator = coordinator
        self._host, self._port = host, port
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def open(self) -> None:
        listener = self._bind()
        self._port = int(listener.getsockname()[1])
        config = uvicorn.Config(
            make_app(self._coordinator),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=STREAMS_SECONDS,
        )
        self._server = _Server(config)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve(sockets=[listener]))
        async with asyncio.timeout(READY_SECONDS):
            await self._server.ready.wait()

    async def close(self, within_seconds: float) -> None:
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        await stop_within(self._serving, max(within_seconds, STREAMS_SECONDS + 1.0), "the HTTP server")

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.socket(family)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._host, self._port))
            listener.listen(128)  # so that a second coordinator is refused here, and not at its first connection
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE:
                raise Misconfigured(
                    f"port {self._port} on {self._host} is in use; set MUSTER_HTTP_PORT to a free one"
                ) from None
            raise Misconfigured(f"cannot listen on {self._host}:{self._port}: {error.strerror}") from None
        return listener
