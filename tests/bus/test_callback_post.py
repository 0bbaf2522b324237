"""A callback goes to exactly the address that was checked, under the name of its URL, and waits for nobody for ever."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from muster_agent.calling.wire import NoReply
from muster_protocol.calling.addresses import Target
from muster_supervisor.calling import post as posting
from muster_supervisor.calling.post import Reply, post
from tests.receiver import receiving

NAME = "hooks.test"  # no name server knows it
HEADERS = {"Content-Type": "application/json"}
PLAIN = ssl.create_default_context()


def target(port: int, *, is_https: bool = False, host: str = NAME) -> Target:
    return Target(is_https, host, port, f"{host}:{port}", "/in?a=1")


def certificate(folder: Path) -> tuple[Path, Path]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}")
    made = (*make, "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(key), "-out", str(cert))
    subprocess.run(made, check=True, capture_output=True)
    return cert, key


@asynccontextmanager
async def saying(reply: bytes) -> AsyncGenerator[int]:
    """A server that says this to everybody and keeps the connection; its port."""

    serving: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        with suppress(ConnectionError):
            writer.write(reply)
            await reader.read()  # until the other side ends it
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.wait([task for task in serving if task is not None], timeout=5)


async def test_nobody_is_asked_for_the_name_again() -> None:
    async with receiving() as receiver:
        reply = await post(target(receiver.port), ["127.0.0.1"], HEADERS, b"{}", PLAIN)

    (got,) = receiver.got
    assert reply == Reply(204, None)
    assert got.headers["Host"] == f"{NAME}:{receiver.port}"
    assert got.line == "POST /in?a=1 HTTP/1.1"
    assert got.body == b"{}"


async def test_the_certificate_is_that_of_the_name(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=cert)
    theirs.load_cert_chain(cert, key)
    asked: list[str | None] = []
    theirs.sni_callback = lambda _socket, name, _context: asked.append(name)

    async with receiving(tls=theirs) as receiver:
        reply = await post(target(receiver.port, is_https=True), ["127.0.0.1"], HEADERS, b"{}", ours)
        with pytest.raises(NoReply, match="no TLS with it"):
            await post(target(receiver.port, is_https=True, host="other.test"), ["127.0.0.1"], HEADERS, b"", ours)
        with pytest.raises(NoReply, match="no TLS with it"):
            await post(target(receiver.port, is_https=True), ["127.0.0.1"], HEADERS, b"", PLAIN)

    assert reply.status == 204
    assert asked[0] == NAME
    assert len(receiver.got) == 1


async def test_an_address_that_takes_no_connection_is_passed_over() -> None:
    async with receiving(503, fields="Retry-After: 7\r\n") as receiver:
        reply = await post(target(receiver.port), ["127.0.0.2", "127.0.0.1"], HEADERS, b"{}", PLAIN)

    assert reply == Reply(503, 7.0)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP"),
        (b"HTTP/2 200\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 100 Go on\r\n\r\n" * 9, "interim"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "no reply"),
        (b"HTTP/1.1 200 OK\r\n", "no reply within 0.5 s"),
    ],
)
async def test_what_is_no_reply_is_said_to_be_none(reply: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "WHOLE_SECONDS", 0.5)
    async with saying(reply) as port:
        with pytest.raises(NoReply, match=reason):
            await post(target(port), ["127.0.0.1"], HEADERS, b"{}", PLAIN)


async def test_a_body_without_end_is_not_read() -> None:
    async with saying(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 10_000_000) as port:
        assert (await post(target(port), ["127.0.0.1"], HEADERS, b"{}", PLAIN)).status == 200
