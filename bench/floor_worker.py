"""A worker of the floor, in a process of its own: fetch, store each result, ack.

One fetch of 64 at a time was the quickest of the shapes tried (1x64, 2x64, 4x16, 8x4, 16x1), both for many tasks and
for ten.
"""

import asyncio
import sys

import nats
from nats.aio.msg import Msg
from nats.js import JetStreamContext

TASKS, RESULTS, CONSUMER = "FLOOR_TASKS", "FLOOR_RESULTS", "floor"
BATCH = 64
FETCH_SECONDS = 0.5


async def work(url: str) -> None:
    connection = await nats.connect(url)
    js = connection.jetstream()
    tasks = await js.pull_subscribe_bind(CONSUMER, TASKS)
    print("ready", flush=True)
    while True:
        try:
            fetched = await tasks.fetch(BATCH, timeout=FETCH_SECONDS)
        except TimeoutError:  # nats-py raises its own or asyncio's
            continue
        await asyncio.gather(*(_do(js, task) for task in fetched))


async def _do(js: JetStreamContext, task: Msg) -> None:
    await js.publish(task.subject.replace("tasks", "results", 1), task.data)
    await task.ack()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
