"""A flood of messages is taken in parts: what one part starts goes on before the next is read."""

import asyncio
import os
import time

from muster_bus.broker.embedded import Server
from muster_bus.broker.nats_fast import FastClient, Incoming
from tests.guards import guards

COUNT, SIZE = 1_000, 1_000
MOST = 80  # messages of this size in two parts of 32 KiB; the socket gives eight at once


@guards("libs/bus/muster_bus/broker/nats_repairs.py", "if len(data) == DEFAULT_BUFFER_SIZE:", rule="I4")
async def test_what_waits_at_the_socket_does_not_come_all_at_once(broker: Server) -> None:
    sender, receiver = FastClient(), FastClient()
    for client in (sender, receiver):
        await client.connect(broker.url)
    heard: list[int] = []
    has_all = asyncio.Event()

    def listen(_: Incoming) -> None:
        heard.append(turns)
        if len(heard) == COUNT:
            has_all.set()

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turns = 0
    await receiver.listen("flood", listen)
    await receiver.flush()
    turning = asyncio.get_running_loop().create_task(turn())
    for _ in range(COUNT):
        sender.post("flood", os.urandom(SIZE))
    await sender.flush()
    time.sleep(0.1)  # noqa: ASYNC251 - until the broker has sent it, while nothing is read
    async with asyncio.timeout(10):
        await has_all.wait()
    turning.cancel()
    for client in (sender, receiver):
        await client.close()

    assert max(map(heard.count, set(heard))) <= MOST
