"""A page is read from a host that the team names, at an address that may be called, and never more than its limits."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster_agent.calling.wire import NoReply
from muster_agent.team.web import WebSpec
from muster_agent.tools.web import fetch as fetching
from muster_agent.tools.web.bodies import MAX_BODY
from muster_agent.tools.web.page import NotReadable, scrape_page_tool
from muster_protocol.errors import Invalid
from tests.guards import guards
from tests.web_server import Asked, http, serving

LOCAL = {"hosts": ["127.0.0.1", "localhost"], "http": True, "private": ["127.0.0.1/32"]}


def web(**keys: Any) -> WebSpec:
    return WebSpec.model_validate({**LOCAL, **keys})


async def scrape(url: str, rules: WebSpec) -> str:
    return await scrape_page_tool(rules).call({"url": url})


async def test_a_page_is_read_as_text_and_told_who_reads_it() -> None:
    async with serving(lambda _: http(b"<title>T</title><p>Hello <a href=/more>more</a>")) as server:
        text = await scrape(server.url("/a?b=1"), web(contact="https://example.org/bot"))

    assert text == f"{server.url('/a?b=1')}\nTitle: T\n\nHello [more]({server.url('/more')})"
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", "/a?b=1")
    assert asked.headers["user-agent"].startswith("muster/")
    assert "(automated; +https://example.org/bot)" in asked.headers["user-agent"]


@guards(
    "libs/agent/muster_agent/tools/web/fetch.py",
    "if inside := [address",
    rule="I10",
    replace="if inside := [] and [address",
)
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://evil.org/a", "the team does not call 'evil.org'; its team file lists who may be called: web.hosts"),
        (
            "http://localhost:{port}/",
            "localhost stands for (127.0.0.1|::1), which is not public; web.private may allow",
        ),
        ("http://127.0.0.1:{port}/", "127.0.0.1 stands for 127.0.0.1, which is not public"),
        ("http://169.254.169.254/latest/meta-data", "the team does not call '169.254.169.254'"),
        ("http://a@127.0.0.1:{port}/", "must not hold a user"),
        ("http://127.0.0.1:22/", "port 22 is not called"),
        ("file:///etc/passwd", "must begin with https://"),
        ("gopher://127.0.0.1/", "must begin with https://"),
        ("http://127.1:{port}/", "does not call '127.1'"),
        ("http://2130706433:{port}/", "does not call '2130706433'"),
        ("http://127.0.0.1\\@evil.org/", "is not a URL"),
    ],
)
async def test_what_may_not_be_called_is_not_asked(url: str, reason: str) -> None:
    async with serving(lambda _: http(b"secret")) as server:
        with pytest.raises(Invalid, match=reason):
            await scrape(url.format(port=server.port), web(private=[]))
    assert server.asked == []


async def test_every_public_host_may_be_named_at_once_and_still_no_private_one() -> None:
    async with serving(lambda _: http(b"secret")) as server:
        for host in ("localhost", "LOCALHOST"):
            with pytest.raises(Invalid, match="which is not public"):
                await scrape(server.url(host=host), web(hosts=["*"], private=[]))
        with pytest.raises(Invalid, match=r"does not call '127\.0\.0\.1'"):
            await scrape(server.url(), web(hosts=["*"], private=[]))
    assert server.asked == []


@pytest.mark.parametrize(
    "address", ["10.1.2.3", "169.254.169.254", "192.168.0.1", "::1", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0"]
)
async def test_a_name_that_stands_for_a_private_address_is_not_asked(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One private address among public ones is enough: it is the mark of a name that lies."""

    def look_up(_host: str, port: int, **_: Any) -> list[Any]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (one, port)) for one in ("93.184.215.14", address)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(Invalid, match=r"docs\.example\.org stands for"):
        await scrape("https://docs.example.org/a", WebSpec(hosts=("*.example.org",)))


@guards(
    "libs/agent/muster_agent/tools/web/fetch.py",
    'target = target_of(url, web.hosts, has_http=web.http, section="web", field=FIELD)',
    rule="I10",
    replace='target = target_of(url, (url.split("/")[2].split(":")[0],), has_http=True, section="web", field=FIELD)',
)
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("http://169.254.169.254/latest", "does not call '169.254.169.254'"),
        ("http://127.0.0.2:{port}/secret", "does not call '127.0.0.2'"),
        ("//evil.org/a", "does not call 'evil.org'"),
        ("file:///etc/passwd", "must begin with"),
        ("https://[", "what is no URL"),
    ],
)
async def test_a_redirect_is_checked_like_the_first_address(place: str, reason: str) -> None:
    def reply(asked: Asked) -> bytes:
        where = place.format(port=server.port)
        return (
            http(b"secret")
            if asked.path == "/secret"
            else http(b"", status="302 Found", fields=f"Location: {where}\r\n")
        )

    async with serving(reply) as server:
        with pytest.raises((Invalid, NoReply), match=reason):
            await scrape(server.url(), web())
    assert [asked.path for asked in server.asked] == ["/"]


async def test_a_redirect_to_a_name_that_stands_for_a_private_address_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = socket.getaddrinfo

    def look_up(host: str, port: int, **more: Any) -> list[Any]:
        return real("10.0.0.1" if host == "inside.test" else host, port, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    away = http(b"", status="307 Away", fields="Location: http://inside.test:8080/secret\r\n")
    async with serving(lambda _: away) as server:
        with pytest.raises(Invalid, match=r"inside\.test stands for 10\.0\.0\.1, which is not public"):
            await scrape(server.url(), web(hosts=["127.0.0.1", "inside.test"]))


async def test_redirects_are_followed_and_end() -> None:
    def reply(asked: Asked) -> bytes:
        if asked.path == "/end":
            return http(b"there", "text/plain")
        place = "/end" if asked.path == "/start" else "/round"
        return http(b"", status="301 Moved", fields=f"Location: {place}\r\n")

    async with serving(reply) as server:
        assert await scrape(server.url("/start"), web()) == f"{server.url('/end')}\n\nthere"
        with pytest.raises(NoReply, match="more than 5 redirects"):
            await scrape(server.url("/round"), web())


async def test_a_packed_bomb_is_cut_where_the_limit_is() -> None:
    bomb = gzip.compress(b"<p>" + b"x" * 300_000_000, 9)
    assert len(bomb) < 400_000

    async with serving(lambda _: http(bomb, fields="Content-Encoding: gzip\r\n")) as server:
        text = await scrape(server.url(), web())

    assert text.endswith("characters]")  # what the model gets is cut once more
    assert len(text) < 51_000


async def endless(part: bytes) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    while True:
        yield part


async def test_a_page_without_end_is_cut() -> None:
    async with serving(lambda _: endless(b"x" * 100_000)) as server:
        found = await fetching.fetch(server.url(), web())

    assert (len(found.body), found.is_cut) == (MAX_BODY, True)


async def dripping() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    await asyncio.Event().wait()


async def test_a_page_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "WHOLE_SECONDS", 0.3)
    async with serving(lambda _: dripping()) as server:
        with pytest.raises(NoReply, match=r"no reply within 0.3 s"):
            await scrape(server.url(), web())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (http(b"\x00\x01", "image/png"), "is image/png, which cannot be read as text"),
        (http(b"gone", status="404 Not Found"), "status 404"),
        (http(b"not packed", fields="Content-Encoding: gzip\r\n"), "cannot be unpacked"),
        (http(b"x", fields="Content-Encoding: br\r\n"), "encoded as 'br', which it was not asked for"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", "not in chunks"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc", "not in chunks"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "ended 45 bytes too early"),
        (b"SSH-2.0\r\n\r\n", "not HTTP/1.1"),
    ],
)
async def test_a_reply_that_is_no_page_is_an_error_with_a_way_out(reply: bytes, reason: str) -> None:
    async with serving(lambda _: reply) as server:
        with pytest.raises((NotReadable, NoReply), match=reason):
            await scrape(server.url(), web())


async def test_a_page_in_chunks_is_put_together() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = head + b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    async with serving(lambda _: body) as server:
        assert (await scrape(server.url(), web())).endswith("\n\nabcde")
