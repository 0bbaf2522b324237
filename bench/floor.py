"""The floor: plain nats-py doing the least that a durable task needs. Tasks are stored, worked on, answered, acked."""

import asyncio
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api

from bench.floor_worker import CONSUMER, RESULTS, TASKS
from bench.proc import cpu_seconds

IN_FLIGHT = 64
WORKERS = 2
LIMIT_SECONDS = 60.0


class Floor:
    """A publisher that gathers the results, and two workers."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._js = nc.jetstream()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._count = 0

    @classmethod
    async def start(cls, url: str) -> Self:
        floor = cls(await nats.connect(url))
        await floor._provision()
        floor._workers = [_start_worker(url) for _ in range(WORKERS)]
        for worker in floor._workers:
            assert worker.stdout is not None
            await asyncio.to_thread(worker.stdout.readline)  # it says that it is ready
        return floor

    async def _provision(self) -> None:
        queue, storage = api.RetentionPolicy.WORK_QUEUE, api.StorageType.FILE
        await self._js.add_stream(name=TASKS, subjects=["floor.tasks.*"], retention=queue, storage=storage)
        await self._js.add_stream(name=RESULTS, subjects=["floor.results.*"], storage=storage)
        await self._js.add_consumer(TASKS, durable_name=CONSUMER, ack_wait=30, max_ack_pending=20_000)

    async def gather(self, count: int) -> float:
        """Store so many tasks and wait for all their results; returns the seconds that it took."""
        self._count += 1
        name = f"r{self._count}"
        waiting = count
        has_all = asyncio.Event()

        async def on_result(_: Msg) -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                has_all.set()

        places = asyncio.Semaphore(IN_FLIGHT)

        async def store(number: int) -> None:
            async with places:
                await self._js.publish(f"floor.tasks.{name}", b'{"id":"t%d","description":"nothing"}' % number)

        began = time.perf_counter()
        results = await self._nc.subscribe(f"floor.results.{name}", cb=on_result)
        async with asyncio.timeout(LIMIT_SECONDS):
            await asyncio.gather(*(store(number) for number in range(count)))
            await has_all.wait()
        took = time.perf_counter() - began
        await results.unsubscribe()
        return took

    def cpu_seconds(self) -> float:
        """Of the workers."""
        return sum(cpu_seconds(worker.pid) for worker in self._workers)

    async def close(self) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()
        await self._nc.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _start_worker(url: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "bench.floor_worker", url], stdout=subprocess.PIPE)
