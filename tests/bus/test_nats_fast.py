"""The fast client sends and receives what nats-py does, however the bytes are cut."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.errors import BadSubjectError, ConnectionClosedError, MaxPayloadError, ProtocolError

from muster_bus.broker.embedded import Server
from muster_bus.broker.nats_fast import FastClient, FastParser, Incoming
from tests.guards import guards

HEADERS = [
    {"sender": "worker/w1", "kind": "result", "Nats-Msg-Id": "r.t.1"},
    {"empty": "", "spaced": "  in the middle  ", "umlaut": "größer"},
    {"injected": "x\r\nevil: yes", "cut": "a\nb", "return": "c\rd"},
]


@pytest.mark.parametrize("headers", HEADERS)
async def test_headers_arrive_as_nats_py_would_have_sent_them(broker: Server, headers: dict[str, str]):
    listener, ours, theirs = FastClient(), FastClient(), Client()  # nats-py's flush does not prove a subscription
    for client in (listener, ours, theirs):
        await client.connect(broker.url)
    received = await listener.subscribe("x")
    await listener.flush()

    ours.post("x", b"body", headers=headers)
    first = await received.next_msg(60)
    await theirs.publish("x", b"body", headers=dict(headers))
    second = await received.next_msg(60)
    for client in (listener, ours, theirs):
        await client.close()

    assert (first.data, first.headers) == (second.data, second.headers)
    assert "evil" not in (first.headers or {})


Sent = tuple[str, str, bytes, dict[str, str] | None]

subjects = st.from_regex(r"[a-z\x0b\x0c]{1,9}(\.[a-z0-9]{1,9}){0,2}", fullmatch=True)  # the broker takes those too
values = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12).map(str.strip)
headers = st.none() | st.dictionaries(st.from_regex(r"[A-Za-z-]{1,9}", fullmatch=True), values, min_size=1, max_size=4)
messages = st.tuples(subjects, subjects | st.just(""), st.binary(max_size=40), headers)


def wired(sent: Sent) -> bytes:
    """A message as the broker writes it."""
    subject, reply, data, headers = sent
    middle = f"{subject} 1 {reply} " if reply else f"{subject} 1 "
    if headers is None:
        return f"MSG {middle}{len(data)}\r\n".encode() + data + b"\r\n"
    head = "".join(["NATS/1.0\r\n", *(f"{name}: {value}\r\n" for name, value in headers.items()), "\r\n"]).encode()
    return f"HMSG {middle}{len(head)} {len(head) + len(data)}\r\n".encode() + head + data + b"\r\n"


@given(st.lists(messages, max_size=6), st.lists(st.integers(1, 30), max_size=20))
def test_messages_are_delivered_whole_and_in_order_however_their_bytes_are_cut(sent: list[Sent], cuts: list[int]):
    received: list[Incoming] = []
    rest = b"+OK\r\n".join(wired(message) for message in sent)

    async def read() -> None:
        nonlocal rest
        parser = FastParser(FastClient(), {1: received.append})
        for cut in cuts:
            await parser.parse(rest[:cut])
            rest = rest[cut:]
        await parser.parse(rest)

    asyncio.run(read())

    assert [(message.subject, message.reply, message.data, message.headers) for message in received] == sent


lines = st.lists(st.tuples(st.sampled_from(["kind", "kind ", "a"]), st.sampled_from([":", ": ", ":  "]), values))


@given(lines)
def test_one_header_alone_is_what_it_is_among_all(written: list[tuple[str, str, str]]):
    head = "".join(["\r\n", *(f"{name}{colon}{value}\r\n" for name, colon, value in written), "\r\n"]).encode()
    alone, among_all = Incoming("x", "", b"", head=head), Incoming("x", "", b"", head=head)

    if len({name.strip() for name, _, _ in written}) == len(written):  # of two with one name, either may be meant
        assert alone.header("kind").strip() == (among_all.headers or {}).get("kind", "")


@guards(
    "libs/bus/muster_bus/broker/nats_fast.py",
    'words = data[at:end].split(b" ")',
    rule="I10",
    replace="words = data[at:end].split()",
)
async def test_a_subject_may_hold_what_python_takes_for_space():
    received: list[Incoming] = []

    await FastParser(FastClient(), {1: received.append}).parse(b"MSG events.a\x0b7 1 2\r\nhi\r\n")

    assert [(message.subject, message.data) for message in received] == [("events.a\x0b7", b"hi")]


@pytest.mark.parametrize("line", [b"MSG x 1 many\r\n", b"HMSG x 1 a 2\r\n", b"NONSENSE\r\n", b"\r\n"])
async def test_a_line_that_no_broker_sends_ends_the_connection(line: bytes):
    with pytest.raises(ProtocolError):
        await FastParser(FastClient(), {}).parse(line)


async def test_a_listener_that_raises_is_reported_and_gets_the_next_message(broker: Server):
    broken: asyncio.Queue[Exception] = asyncio.Queue()
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def on_error(error: Exception) -> None:
        broken.put_nowait(error)

    def receive(message: Incoming) -> None:
        received.put_nowait(message.data)
        if message.data == b"bad":
            raise ValueError("too much")

    client = FastClient()
    await client.connect(broker.url, error_cb=on_error)
    await client.listen("x", receive)
    client.post("x", b"bad")
    client.post("x", b"good", is_lazy=True)

    async with asyncio.timeout(60):
        assert [await received.get(), await received.get()] == [b"bad", b"good"]
        assert str(await broken.get()) == "too much"
    await client.close()


async def test_a_listener_whose_subscription_failed_gets_no_message_of_the_next(broker: Server):
    received: list[Incoming] = []
    client = FastClient()
    await client.connect(broker.url)
    with pytest.raises(BadSubjectError):
        await client.listen("", received.append)

    next_one = await client.subscribe("x")
    client.post("x", b"for the next")

    assert (await next_one.next_msg(60)).data == b"for the next"
    assert received == []
    await client.close()


async def test_what_cannot_be_sent_is_refused_as_nats_py_refuses_it(broker: Server):
    client = FastClient()
    await client.connect(broker.url)
    with pytest.raises(MaxPayloadError):
        client.post("x", b"x" * (client.max_payload + 1))
    await client.close()
    with pytest.raises(ConnectionClosedError):
        client.post("x")
