"""Credentials come from files, and a broker that refuses them or shows a strange certificate is named; no secret is."""

import asyncio
import os
import socket
import struct
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import nkeys
import pytest

from muster_bus.broker.access import Access, shown, why_not
from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_bus.process.settings import read_settings
from muster_bus.redact import KNOWN
from muster_client import Client
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.sender import Sender
from muster_testing import until
from tests.bus.jwt_broker import issue
from tests.guards import guards

SENDER = Sender("tests", "one")
REFUSAL = b"INFO {\"max_payload\": 1048576}\r\n-ERR 'Authorization Violation'\r\n"
SECRET = "s3cr3t-word"
PLANTED = "pl4nted-s3cr3t"  # known to the redactor from then on: no other test has it


@asynccontextmanager
async def guarded(folder: Path, extra: str) -> AsyncGenerator[Server]:
    server = Server(folder, extra=extra)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def connects(url: str, access: Access) -> bool:
    bus = await Bus.connect(url, SENDER, access=access)
    await bus.flush()
    await bus.close()
    return True


def from_files(folder: Path, **files: str) -> Access:
    """The access that variables give which name files with these contents."""
    env: dict[str, str] = {}
    for name, content in files.items():
        path = folder / name
        path.write_text(f"{content}\n")
        env[f"MUSTER_NATS_{name}"] = str(path)
    return read_settings(env).access


async def test_user_and_password_come_from_files_and_a_refusal_is_named_without_them(tmp_path: Path):
    async with guarded(tmp_path / "b", f'authorization {{ user: ann, password: "{SECRET}" }}') as server:
        good = from_files(tmp_path, USER_FILE="ann", PASSWORD_FILE=SECRET)
        assert await connects(server.url, good)

        began = asyncio.get_running_loop().time()
        for access, url in (
            (from_files(tmp_path, USER_FILE="ann", PASSWORD_FILE="wrong-word"), server.url),
            (Access(), server.url),
            (Access(), server.url.replace("://", "://ann:wrong-word@")),
        ):
            with pytest.raises(BrokerAway) as caught:
                await Bus.connect(url, SENDER, access=access, timeout=30)
            text = str(caught.value)
            assert text.startswith(f"the broker at {server.url} refuses these credentials: authorization violation;")
            assert "MUSTER_NATS_PASSWORD_FILE" in text
            assert "word" not in text.replace("PASSWORD", "")
        assert asyncio.get_running_loop().time() - began < 20, "a refusal is no reason to wait"
        assert await connects(server.url.replace("://", f"://ann:{SECRET}@"), Access())


@asynccontextmanager
async def resetting(*greetings: bytes) -> AsyncGenerator[tuple[str, list[int]]]:
    """What a broker that refuses may look like: it says a line and resets the connection; the last greeting stays."""
    accepted: list[int] = []

    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(len(accepted))
        writer.write(greetings[min(accepted[-1], len(greetings) - 1)])
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", accepted
    finally:
        server.close()


async def test_a_refusal_is_named_although_a_reset_follows_it_at_once():
    """asyncio's reader raises the reset, and the line of the refusal stays unread."""
    async with resetting(REFUSAL) as (url, _):
        with pytest.raises(BrokerAway, match="refuses these credentials: authorization violation"):
            await Bus.connect(url, SENDER)


async def test_a_reset_does_not_hide_the_refusal_before_it():
    async with resetting(REFUSAL, b"") as (url, accepted):
        bus = Bus.unconnected(url, SENDER)
        opening = asyncio.create_task(bus.open())
        await until(lambda: len(accepted) > 3, "it tries again")
        opening.cancel()
        await asyncio.wait({opening})
        assert "authorization violation" in why_not(url, bus.last_error)
        await bus.close()


async def test_an_nkey_comes_from_a_file(tmp_path: Path):
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    public = bytes(nkeys.from_seed(bytearray(seed)).public_key).decode()
    async with guarded(tmp_path / "b", f"authorization {{ users: [ {{ nkey: {public} }} ] }}") as server:
        assert await connects(server.url, from_files(tmp_path, NKEY=bytes(seed).decode()))

        with pytest.raises(BrokerAway, match="refuses these credentials"):
            await Bus.connect(server.url, SENDER)


async def test_a_credentials_file_connects_and_one_of_another_operator_is_refused(tmp_path: Path):
    issued, foreign = issue(), issue()
    async with guarded(tmp_path / "b", issued.config) as server:
        assert await connects(server.url, from_files(tmp_path, CREDS=issued.creds))

        with pytest.raises(BrokerAway, match="refuses these credentials: authorization violation") as caught:
            await Bus.connect(server.url, SENDER, access=from_files(tmp_path, CREDS=foreign.creds))
    assert foreign.seed not in str(caught.value)


@pytest.mark.parametrize(("name", "what"), [("CREDS", "no credentials"), ("NKEY", "no seed of a user")])
def test_a_file_that_holds_something_else_is_named_with_its_variable(tmp_path: Path, name: str, what: str):
    """nats-py would look for the credentials in it for ever."""
    with pytest.raises(Invalid, match=rf"MUSTER_NATS_{name}: {tmp_path / name} holds {what}") as caught:
        from_files(tmp_path, **{name: SECRET}).options()
    assert SECRET not in str(caught.value)


async def test_a_client_in_a_program_of_its_own_redacts_what_it_connects_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    issued = issue()
    async with guarded(tmp_path / "b", issued.config) as server:
        (tmp_path / "user.creds").write_text(issued.creds)
        monkeypatch.setenv("MUSTER_NATS_URL", server.url)
        monkeypatch.setenv("MUSTER_NATS_CREDS", str(tmp_path / "user.creds"))

        async with await Client.connect():
            assert KNOWN(f"it was {issued.seed}!") == "it was [redacted MUSTER_NATS_CREDS]!"
        async with await Client.connect(f"nats://ann:{PLANTED}@127.0.0.1:{server.port}"):
            assert KNOWN(f"it was {PLANTED}") == "it was [redacted MUSTER_NATS_URL]"


@guards(
    "libs/bus/muster_bus/broker/nats_repairs.py",
    "raise SecureConnWantedError()",
    rule="I10",
    replace="pass",
    case="tls",
)
@pytest.mark.parametrize("asked", ["tls", "an authority"])
async def test_where_tls_is_asked_for_nothing_is_said_in_clear_text(broker: Server, tmp_path: Path, asked: str):
    certificate, _ = await asyncio.to_thread(_self_signed, tmp_path)
    url = broker.url.replace("nats://", "tls://") if asked == "tls" else broker.url

    with pytest.raises(BrokerAway, match="has no TLS, which MUSTER_NATS_CA or tls:// asks for; nothing was sent"):
        await connects(url, Access(ca_file=str(certificate) if asked == "an authority" else None))


async def test_an_untrusted_certificate_is_named_and_the_authority_comes_from_a_file(tmp_path: Path):
    certificate, key = await asyncio.to_thread(_self_signed, tmp_path)
    async with guarded(tmp_path / "b", f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}') as server:
        assert await connects(server.url, Access(ca_file=str(certificate)))

        with pytest.raises(BrokerAway) as caught:
            await Bus.connect(server.url, SENDER, timeout=30)
    assert str(caught.value).startswith(f"the certificate of the broker at {server.url} is not trusted: self")
    assert "set MUSTER_NATS_CA" in str(caught.value)


@pytest.mark.parametrize("name", ["CREDS", "NKEY", "CA", "USER_FILE", "PASSWORD_FILE"])
def test_a_file_that_is_not_there_is_named_with_its_variable(tmp_path: Path, name: str):
    missing = str(tmp_path / "missing")
    access = read_settings({f"MUSTER_NATS_{name}": missing}).access

    with pytest.raises(Invalid, match=rf"MUSTER_NATS_{name}: cannot (read|use) {missing}: No such file"):
        access.options()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://ann:pa@ss@host:4222", "nats://host:4222"),
        ("token@host", "host"),
        ("nats://a:b@one:1, tls://c@two:2", "nats://one:1, tls://two:2"),
        ("nats://host:4222", "nats://host:4222"),
    ],
)
def test_an_address_is_shown_without_user_and_password(url: str, expected: str):
    assert shown(url) == expected
    assert expected in why_not(url, None)


def test_settings_show_no_secret():
    env = {"MUSTER_NATS_URL": f"nats://ann:{SECRET}@host", "MUSTER_NATS_PASSWORD_FILE": "/run/secrets/password"}

    assert SECRET not in repr(read_settings(env))


def _self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subject = ("-subj", "/CN=muster test", "-addext", "subjectAltName=IP:127.0.0.1")
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    command = [*make, "-keyout", str(key), "-out", str(certificate), *subject]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
