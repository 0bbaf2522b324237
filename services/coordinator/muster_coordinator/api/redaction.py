"""The edge of HTTP: a response leaves without the secrets that the process knows, whoever put them into a stream."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from muster_bus.redact import KNOWN

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Redaction:
    """ASGI middleware: looks at each part of a body, and changes what holds a secret."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        start: Message | None = None

        async def send_redacted(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message  # its length is known with the body
                return
            if message["type"] == "http.response.body":
                body: bytes = message.get("body", b"")
                if KNOWN.is_in(body):
                    clean = KNOWN(body.decode(errors="replace")).encode()
                    message = {**message, "body": clean}
                    start = _with_length(start, len(clean))
                if start is not None:
                    await send(start)
                    start = None
            await send(message)

        await self._app(scope, receive, send_redacted if scope["type"] == "http" else send)


def _with_length(start: Message | None, length: int) -> Message | None:
    """A response that is sent in one part says how long it is."""
    if start is None:
        return None
    headers = [
        (name, str(length).encode() if name.lower() == b"content-length" else value) for name, value in start["headers"]
    ]
    return {**start, "headers": headers}
